/**
 * Reads the outbox of a branch: which records changed between a position and the snapshot of the reading
 * transaction.
 */
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

/** Rows of one read, and the bytes of their ids: SQL can make ids of a quarter of a megabyte. */
const MAX_ROWS = 4_096;
const MAX_ID_BYTES = 4_000_000;

export interface OutboxPage {
  readonly rows: readonly OutboxRow[];
  /** False: these were all. */
  readonly mayHaveMore: boolean;
}

/**
 * The next rows after the position, in the order (txid, seq). A transaction that began early and committed late
 * is found by its number, however small: only rows below the snapshot's own xmin are skipped, and for every row
 * above it the snapshot is asked whether it saw the transaction.
 */
export async function readOutbox(connection: Connection, schemaName: string, position: Position): Promise<OutboxPage> {
  const { snapshot, partial } = position;
  const { rows } = await connection.query<[string, string, string, string]>(
    `SELECT txid, seq, table_name, record_id FROM (
       SELECT *, sum(octet_length(record_id)) OVER (ORDER BY txid, seq ROWS UNBOUNDED PRECEDING) AS bytes FROM (
         SELECT txid, seq, table_name, record_id FROM ${qualified(schemaName, FEED_TABLE)}
         WHERE txid >= pg_snapshot_xmin($1::pg_snapshot) AND NOT pg_visible_in_snapshot(txid, $1::pg_snapshot)
           ${partial === undefined ? "" : "AND (txid, seq) > ($2::xid8, $3::int8) AND pg_visible_in_snapshot(txid, $4::pg_snapshot)"}
         ORDER BY txid, seq LIMIT ${MAX_ROWS}
       ) AS page
     ) AS sized WHERE bytes - octet_length(record_id) < ${MAX_ID_BYTES} ORDER BY txid, seq`,
    [snapshot, ...(partial === undefined ? [] : [partial.txid, partial.seq, partial.target])],
    { raw: true, rowMode: "array" },
  );
  const idBytes = rows.reduce((sum, [, , , id]) => sum + Buffer.byteLength(id), 0);
  return {
    rows: rows.map(([txid, seq, table, id]) => ({ txid, seq, table, id })),
    mayHaveMore: rows.length === MAX_ROWS || idBytes >= MAX_ID_BYTES,
  };
}

/** The position after the first `taken` rows of the page. @param formerTarget  of the read before, which was cut short. */
export function advance(
  position: Position,
  snapshot: string,
  { rows, mayHaveMore }: OutboxPage,
  taken: number,
  formerTarget: string | undefined,
): { position: Position; complete: boolean } {
  const target = position.partial?.target ?? snapshot;
  if (taken === rows.length && !mayHaveMore) {
    // All that the target sees is delivered. If it is the target of a former read, some values may be later than
    // it: then one more read completes it.
    return { position: { snapshot: target }, complete: position.partial === undefined || target !== formerTarget };
  }
  const { txid, seq } = rows[taken - 1]!;
  return { position: { snapshot: position.snapshot, partial: { target, txid, seq } }, complete: false };
}
