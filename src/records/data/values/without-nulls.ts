/**
 * The optional members of a request's part whose form depends on the table: there too, null is as if it were
 * absent.
 */
export function withoutNulls(object: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}
