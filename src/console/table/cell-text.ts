/**
 * Converts values to editable text and back, by the column's type. The server decides what a text means; here
 * it only gets the right JSON type.
 */
import type { ColumnSchema } from "../state/server-content.ts";

/** The text for no value. */
const NO_VALUE = "";

export function textOf(column: ColumnSchema, value: unknown): string {
  if (value === undefined || value === null) return NO_VALUE;
  if (column.type === "link") return linkId(value) ?? NO_VALUE;
  if (column.type === "json" || column.type === "vector" || column.type === "multiple") return JSON.stringify(value);
  return String(value);
}

/**
 * @returns the value to send: null for an empty text; the text itself if it does not fit the type, so that
 *   the server explains why.
 */
export function fromText(column: ColumnSchema, text: string): unknown {
  if (text === NO_VALUE && column.type !== "text") return null;
  switch (column.type) {
    case "int":
    case "float":
      return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
    case "bool":
      return text === "true" ? true : text === "false" ? false : text;
    case "multiple":
    case "vector":
    case "json":
      return parsed(text);
    default:
      return text;
  }
}

/** A link's value in an answer: `{id}`. */
export const linkId = (value: unknown): string | undefined =>
  typeof value === "object" && value !== null && "id" in value ? String(value.id) : typeof value === "string" ? value : undefined;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Characters of a value that a cell shows. */
const MAX_SHOWN = 160;

export function shortText(column: ColumnSchema, value: unknown): string {
  const text = readable(column, value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function readable(column: ColumnSchema, value: unknown): string {
  if (column.type === "multiple" && Array.isArray(value)) return value.join(", ");
  if (typeof value !== "string") return textOf(column, value);
  return column.type === "datetime" ? shortTime(value) : value;
}

/** "2026-11-25", "2026-11-25 10:58", "2026-11-25 10:58:03.250", in UTC; what is no time stays as it is. */
function shortTime(time: string): string {
  const parts = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d(?:\.\d+)?)?Z$/.exec(time);
  if (parts === null) return time;
  const [, day, minute, rest = ""] = parts;
  const seconds = /[1-9]/.test(rest) ? rest.replace(/\.0+$/, "") : "";
  return minute === "00:00" && seconds === "" ? String(day) : `${day} ${minute}${seconds}`;
}
