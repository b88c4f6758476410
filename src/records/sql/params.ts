/**
 * Converts JSON values to PostgreSQL's text for the parameter types that PostgreSQL inferred. SDK clients
 * send every value as a string; others send JSON as it is.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { escapedItem } from "../array-literal.ts";
import type { JsonValue } from "../requests.ts";

/** Only for these does the parameter's type matter; the others need not be described first. */
export const needsType = (value: JsonValue): boolean =>
  Array.isArray(value) || (typeof value === "string" && value.trimStart().startsWith("["));

/**
 * @param type  PostgreSQL's type name of the parameter (`_float4`, `jsonb`, …); undefined when it was not
 *   asked for.
 */
export function paramText(value: JsonValue, type: string | undefined, index: number): string | null {
  if (value === null) return null;
  if (typeof value === "string") {
    if (value.includes("\0"))
      throw new LodestoneError("INVALID", `params[${index}] contains a NUL character, which PostgreSQL cannot hold.`);
    if (!value.isWellFormed()) throw new LodestoneError("INVALID", `params[${index}] contains a lone surrogate; it is not valid Unicode.`);
    return type?.startsWith("_") === true ? arrayFromText(value, index) : value;
  }
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return type?.startsWith("_") === true ? arrayLiteral(value, index) : JSON.stringify(value);
  return JSON.stringify(value);
}

/**
 * For an array parameter `[1, 2]` is taken as JSON; PostgreSQL's own `{1,2}` and `[0:1]={1,2}` are passed on.
 */
function arrayFromText(text: string, index: number): string {
  if (!text.trimStart().startsWith("[")) return text;
  try {
    const parsed = JSON.parse(text) as JsonValue;
    return Array.isArray(parsed) ? arrayLiteral(parsed, index) : text;
  } catch {
    return text;
  }
}

function arrayLiteral(elements: readonly JsonValue[], index: number): string {
  const parts = elements.map((element) => {
    if (element === null) return "NULL";
    if (Array.isArray(element)) return arrayLiteral(element, index);
    const text = typeof element === "object" ? JSON.stringify(element) : String(element);
    if (text.includes("\0"))
      throw new LodestoneError("INVALID", `params[${index}] contains a NUL character, which PostgreSQL cannot hold.`);
    return typeof element === "number" || typeof element === "boolean" ? text : `"${escapedItem(text)}"`;
  });
  return `{${parts.join(",")}}`;
}
