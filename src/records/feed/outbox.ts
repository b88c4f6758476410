/** Reading the outbox of a branch: which records changed between a position and the snapshot that the reading transaction has. */
import { FEED_TABLE } from "../catalog/table-ddl.ts";
import type { Connection } from "../engine/engine.ts";
import { qualified } from "../identifiers.ts";
import type { Position } from "./position.ts";

export interface OutboxRow {
  readonly txid: string;
  readonly seq: string;
  readonly table: string;
  readonly id: string;
}

/**
 * The next rows after the position, in the order (txid, seq), at most `limit`. A transaction that began early and committed late is found by its number,
 * however small: nothing below the snapshot's own xmin is looked at, and every row above is asked whether the snapshot saw it.
 */
export async function readOutbox(connection: Connection, schemaName: string, position: Position, limit: number): Promise<OutboxRow[]> {
  const { snapshot, partial } = position;
  const { rows } = await connection.query<[string, string, string, string]>(
    `SELECT txid, seq, table_name, record_id FROM ${qualified(schemaName, FEED_TABLE)}
     WHERE txid >= pg_snapshot_xmin($1::pg_snapshot) AND NOT pg_visible_in_snapshot(txid, $1::pg_snapshot)
       ${partial === undefined ? "" : "AND (txid, seq) > ($3::xid8, $4::int8) AND pg_visible_in_snapshot(txid, $5::pg_snapshot)"}
     ORDER BY txid, seq LIMIT $2`,
    [snapshot, limit, ...(partial === undefined ? [] : [partial.txid, partial.seq, partial.target])],
    { raw: true, rowMode: "array" },
  );
  return rows.map(([txid, seq, table, id]) => ({ txid, seq, table, id }));
}
