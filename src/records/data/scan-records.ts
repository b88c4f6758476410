/** All records of a table, for exports and checks: in the order of their ids, a page per statement, so that nobody waits for the whole. */
import type { Connection } from "../engine/engine.ts";
import type { JsonObject, ReadOptions } from "../record-store.ts";
import type { BranchInfo, TableInfo } from "../schema.ts";
import { relation } from "./physical.ts";
import { compileProjection } from "./projection.ts";
import { ALL_COLUMNS, readSelection } from "./selection.ts";
import { ROW } from "./write-statement.ts";

/** JSON text per page, about: the size of the next page follows from the records of the last. */
const PAGE_CHARACTERS = 2_000_000;
const FIRST_PAGE = 64;
const MAX_PAGE = 4_000;

/**
 * Yields pages, and reads the next one only when it is asked for. Each page is one consistent state, the whole is not: a record that is written meanwhile
 * comes as it was or as it is, and one that comes or goes meanwhile may be there or not. Every record that is there all the time comes exactly once.
 */
export async function* scanRecords(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  options: ReadOptions = {},
): AsyncGenerator<JsonObject[], void, undefined> {
  const projection = compileProjection(branch, readSelection(branch, table, options.columns ?? ALL_COLUMNS), ROW, options);
  const select = `SELECT ${ROW}."id", ${projection.sql} AS record FROM ${relation(branch, table)} AS ${ROW}`;
  let after: string | undefined;
  for (let size = FIRST_PAGE; ; ) {
    const { rows } = await connection.query<{ id: string; record: string }>(
      `${select} ${after === undefined ? "" : `WHERE ${ROW}."id" > $2`} ORDER BY ${ROW}."id" LIMIT $1`,
      after === undefined ? [size] : [size, after],
    );
    if (rows.length > 0) yield rows.map((row) => projection.decode(row.record));
    if (rows.length < size) return;
    after = rows.at(-1)!.id;
    const characters = rows.reduce((sum, row) => sum + row.record.length, 0);
    // At most doubled, so that a run of small records does not read a run of large ones at once.
    size = Math.max(1, Math.min(MAX_PAGE, 2 * size, Math.floor((PAGE_CHARACTERS * size) / characters)));
  }
}
