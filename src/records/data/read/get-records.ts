/** GET …/data/{id}, and many of them by id in one statement. */
import type { Connection } from "../../engine/engine.ts";
import type { JsonObject, ReadOptions } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { ROW } from "../sql-parts/parameters.ts";
import { compileProjection } from "../sql-parts/projection.ts";
import { ALL_COLUMNS, readSelection } from "../sql-parts/selection.ts";
import { relation } from "../sql-parts/sql-names.ts";
import { recordNotFound } from "../values/version-check.ts";

/** @throws {LodestoneError} NOT_FOUND. Without `columns`: all of the table. */
export async function getRecord(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  id: string,
  options: ReadOptions = {},
): Promise<JsonObject> {
  const [record] = await getRecords(connection, branch, table, [id], options);
  if (record === undefined) throw recordNotFound(table, id);
  return record;
}

/** In the order of `ids` (an id that is given twice comes twice); those that are not there are left out. */
export async function getRecords(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  ids: readonly string[],
  options: ReadOptions = {},
): Promise<JsonObject[]> {
  const projection = compileProjection(branch, readSelection(branch, table, options.columns ?? ALL_COLUMNS), ROW, options);
  // What text cannot hold is no record's id.
  const asked = ids.filter((id) => !id.includes("\u0000"));
  if (asked.length === 0) return [];
  const { rows } = await connection.query<{ id: string; record: string }>(
    `SELECT ${ROW}."id", ${projection.sql} AS record FROM ${relation(branch, table)} AS ${ROW} WHERE ${ROW}."id" = ANY ($1::text[])`,
    [asked],
  );
  const found = new Map(rows.map((row) => [row.id, row.record]));
  const records: JsonObject[] = [];
  for (const id of asked) {
    const text = found.get(id);
    if (text !== undefined) records.push(projection.decode(text));
  }
  return records;
}
