/**
 * The optional members of the parts of a request whose form depends on the table: there, too, null means
 * absent.
 */
export function withoutNulls(object: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}
