/**
 * All records of a table, for exports and checks: in the order of their ids, one page per statement, so that
 * nobody has to wait for the whole table.
 */
import { boundedPage, mayHaveMore, PAGE_BYTES } from "../../bounded-page.ts";
import type { Connection } from "../../engine/engine.ts";
import type { JsonObject, ReadOptions } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { ROW } from "../sql-parts/bound-parameters.ts";
import { compileProjection } from "../sql-parts/projection.ts";
import { ALL_COLUMNS, readSelection } from "../sql-parts/selection.ts";

const PAGE = { maxRecords: 2_000, maxBytes: 2_000_000 };

/**
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
