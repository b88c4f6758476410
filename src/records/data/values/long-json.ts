/**
 * Long values of json columns are converted and checked in slices, before anything else looks at the record:
 * for millions of small values that takes a tenth of a second and more.
 */
import type { TableInfo } from "../../schema.ts";
import { type ColumnJson, isLongJson, longJsonOf } from "./json-column-text.ts";
import { columnsBelow } from "./request-parts.ts";

/** Stands in a record for a long value of a json column. */
export class LongJson {
  readonly sent: unknown;
  readonly json: ColumnJson;

  constructor(sent: unknown, json: ColumnJson) {
    this.sent = sent;
    this.json = json;
  }
}

/**
 * The record with a LongJson in place of each long value of a json column; itself when it has none. Errors in
 * the record are left to the code that reads it.
 */
export async function withLongJson(table: TableInfo, record: unknown): Promise<unknown> {
  if (!hasJsonColumn(table)) return record;
  return replaced(table, "", record);
}

/** Like `withLongJson`, for each record of a list. */
export async function allWithLongJson(table: TableInfo, records: readonly unknown[]): Promise<readonly unknown[]> {
  if (!Array.isArray(records) || !hasJsonColumn(table)) return records;
  const all: unknown[] = [];
  for (const record of records) all.push(await replaced(table, "", record));
  return all;
}

function hasJsonColumn(table: TableInfo): boolean {
  return [...table.columns.values()].some(({ type }) => type === "json");
}

async function longJson(value: unknown): Promise<unknown> {
  return value instanceof LongJson || !isLongJson(value) ? value : new LongJson(value, await longJsonOf(value));
}

/** @param prefix  of the names of columns whose values are in `object`: "address." for those of an object path. */
async function replaced(table: TableInfo, prefix: string, object: unknown): Promise<unknown> {
  if (typeof object !== "object" || object === null || Array.isArray(object)) return object;
  let copy: Record<string, unknown> | undefined;
  for (const [key, value] of Object.entries(object)) {
    const name = prefix + key;
    const column = table.columns.get(name);
    let instead = value;
    if (column?.type === "json") instead = await longJson(value);
    else if (column === undefined && columnsBelow(table, name).length > 0) instead = await replaced(table, `${name}.`, value);
    if (instead === value) continue;
    copy ??= { ...object };
    copy[key] = instead;
  }
  return copy ?? object;
}
