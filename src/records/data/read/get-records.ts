/** GET …/data/{id}, and many of them by id in one statement. */
import { SLICE_UNITS, Slices } from "../../../threads/event-loop.ts";
import type { Connection } from "../../engine/engine.ts";
import type { JsonObject, ReadOptions } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { ROW } from "../sql-parts/bound-parameters.ts";
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

/**
 * In the order of `ids`; missing ones are left out. An id that is given twice comes twice and is charged twice,
 * but is one object.
 */
export async function getRecords(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  ids: readonly string[],
  options: ReadOptions = {},
): Promise<JsonObject[]> {
  const projection = compileProjection(branch, readSelection(branch, table, options.columns ?? ALL_COLUMNS), ROW, options);
  // Text that PostgreSQL cannot hold is not the id of any record.
  const asked = ids.filter((id) => !id.includes("\u0000"));
  const distinct = [...new Set(asked)];
  if (asked.length === 0) return [];
  const { rows } = await connection.query<{ id: string; record: string }>(
    `SELECT ${ROW}."id", ${projection.sql} AS record FROM ${relation(branch, table)} AS ${ROW} WHERE ${ROW}."id" = ANY ($1::text[])`,
    [distinct],
  );
  const found = new Map<string, JsonObject>();
  const lengths = new Map<string, number>();
  const slices = new Slices(SLICE_UNITS, connection.budget?.caller);
  for (const { id, record } of rows) {
    found.set(id, projection.decode(record));
    lengths.set(id, record.length);
    if (slices.spend(record.length)) await slices.rest();
  }
  if (distinct.length < asked.length) {
    const all = asked.reduce((sum, id) => sum + (lengths.get(id) ?? 0), 0);
    const once = rows.reduce((sum, { record }) => sum + record.length, 0);
    connection.budget?.charge(all - once);
  }
  return asked.map((id) => found.get(id)).filter((record) => record !== undefined);
}
