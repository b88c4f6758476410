/** The second half of a read of changes: the values that the changed records have now, in statements of bounded size. */
import type { TransactionConnection } from "../engine/engine.ts";
import type { FeedBatch } from "./feed-types.ts";
import { partIndexOf } from "./part.ts";
import type { OutboxRow } from "./position.ts";
import { BATCH, type RecordReader } from "./record-reader.ts";

/** How large the values of a read may become before it is cut short. */
const READ_BYTES = 4_000_000;
/**
 * How many rows are read together at first: doubled while their values turn out small, reduced when they turn
 * out large.
 */
export const FIRST_CHUNK = 64;

/**
 * The current values of the records that `rows` name, as far as they fit. `taken` of the rows are covered, at
 * least one. `size` is that of the next chunk. Rows of tables without a reader are skipped. No more is held than
 * READ_BYTES and one record, or one piece.
 */
export async function readValues(
  connection: TransactionConnection,
  rows: readonly OutboxRow[],
  firstSize: number,
  isCareful: boolean,
  readerOfTable: (physicalName: string) => RecordReader | undefined,
): Promise<{ batches: FeedBatch[]; taken: number; bytes: number; size: number }> {
  const batches: FeedBatch[] = [];
  const delivered = new Map<string, Set<string>>();
  let taken = 0;
  let bytes = 0;
  let size = firstSize;
  while (taken < rows.length && bytes < READ_BYTES) {
    const chunk = rows.slice(taken, taken + size);
    const changed = changedIds(chunk, delivered);
    const read = await readChunk(connection, changed, isCareful, readerOfTable);
    if (read === null) {
      size = Math.max(1, size >> 3);
      continue;
    }
    for (const [table, ids] of changed) delivered.set(table, new Set([...(delivered.get(table) ?? []), ...ids]));
    batches.push(...read.batches);
    bytes += read.bytes;
    taken += chunk.length;
    // As many as a piece should hold, by what they took so far.
    size = Math.max(1, Math.min(2 * size, BATCH.maxRecords, Math.floor((BATCH.maxBytes * taken) / (2 * Math.max(1, bytes)))));
  }
  return { batches, taken, bytes, size };
}

/** null: that many records are more than a piece each table. A single record never is. */
async function readChunk(
  connection: TransactionConnection,
  changed: ReadonlyMap<string, readonly string[]>,
  isCareful: boolean,
  readerOfTable: (physicalName: string) => RecordReader | undefined,
): Promise<{ batches: FeedBatch[]; bytes: number } | null> {
  const batches: FeedBatch[] = [];
  let bytes = 0;
  for (const [physicalName, all] of changed) {
    const reader = readerOfTable(physicalName);
    if (reader === undefined) continue;
    const { part } = reader;
    const ids = part === undefined ? all : all.filter((id) => partIndexOf(id, part.of) === part.index);
    if (ids.length === 0) continue;
    const piece = await reader.read(connection, undefined, { ids, isCareful });
    if (piece.last !== undefined && piece.batch.ids.length < ids.length && ids.length > 1) return null;
    const found = new Set(piece.batch.ids);
    batches.push({ ...piece.batch, deleted: ids.filter((id) => !found.has(id)) });
    bytes += piece.bytes;
  }
  return { batches, bytes };
}

/** By table, each record once in the whole read. */
function changedIds(rows: readonly OutboxRow[], delivered: ReadonlyMap<string, ReadonlySet<string>>): Map<string, string[]> {
  const changed = new Map<string, Set<string>>();
  for (const { table, id } of rows) {
    if (delivered.get(table)?.has(id) === true) continue;
    const ids = changed.get(table) ?? new Set();
    changed.set(table, ids.add(id));
  }
  return new Map([...changed].map(([table, ids]) => [table, [...ids]]));
}
