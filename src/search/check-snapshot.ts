/**
 * Verifies a branch's search snapshot against the records. The snapshot plus the changes since then must
 * equal, row for row and bit for bit, a full read of the records. Use it on a store that nobody writes to. It
 * holds the branch's search data in memory twice.
 */

import { createHash, type Hash } from "node:crypto";
import { join } from "node:path";
import type { ColumnValues } from "../columns/column-values.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";
import type { FeedBatch } from "../records/feed/feed-types.ts";
import type { BranchRef } from "../records/schema.ts";
import { BranchState } from "./branch-state.ts";
import { isDamaged } from "./column-index.ts";
import { type FollowedRecords, followedSchema } from "./followed-schema.ts";
import { branchKey } from "./search-messages.ts";
import { readBranchSnapshot } from "./snapshot/branch-snapshot.ts";
import { snapshotFileName } from "./snapshot/snapshot-schedule.ts";
import { VectorFolders } from "./vector-folders.ts";

export interface SnapshotCheck {
  /**
   * "outdated": of another schema, or too far back; it is not used and does no harm. "damaged": it fails its
   * checksums, and is not used either.
   */
  readonly snapshot: "none" | "sound" | "outdated" | "damaged";
  /** Rows in which a sound snapshot differs from the records. Each would be a wrong answer. */
  readonly differences: readonly string[];
  readonly detail?: string;
}

export async function checkSnapshot(records: FollowedRecords, ref: BranchRef, snapshotDir: string): Promise<SnapshotCheck> {
  const info = await records.branch(ref);
  let restored: Awaited<ReturnType<typeof readBranchSnapshot>>;
  try {
    const path = join(snapshotDir, snapshotFileName(branchKey(ref)));
    restored = await readBranchSnapshot(path, branchKey(ref), info.incarnation, { onDiskFromBytes: ON_DISK }, new VectorFolders());
  } catch (error) {
    if (error instanceof LodestoneError && error.code === "CORRUPT") return { snapshot: "damaged", differences: [], detail: error.message };
    throw error;
  }
  if (restored === null) return { snapshot: "none", differences: [] };
  const { state } = restored;
  const whole = await BranchState.create(info.incarnation, info.version, followedSchema(info), {});
  try {
    if (state.version !== info.version) return { snapshot: "outdated", differences: [], detail: "the schema has changed since" };
    for (let { position } = restored, complete = false; !complete; ) {
      const changes = await records.feed.readSince(ref, position, info.incarnation);
      if (changes === null) return { snapshot: "outdated", differences: [], detail: "the changes since are gone" };
      state.apply(changes.batches);
      await state.settled();
      ({ position, complete } = changes);
    }
    const tables = [...whole.schema.keys()];
    await records.feed.readAll(
      ref,
      tables.map((table) => ({ table })),
      async (batch) => whole.apply([batch]),
    );
    const differences: string[] = [];
    for (const table of tables) differences.push(...(await differencesIn(table, state, whole)));
    return { snapshot: "sound", differences };
  } catch (error) {
    if (isDamaged(error)) return { snapshot: "damaged", differences: [], detail: error.message };
    throw error;
  } finally {
    await Promise.all([state.free(), whole.free()]);
  }
}

const PIECE_BYTES = 1 << 20;
/** Vectors that are in files stay there. */
const ON_DISK = Number.MAX_VALUE;

async function differencesIn(table: string, state: BranchState, whole: BranchState): Promise<string[]> {
  const [found, expected] = [await digests(table, state), await digests(table, whole)];
  const ids = new Set([...found.keys(), ...expected.keys()]);
  return [...ids].flatMap((id) => {
    if (found.get(id) === expected.get(id)) return [];
    const how = !found.has(id) ? "is missing" : !expected.has(id) ? "was deleted" : "has other values";
    return [`record ${quoted(id)} of table ${quoted(table)} ${how} in the snapshot`];
  });
}

/** A digest of each row's values, by id. */
async function digests(table: string, state: BranchState): Promise<Map<string, string>> {
  const rows = new Map<string, string>();
  for await (const batch of state.read(table, PIECE_BYTES)) {
    const digests = rowDigests(batch);
    for (const [row, id] of batch.ids.entries()) rows.set(id, digests[row] as string);
  }
  return rows;
}

/** @returns in the order of `batch.ids`. Cost: one pass over the batch's values. */
function rowDigests(batch: FeedBatch): string[] {
  const hashes = batch.ids.map(() => createHash("sha256"));
  for (const [name, column] of [...batch.columns].sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (const hash of hashes) addText(hash, name);
    if (column.kind === "vector") addVectors(hashes, column);
    else {
      for (const [row, value] of column.values.entries()) {
        if ("omitted" in column && column.omitted?.has(row) === true) hashes[row]!.update("o");
        else addValue(hashes[row]!, value);
      }
    }
  }
  return hashes.map((hash) => hash.digest("base64"));
}

function addVectors(hashes: readonly Hash[], { dimension, rows, elements }: Extract<ColumnValues, { kind: "vector" }>): void {
  const present = new Set(rows);
  for (const [row, hash] of hashes.entries()) if (!present.has(row)) hash.update("n");
  for (const [place, row] of rows.entries()) {
    const vector = elements.subarray(place * dimension, (place + 1) * dimension);
    hashes[row]!.update("v").update(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength));
  }
}

/** -0 is another value than 0, as in PostgreSQL's text form; all NaN are one. */
function addValue(hash: Hash, value: string | number | bigint | boolean | (string | null)[] | null): void {
  if (Array.isArray(value)) {
    hash.update(`a${value.length}:`);
    for (const item of value) addValue(hash, item);
  } else addText(hash, Object.is(value, -0) ? "-0" : String(value), value === null ? "null" : typeof value);
}

function addText(hash: Hash, text: string, tag = "name"): void {
  hash.update(`${tag}${text.length}:${text}`);
}
