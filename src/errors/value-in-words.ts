/**
 * How messages show values, on every layer: in JSON notation, and cut short, so that a message never echoes a
 * megabyte.
 */

/** UTF-16 code units of a text that are shown. */
const MAX_TEXT = 80;
const MAX_NAMES = 12;

/** For example: `5`, `"abc"`, `null`, `an array of 3 elements`, `an object with "a" and "b"`, `nothing`. */
export function inWords(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value))
    return value.length === 1 ? "an array of 1 element" : `an array of ${value.length.toLocaleString("en")} elements`;
  if (ArrayBuffer.isView(value)) return `a ${value.constructor.name}`;
  if (typeof value === "object" && value !== null) return `an object with ${quotedNames(Object.keys(value), "no members")}`;
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  return typeof value === "bigint" ? `${value}n` : String(value);
}

/** A name or a short text, in double quotes. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
}

/** `"a", "b" and 7 more`; `none` for an empty list. */
export function quotedNames(names: readonly string[], none: string): string {
  if (names.length === 0) return none;
  const shown = names.slice(0, MAX_NAMES).map(quoted).join(", ");
  return names.length > MAX_NAMES ? `${shown} and ${names.length - MAX_NAMES} more` : shown;
}
