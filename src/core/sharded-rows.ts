/**
 * The rows of an index over several shards: which of them have a vector, and their writes, each of which goes to the shards that have its
 * rows (row-writes.ts says which).
 *
 * Invariant: writes take effect in call order, whether or not their promises are awaited.
 */
import type { CheckedValues, RowColumns } from "./row-columns.ts";
import type { RowDirectory } from "./row-directory.ts";
import { RowWrites, rowInShard, type SetOptions, shardOfRow, VectorStaging } from "./row-writes.ts";
import type { RunningSaves } from "./saved-rows.ts";
import type { ShardClient } from "./shard-client.ts";
import { adoptRows } from "./shard-images.ts";

interface ShardedRowsOptions {
  readonly shards: readonly ShardClient[];
  readonly dimension: number;
  readonly rows: RowDirectory;
  /** Whether an id goes with its vector. */
  readonly ownsRows: boolean;
  readonly columns: RowColumns | undefined;
  /** Told before anything changes. */
  readonly saves: RunningSaves;
}

export class ShardedRows {
  readonly #shards: readonly ShardClient[];
  readonly #dimension: number;
  readonly #rows: RowDirectory;
  readonly #ownsRows: boolean;
  readonly #columns: RowColumns | undefined;
  readonly #saves: RunningSaves;
  readonly #writes = new RowWrites();
  readonly #staging = new VectorStaging();
  /** Number of the last write. */
  #write = 0;
  /** While many are deleted: the rows of each shard, to be sent together. */
  #cleared: number[][] | undefined;

  constructor({ shards, dimension, rows, ownsRows, columns, saves }: ShardedRowsOptions) {
    this.#shards = shards;
    this.#dimension = dimension;
    this.#rows = rows;
    this.#ownsRows = ownsRows;
    this.#columns = columns;
    this.#saves = saves;
  }

  /** Number of rows with a vector, writes in progress included. */
  get size(): number {
    return this.#writes.size;
  }

  has(row: number): boolean {
    return this.#writes.has(row);
  }

  /** Call it when the images are there: rows without an id are cleared. */
  async adopt(idOf: (row: number) => string | undefined): Promise<void> {
    const write = ++this.#write;
    await adoptRows(this.#shards, idOf, (row) => this.#writes.set(row, write));
  }

  /** Removes the vectors of these ids, with one message to each worker. @returns how many there were. */
  deleteAll(ids: readonly string[]): number {
    const cleared: number[][] = this.#shards.map(() => []);
    this.#cleared = cleared;
    const before = this.#writes.size;
    // Together: what saves keep is read with one message.
    for (const save of this.#saves) save.beforeChange(ids.flatMap((id) => this.#rows.rowOf(id) ?? []));
    for (const id of ids) {
      const row = this.#rows.rowOf(id);
      if (row === undefined) continue;
      if (this.#ownsRows) this.#rows.release(id);
      else this.clear(row);
    }
    this.#cleared = undefined;
    cleared.forEach((rows, shard) => {
      if (rows.length > 0) this.#sendClear(shard, rows);
    });
    return before - this.#writes.size;
  }

  /** Discards what a row holds. */
  clear(row: number): void {
    if (!this.#writes.has(row)) return;
    this.#saves.beforeChange([row]);
    this.#writes.clear(row, ++this.#write);
    const count = this.#shards.length;
    const [shard, own] = [shardOfRow(row, count), rowInShard(row, count)];
    if (this.#cleared !== undefined) this.#cleared[shard]!.push(own);
    else this.#sendClear(shard, [own]);
  }

  #sendClear(shard: number, rows: readonly number[]): void {
    // This fails only if the worker is dead, and every later call reports that.
    this.#shards[shard]!.call<"clear">({ type: "clear", rows: Uint32Array.from(rows) }).catch(() => {});
  }

  /** Splits the rows by shard and sends each shard its own, synchronously. */
  async set(
    all: readonly number[],
    ids: readonly string[],
    matrix: Float32Array,
    values: readonly (CheckedValues | undefined)[] | undefined,
    { isGiven = false, isDeferred = false }: SetOptions = {},
  ): Promise<void> {
    this.#saves.beforeChange(all);
    const count = this.#shards.length;
    const write = ++this.#write;
    /** For each shard the places of its rows in `all`. */
    const places: number[][] = this.#shards.map(() => []);
    /** By place: the row had no vector before. */
    const isNew = new Uint8Array(all.length);
    /** Values to restore if the write fails. */
    const before = new Map<number, CheckedValues | undefined>();
    for (let i = 0; i < all.length; i++) {
      const row = all[i]!;
      places[shardOfRow(row, count)]!.push(i);
      if (this.#writes.set(row, write)) isNew[i] = 1;
      if (values?.[i] !== undefined && !before.has(row)) before.set(row, this.#columns?.keep(row));
      this.#columns?.set(row, values?.[i]);
    }
    const sent = places.map(async (own, shard) => {
      if (own.length === 0) return;
      const isWhole = isGiven && own.length === all.length;
      const vectors = isWhole ? matrix : this.#staging.take(own.length * this.#dimension);
      if (!isWhole) gather(vectors, matrix, own, this.#dimension);
      const rows = Uint32Array.from(own, (i) => rowInShard(all[i]!, count));
      const transfer = vectors.buffer instanceof ArrayBuffer ? [vectors.buffer, rows.buffer] : [rows.buffer];
      try {
        await this.#shards[shard]!.call<"set">({ type: "set", rows, ids: own.map((i) => ids[i]!), matrix: vectors, isDeferred }, transfer);
      } finally {
        if (!isWhole) this.#staging.give(vectors);
      }
    });
    const settled = await Promise.allSettled(sent);
    const failed = settled.find((result) => result.status === "rejected");
    if (failed === undefined) return;
    // From the last row to the first: the row released last is assigned to the next new id, and what found no
    // room in a shard may find some at a lower row.
    const undone = places.flatMap((own, shard) => (settled[shard]!.status === "rejected" ? own : [])).sort((a, b) => all[b]! - all[a]!);
    for (const i of undone) {
      const row = all[i]!;
      if (!this.#writes.isLast(row, write)) continue;
      if (isNew[i] === 1) this.#forget(row);
      else if (before.has(row)) this.#columns?.set(row, before.get(row) ?? this.#columns.check({}));
    }
    throw failed.reason;
  }

  /** Undoes the first write of a row, after it failed. */
  #forget(row: number): void {
    this.#writes.clear(row, 0);
    // Now, so that saves which have not come to the row leave it out.
    this.#saves.beforeChange([row]);
    this.#columns?.clear(row);
    const id = this.#rows.idOf(row);
    if (this.#ownsRows && id !== undefined) this.#rows.release(id);
  }
}

/** Copies the vectors at `places` of the matrix, neighbours together. */
function gather(vectors: Float32Array, matrix: Float32Array, places: readonly number[], dimension: number): void {
  for (let start = 0, end = 1; start < places.length; start = end++) {
    while (end < places.length && places[end] === places[end - 1]! + 1) end++;
    vectors.set(matrix.subarray(places[start]! * dimension, (places[end - 1]! + 1) * dimension), start * dimension);
  }
}
