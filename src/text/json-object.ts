/** Which JSON values are objects. Below every layer, since each reads JSON. */

/** Whether a value that came as JSON is an object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
