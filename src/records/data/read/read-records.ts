/** Records by id in one statement, and all records of a table for exports and checks. */

import { boundedPage, mayHaveMore, PAGE_BYTES } from "../../bounded-page.ts";
import type { Connection } from "../../engine/engine.ts";
import type { JsonObject, ReadOptions } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { compileProjection, decodeRecords } from "../sql-parts/projection.ts";
import { ALL_COLUMNS, readSelection } from "../sql-parts/selection.ts";
import { REPEATED, ROW, relation } from "../sql-parts/statement-parts.ts";
import { recordNotFound } from "../values/record-metadata.ts";

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
    REPEATED,
  );
  const texts = rows.map(({ record }) => record);
  const records = await decodeRecords(connection, projection, texts);
  const found = new Map(rows.map(({ id, record }, index) => [id, { record: records[index]!, length: record.length }]));
  if (distinct.length < asked.length) {
    const all = asked.reduce((sum, id) => sum + (found.get(id)?.length ?? 0), 0);
    const once = texts.reduce((sum, text) => sum + text.length, 0);
    connection.budget?.charge(all - once);
  }
  return asked.map((id) => found.get(id)?.record).filter((record) => record !== undefined);
}

const PAGE = { maxRecords: 2_000, maxBytes: 2_000_000 };

/**
 * In the order of the ids, one page per statement, so that nobody has to wait for the whole table.
 *
 * Yields pages, and reads the next one only when asked for it. Each page is one consistent state; the whole is
 * not. A record that is changed meanwhile comes in its old or new state, and one that is created or deleted
 * meanwhile may or may not come. Every record that exists all the time comes exactly once.
 */
export async function* scanRecords(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  options: ReadOptions = {},
): AsyncGenerator<JsonObject[], void, undefined> {
  const projection = compileProjection(branch, readSelection(branch, table, options.columns ?? ALL_COLUMNS), ROW, options);
  const sized = [...table.columns.values()];
  let after: string | undefined;
  do {
    const page = boundedPage(branch.schemaName, table, sized, after === undefined ? "" : 'WHERE "id" > $1', PAGE);
    const { rows } = await connection.query<{ id: string; record: string; bytes: string }>(
      `SELECT ${ROW}."id", ${projection.sql} AS record, ${ROW}.${PAGE_BYTES}::text AS bytes FROM (${page}) AS ${ROW} ORDER BY ${ROW}."id"`,
      after === undefined ? [] : [after],
    );
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) => projection.decode(row.record));
    after = mayHaveMore(PAGE, rows.length, Number(last.bytes)) ? last.id : undefined;
  } while (after !== undefined);
}
