/**
 * Positions in a branch's change feed, as text that only this folder reads, and what its outbox has after one.
 *
 * `<snapshot>`: everything that the snapshot sees has been delivered. `<snapshot>/<target>/<txid>,<seq>`: so
 * has what `target`, a later snapshot, sees up to that row of the outbox, in the order (txid, seq); it stands
 * between the pages of a read that was too large for one.
 */

import { FEED_TABLE } from "../catalog/table-ddl.ts";
import type { Connection } from "../engine/engine.ts";
import { qualified } from "../identifiers.ts";
import type { FeedPosition } from "./feed-types.ts";

export interface Position {
  /** Text of a pg_snapshot, `xmin:xmax:xip,…`. */
  readonly snapshot: string;
  readonly partial?: { readonly target: string; readonly txid: string; readonly seq: string };
}

const SNAPSHOT = /^(\d{1,20}):(\d{1,20}):(\d{1,20}(,\d{1,20})*)?$/;
const ROW = /^(\d{1,20}),(\d{1,19})$/;
const MAX_TXID = 2n ** 64n - 1n;
const MAX_SEQ = 2n ** 63n - 1n;

export function formatPosition(position: Position): string {
  const { snapshot, partial } = position;
  return partial === undefined ? snapshot : `${snapshot}/${partial.target}/${partial.txid},${partial.seq}`;
}

/** undefined for anything that PostgreSQL would refuse: a position may come from a damaged file, or from a caller. */
export function parsePosition(text: string): Position | undefined {
  const [snapshot, target, row, ...rest] = text.split("/");
  if (snapshot === undefined || !isSnapshot(snapshot) || rest.length > 0) return undefined;
  if (target === undefined) return { snapshot };
  const found = ROW.exec(row ?? "");
  if (!isSnapshot(target) || found === null) return undefined;
  const [, txid, seq] = found;
  if (BigInt(txid!) > MAX_TXID || BigInt(seq!) > MAX_SEQ) return undefined;
  return { snapshot, partial: { target, txid: txid!, seq: seq! } };
}

/** As pg_snapshot's own input: 0 < xmin ≤ the running transactions, in order, < xmax. */
function isSnapshot(text: string): boolean {
  if (!SNAPSHOT.test(text)) return false;
  const [xmin, xmax] = [xminOf(text), xmaxOf(text)];
  if (xmin === 0n || xmin > xmax || xmax > MAX_TXID) return false;
  let last = xmin;
  for (const transaction of runningOf(text)) {
    if (transaction < last || transaction >= xmax) return false;
    last = transaction;
  }
  return true;
}

/** Whether the snapshot sees everything that was delivered up to the position. */
export function isSeenBy(position: FeedPosition, snapshot: FeedPosition): boolean {
  const [earlier, later] = [parsePosition(position), parsePosition(snapshot)];
  if (earlier === undefined || later === undefined) return false;
  const reached = earlier.partial?.target ?? earlier.snapshot;
  const isVisible = transactionsOf(reached);
  // What the later one does not see: everything from its xmax on, and the transactions that ran when it was
  // taken.
  if (xmaxOf(reached) > xmaxOf(later.snapshot)) return false;
  return runningOf(later.snapshot).every((transaction) => !isVisible(transaction));
}

function runningOf(snapshot: string): bigint[] {
  const list = snapshot.split(":")[2]!;
  return list === "" ? [] : list.split(",").map(BigInt);
}

function transactionsOf(snapshot: string): (transaction: bigint) => boolean {
  const xmax = xmaxOf(snapshot);
  const running = new Set(runningOf(snapshot));
  return (transaction) => transaction < xmax && !running.has(transaction);
}

/** Every transaction below is finished, and seen if it committed. */
export function xminOf(snapshot: string): bigint {
  return BigInt(snapshot.slice(0, snapshot.indexOf(":")));
}

/** No transaction at or above had finished. */
export function xmaxOf(snapshot: string): bigint {
  return BigInt(snapshot.split(":")[1]!);
}

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
    { raw: true, rowMode: "array", isRepeated: true },
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
