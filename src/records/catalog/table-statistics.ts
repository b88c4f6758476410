/**
 * The size of tables on disk, and PostgreSQL's own estimate of their number of records. One statement over the
 * catalog for all tables of a branch; no table is read.
 */
import { compareText } from "../../text/code-point-order.ts";
import type { Connection } from "../engine/engine.ts";
import type { BranchInfo } from "../schema.ts";

export interface TableStatistics {
  readonly name: string;
  /** Including indexes, large values, and space left by deleted records that is not yet reused. */
  readonly sizeBytes: number;
  /** From the last vacuum or analysis and the writes since: an estimate. */
  readonly estimatedRows: number;
}

/** @returns one for each table, by name. */
export async function tableStatistics(connection: Pick<Connection, "query">, branch: BranchInfo): Promise<TableStatistics[]> {
  const { rows } = await connection.query<{ name: string; bytes: number; live: number; analysed: number }>(
    `SELECT c.relname AS name, pg_total_relation_size(c.oid)::float8 AS bytes,
       pg_stat_get_live_tuples(c.oid)::float8 AS live, c.reltuples::float8 AS analysed
     FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`,
    [branch.schemaName],
  );
  const byName = new Map(rows.map((row) => [row.name, row]));
  const statistics = [...branch.tables.values()].map(({ name, physicalName }) => {
    const { bytes, live, analysed } = byName.get(physicalName) ?? { bytes: 0, live: 0, analysed: 0 };
    // The count of live rows begins anew when the database has crashed; -1: it was never analysed.
    return { name, sizeBytes: bytes, estimatedRows: live > 0 ? live : Math.max(0, Math.round(analysed)) };
  });
  return statistics.toSorted((a, b) => compareText(a.name, b.name));
}
