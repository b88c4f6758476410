/** Values as messages show them: JSON, cut short, so that a message never carries a megabyte back. */
const MAX_SHOWN = 60;

export function showValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 1 ? "an array of 1 element" : `an array of ${value.length} elements`;
  if (typeof value === "object") return `an object with ${showNames(Object.keys(value), "no keys")}`;
  if (typeof value === "string") return `the string ${quoted(value)}`;
  return `${typeof value} ${String(value)}`;
}

/** A name or a short text, in double quotes. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
}

/** `"a", "b" and 7 more`. */
export function showNames(names: readonly string[], none: string): string {
  if (names.length === 0) return none;
  const shown = names.slice(0, 12).map(quoted).join(", ");
  return names.length > 12 ? `${shown} and ${names.length - 12} more` : shown;
}
