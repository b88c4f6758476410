/**
 * Infers the columns of a table that an import is to create, from the first rows of a file that does not
 * declare them: the narrowest type that fits all values.
 */
import { parseTimestamp } from "../../filter/datetime.ts";
import type { JsonValue } from "../../records/requests.ts";
import type { ColumnSchema, ColumnType } from "../../records/schema.ts";
import { MAX_FILE_COLUMNS, type Source, SourceError } from "./source.ts";

const SAMPLE_ROWS = 1000;

/** Longer texts are `text`, which may be searched but not unique. */
const MAX_STRING_LENGTH = 2048;

export async function inferColumns(source: Source, except: readonly string[], signal: AbortSignal): Promise<ColumnSchema[]> {
  const values = new Map<string, JsonValue[]>();
  let count = 0;
  for await (const { record, place } of source.rows(source.start, [])) {
    signal.throwIfAborted();
    for (const [name, value] of Object.entries(record)) {
      if (except.includes(name)) continue;
      if (!values.has(name)) values.set(name, []);
      if (value !== null) values.get(name)?.push(value);
    }
    if (values.size > MAX_FILE_COLUMNS) {
      throw new SourceError(place, `the records up to here have more than ${MAX_FILE_COLUMNS.toLocaleString("en-US")} columns`);
    }
    if (++count === SAMPLE_ROWS) break;
  }
  return [...values].map(([name, present]) => inferColumn(name, present));
}

/**
 * The narrowest type that fits all values.
 *
 * @param values  those that are there: without null.
 * @param options  dateAlone: a day without a time is a datetime, too.
 */
export function inferColumn(name: string, values: readonly JsonValue[], { dateAlone = false } = {}): ColumnSchema {
  const vector = vectorDimension(values);
  if (vector !== undefined) return { name, type: "vector", vector: { dimension: vector } };
  return { name, type: inferType(values, dateAlone) };
}

function inferType(values: readonly JsonValue[], dateAlone: boolean): ColumnType {
  const all = (test: (value: JsonValue) => boolean) => values.length > 0 && values.every(test);
  if (all((value) => typeof value === "boolean" || value === "true" || value === "false")) return "bool";
  if (all((value) => Number.isSafeInteger(value) || (typeof value === "string" && /^-?(0|[1-9]\d{0,14})$/.test(value)))) return "int";
  if (all((value) => typeof value === "number" || (typeof value === "string" && /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value)))) {
    return "float";
  }
  if (all((value) => typeof value === "string" && parseTimestamp(value, { dateAlone }) !== undefined)) return "datetime";
  if (all((value) => Array.isArray(value) && value.every((element) => typeof element === "string"))) return "multiple";
  if (values.some((value) => typeof value === "object")) return "json";
  return values.some((value) => String(value).length > MAX_STRING_LENGTH) ? "text" : "string";
}

/** The common length of all values, if each is a list of numbers (in csv: the text of one). */
function vectorDimension(values: readonly JsonValue[]): number | undefined {
  const lengths = new Set(values.map(lengthOfVector));
  const [length] = lengths;
  return lengths.size === 1 && length !== undefined && length >= 2 ? length : undefined;
}

function lengthOfVector(value: JsonValue): number | undefined {
  const list: unknown = typeof value === "string" && /^\s*\[.*\]\s*$/s.test(value) ? safeParse(value) : value;
  return Array.isArray(list) && list.every((element) => typeof element === "number") ? list.length : undefined;
}

function safeParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
