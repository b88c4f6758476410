/**
 * Turns the database's result for a user's statement into the API's answer. Works in slices, because 1,000
 * rows may have 1,600 columns each.
 */

import { VERSION_COLUMNS } from "../../filter/system-columns.ts";
import type { Slices } from "../../threads/event-loop.ts";
import type { BoundedResult } from "../engine/engine.ts";
import type { SqlRequest, SqlResponse, SqlValue } from "../requests.ts";
import { readerOf, readLong } from "./result-values.ts";

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
