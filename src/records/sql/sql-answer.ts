/**
 * Turns the database's result for a user's statement into the API's answer. Works in slices, because 1,000
 * rows may have 1,600 columns each.
 */
import { VERSION_COLUMNS } from "../../filter/system-columns.ts";
import type { Slices } from "../../threads/event-loop.ts";
import type { BoundedResult } from "../engine/engine.ts";
import { readJson } from "../exact-json.ts";
import { readArray, readArrayInSteps, toRfc3339 } from "../postgres-text.ts";
import type { JsonValue, SqlRequest, SqlResponse, SqlValue } from "../requests.ts";

export const MAX_RESULT_ROWS = 1_000;
export const MAX_RESULT_BYTES = 32 * 1024 * 1024;

type SqlRow = { [column: string]: SqlValue };

/**
 * Cost of a column, and of putting a value into a record (which may have 1,600 of them), besides its text; in
 * characters read.
 */
const VALUE_COST = 128;

/** Longer texts are read in steps. */
const LONG_VALUE = 64 * 1024;

/** @param types  PostgreSQL's names of the columns' types. */
export async function sqlAnswer(
  result: BoundedResult,
  types: readonly string[],
  responseType: SqlRequest["responseType"],
  slices: Slices,
): Promise<SqlResponse> {
  const columns = result.fields.map((field, index) => ({ name: field.name, type: types[index]! }));
  const readers = columns.map((column) => readerOf(column.type));
  if (slices.spend(VALUE_COST * columns.length)) await slices.rest();
  const total = result.rows.length;
  const makeRecord = recordMaker(columns);
  const rows: SqlValue[][] = [];
  const records: SqlRow[] = [];
  for (const texts of result.rows) {
    const row: SqlValue[] = [];
    for (const [index, text] of texts.entries()) {
      const isLong = text !== null && text.length > LONG_VALUE;
      row.push(text === null ? null : isLong ? await readLong(types[index]!, text, slices) : readers[index]!(text));
      if (slices.spend(VALUE_COST + (isLong ? 0 : (text?.length ?? 0)))) await slices.rest();
    }
    if (responseType === "array") rows.push(row);
    else records.push(makeRecord(row));
  }
  return {
    ...(responseType === "array" ? { rows } : { records }),
    columns,
    total,
    rowCount: result.rowCount ?? total,
    ...(result.isCut ? { warning: warningFor(total) } : {}),
  };
}

function warningFor(rowCount: number): string {
  return rowCount === MAX_RESULT_ROWS
    ? `Only the first ${MAX_RESULT_ROWS} rows are returned; use LIMIT and OFFSET, or a WHERE on the last id, to read on.`
    : `Only the first ${rowCount} rows are returned, because the result is longer than ${MAX_RESULT_BYTES / 2 ** 20} MiB.`;
}

/**
 * Of several columns with the same name the last wins, as in other clients. Records have no prototype, since
 * a column may be called "__proto__". Metadata is grouped under `xata`, like the objects of the retired
 * service (`columns` and lists stay flat), unless the statement has a column of that name.
 */
function recordMaker(columns: readonly { name: string }[]): (row: readonly SqlValue[]) => SqlRow {
  const nests = !columns.some(({ name }) => name === "xata");
  return (row) => {
    const record = Object.create(null) as SqlRow;
    columns.forEach(({ name }, index) => {
      const member = nests ? METADATA.get(name) : undefined;
      if (member === undefined) record[name] = row[index]!;
      else {
        record.xata ??= {};
        (record.xata as unknown as SqlRow)[member] = row[index]!;
      }
    });
    return record;
  };
}

/** Maps `xata.version` and the like to their names within `xata`. */
const METADATA: ReadonlyMap<string, string> = new Map(VERSION_COLUMNS.map((name) => [name, name.slice("xata.".length)]));

/**
 * Converts PostgreSQL's text to JSON values, by type name. What JSON cannot represent exactly stays a string.
 */
type ValueReader = (text: string) => SqlValue;

const asText: ValueReader = (text) => text;

const readers: ReadonlyMap<string, ValueReader> = new Map<string, ValueReader>([
  ["bool", (text) => text === "t"],
  ["int2", Number],
  ["int4", Number],
  ["oid", Number],
  ["int8", exactInteger],
  ["float4", finiteNumber],
  ["float8", finiteNumber],
  ["numeric", exactDecimal],
  ["json", json],
  ["jsonb", json],
  ["timestamptz", timestamp],
  ["bytea", (text) => Buffer.from(text.slice(2), "hex").toString("base64")],
]);

/** @param type  PostgreSQL's name: `int8`, `_text`, … */
function readerOf(type: string): ValueReader {
  if (!isArray(type)) return readers.get(type) ?? asText;
  const element = elementOf(type);
  return (text) => readArray(text, element) ?? text;
}

/**
 * Like `readerOf`, for a long text, in slices. Anything that is not an array takes little time per character.
 */
async function readLong(type: string, text: string, slices: Slices): Promise<SqlValue> {
  if (!isArray(type)) return readerOf(type)(text);
  const reading = readArrayInSteps(text, elementOf(type));
  for (;;) {
    const { done, value } = reading.next();
    if (done === true) return value ?? text;
    if (slices.spend(value)) await slices.rest();
  }
}

const isArray = (type: string): boolean => type.startsWith("_") && !readers.has(type);
const elementOf = (type: string): ValueReader => readers.get(type.slice(1)) ?? asText;

/** The JSON text as it is, with every digit of its numbers. */
function json(text: string): SqlValue {
  return readJson(text) as SqlValue;
}

function exactInteger(text: string): JsonValue {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : text;
}

/** float4 and float8 print their shortest decimal, so nothing is lost. JSON has no NaN and no infinities. */
function finiteNumber(text: string): JsonValue {
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
}

function exactDecimal(text: string): JsonValue {
  const number = Number(text);
  const canonical = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return Number.isFinite(number) && String(number) === (canonical === "-0" ? "0" : canonical) ? number : text;
}

/**
 * Turns `2026-01-02 03:04:05.5+00` (the session is in UTC) into `2026-01-02T03:04:05.5Z`. Infinities, years
 * BC and years beyond 9999 stay as they are.
 */
function timestamp(text: string): JsonValue {
  return toRfc3339(text)?.replace("+00:00", "Z") ?? text;
}
