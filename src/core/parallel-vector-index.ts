/**
 * VectorIndex over several shards, each in a worker with a linear memory of its own: searches use several cores and columns may be larger than 4 GiB. The same
 * answers, as promises. Only queries and lists of the best travel. No SharedArrayBuffer is needed; where there is one, shards skip what others have outdone.
 *
 * Invariant: operations take effect in the order in which they are called, whether or not their promises are awaited.
 */
import { compareText } from "../code-point-order.ts";
import { nodeModule } from "./node-modules.ts";
import { maskOfShard, rowInShard, shardOfRow } from "./row-blocks.ts";
import { checkId, RowDirectory } from "./row-directory.ts";
import { type SearchOptions, type SearchResult, toQueryMatrix, toShardSearch } from "./search-input.ts";
import { ShardClient } from "./shard-client.ts";
import type { ShardAnswer } from "./shard-messages.ts";
import { decodeSnapshot, encodeSnapshot } from "./snapshot.ts";
import { createExchange } from "./threshold-exchange.ts";
import { checkDimension, checkMatrix, toFloat32 } from "./vector-input.ts";
import { type Build, coreModule } from "./wasm-module.ts";

export interface ParallelVectorIndexOptions {
  /** 1 to 10,000. */
  dimension: number;
  /** How many workers; default: as many as there are processors. */
  shards?: number | undefined;
  /** A directory to share with other indexes; see VectorIndexOptions. */
  rows?: RowDirectory | undefined;
  /** At most this much memory for each shard, in bytes; default and maximum 4 GiB. */
  maximumMemoryBytes?: number | undefined;
}

export class ParallelVectorIndex {
  readonly dimension: number;
  readonly rows: RowDirectory;
  /** Which build of the core runs; all give identical answers. */
  readonly build: Build;
  readonly #shards: readonly ShardClient[];
  readonly #ownsRows: boolean;
  readonly #holder = { clearRow: (row: number) => this.#clear(row) };
  /** Rows that have a vector, and the number of the write that last changed each. */
  readonly #live = new Set<number>();
  readonly #writes = new Map<number, number>();
  #write = 0;

  private constructor(dimension: number, rows: RowDirectory, ownsRows: boolean, shards: readonly ShardClient[], build: Build) {
    this.dimension = dimension;
    this.rows = rows;
    this.build = build;
    this.#ownsRows = ownsRows;
    this.#shards = shards;
    rows.attach(this.#holder);
  }

  /** @throws {TypeError | RangeError} for a bad dimension or number of shards; {LodestoneError} UNAVAILABLE when workers cannot be started. */
  static async create(options: ParallelVectorIndexOptions): Promise<ParallelVectorIndex> {
    const { dimension, maximumMemoryBytes } = options;
    checkDimension(dimension);
    const count = options.shards ?? availableProcessors();
    if (!Number.isInteger(count) || count < 1 || count > 1024)
      throw new RangeError(`shards is ${count}; expected an integer from 1 to 1024.`);
    const module = await coreModule();
    const shards = await startAll(count);
    try {
      const builds = await Promise.all(shards.map((shard) => shard.call<"open">({ type: "open", dimension, module, maximumMemoryBytes })));
      return new ParallelVectorIndex(dimension, options.rows ?? new RowDirectory(), options.rows === undefined, shards, builds[0]!);
    } catch (error) {
      await Promise.all(shards.map((shard) => shard.stop()));
      throw error;
    }
  }

  /** How many ids have a vector here, counting writes that are under way. */
  get size(): number {
    return this.#live.size;
  }

  /** Rows of a mask: `rows.capacity`. */
  get capacity(): number {
    return this.rows.capacity;
  }

  get shards(): number {
    return this.#shards.length;
  }

  /** Bytes of linear memory held by all shards. */
  async memoryBytes(): Promise<number> {
    const bytes = await Promise.all(this.#shards.map((shard) => shard.call<"memory">({ type: "memory" })));
    return bytes.reduce((sum, own) => sum + own, 0);
  }

  async has(id: string): Promise<boolean> {
    const row = this.rows.rowOf(id);
    return row !== undefined && this.#live.has(row);
  }

  /** A copy of the stored float32 vector. */
  async get(id: string): Promise<Float32Array | undefined> {
    const row = this.rows.rowOf(id);
    if (row === undefined || !this.#live.has(row)) return undefined;
    return this.#read([row]);
  }

  /** As VectorIndex.upsert. */
  async upsert(id: string, vector: ArrayLike<number>): Promise<void> {
    checkId(id);
    await this.#set([id], toFloat32("vector", vector, this.dimension));
  }

  /**
   * As VectorIndex.upsertMany; `matrix` is read before the call returns. When a shard runs out of memory, the ids of that shard are as before and
   * those of the others are stored.
   */
  async upsertMany(ids: readonly string[], matrix: Float32Array): Promise<void> {
    if (!Array.isArray(ids)) throw new TypeError("ids is not an array; expected an array of strings.");
    checkMatrix("matrix", matrix, ids.length, this.dimension);
    for (const id of ids) checkId(id);
    await this.#set(ids, matrix);
  }

  /** Removes the vector of `id`. @returns whether there was one. */
  async delete(id: string): Promise<boolean> {
    const row = this.rows.rowOf(id);
    if (row === undefined) return false;
    const had = this.#live.has(row);
    if (this.#ownsRows) this.rows.release(id);
    else this.#clear(row);
    return had;
  }

  /** As VectorIndex.search. */
  async search(query: ArrayLike<number>, options: SearchOptions = {}): Promise<SearchResult> {
    return (await this.#search([query], options, () => "query"))[0]!;
  }

  /** As VectorIndex.searchMany. */
  async searchMany(queries: readonly ArrayLike<number>[], options: SearchOptions = {}): Promise<SearchResult[]> {
    return this.#search(queries, options, (i) => `queries[${i}]`);
  }

  /** As VectorIndex.toBytes, in the same format. */
  async toBytes(): Promise<Uint8Array<ArrayBuffer>> {
    const rows = [...this.#live].sort((a, b) => a - b);
    const ids = rows.map((row) => this.rows.idOf(row)!);
    const d = this.dimension;
    const matrix = await this.#read(rows);
    return encodeSnapshot(d, ids, (i) => matrix.subarray(i * d, (i + 1) * d));
  }

  /** The index that toBytes of either kind of index wrote. @throws {LodestoneError} CORRUPT. */
  static async fromBytes(bytes: Uint8Array, options: Omit<ParallelVectorIndexOptions, "dimension"> = {}): Promise<ParallelVectorIndex> {
    const { dimension, ids, matrix } = decodeSnapshot(bytes);
    const index = await ParallelVectorIndex.create({ ...options, dimension });
    await index.upsertMany(ids, matrix);
    return index;
  }

  /** Ends the workers. The index cannot be used afterwards; a shared directory stays as it is. */
  async free(): Promise<void> {
    this.rows.detach(this.#holder);
    await Promise.all(this.#shards.map((shard) => shard.stop()));
  }

  /** Vectors of rows that are live, f32[rows.length × dimension]. */
  async #read(rows: readonly number[]): Promise<Float32Array> {
    const d = this.dimension;
    const count = this.#shards.length;
    const matrix = new Float32Array(rows.length * d);
    const parts = this.#shards.map(() => ({ to: [] as number[], rows: [] as number[] }));
    rows.forEach((row, i) => {
      const part = parts[shardOfRow(row, count)]!;
      part.to.push(i);
      part.rows.push(rowInShard(row, count));
    });
    await Promise.all(
      parts.map(async (part, shard) => {
        if (part.rows.length === 0) return;
        const own = await this.#shards[shard]!.call<"read">({ type: "read", rows: Uint32Array.from(part.rows) });
        part.to.forEach((to, i) => {
          matrix.set(own.subarray(i * d, (i + 1) * d), to * d);
        });
      }),
    );
    return matrix;
  }

  #clear(row: number): void {
    if (!this.#live.delete(row)) return;
    this.#writes.set(row, ++this.#write);
    const count = this.#shards.length;
    // A failure here is that of a dead worker, which every later call reports.
    this.#shards[shardOfRow(row, count)]!.call<"clear">({ type: "clear", row: rowInShard(row, count) }).catch(() => {});
  }

  /** Cuts the rows by shard and sends each its own, in this very turn of the event loop. */
  async #set(ids: readonly string[], matrix: Float32Array): Promise<void> {
    const d = this.dimension;
    const count = this.#shards.length;
    const write = ++this.#write;
    const parts = this.#shards.map(() => ({ from: [] as number[], rows: [] as number[], added: [] as number[] }));
    ids.forEach((id, i) => {
      const row = this.rows.add(id);
      const part = parts[shardOfRow(row, count)]!;
      part.from.push(i);
      part.rows.push(row);
      if (!this.#live.has(row)) part.added.push(row);
      this.#live.add(row);
      this.#writes.set(row, write);
    });
    const sent = parts.map(async ({ from, rows, added }, shard) => {
      if (rows.length === 0) return;
      const own = new Float32Array(rows.length * d);
      from.forEach((i, to) => {
        own.set(matrix.subarray(i * d, (i + 1) * d), to * d);
      });
      const local = Uint32Array.from(rows, (row) => rowInShard(row, count));
      try {
        await this.#shards[shard]!.call<"set">({ type: "set", rows: local, ids: from.map((i) => ids[i]!), matrix: own }, [
          own.buffer,
          local.buffer,
        ]);
      } catch (error) {
        for (const row of added) if (this.#writes.get(row) === write) this.#forget(row);
        throw error;
      }
    });
    const failed = (await Promise.allSettled(sent)).find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /** A row whose first write failed. */
  #forget(row: number): void {
    this.#live.delete(row);
    const id = this.rows.idOf(row);
    if (this.#ownsRows && id !== undefined) this.rows.release(id);
  }

  async #search(queries: readonly ArrayLike<number>[], options: SearchOptions, nameAt: (i: number) => string): Promise<SearchResult[]> {
    const search = toShardSearch(options, this.rows);
    const matrix = toQueryMatrix(queries, this.dimension, search.similarity, nameAt);
    const count = this.#shards.length;
    const exchange = queries.length === 1 ? createExchange(count, search.k) : undefined;
    const answers = await Promise.all(
      this.#shards.map((shard, i) => {
        const mask = search.mask && maskOfShard(search.mask, i, count);
        return shard.call<"search">(
          { type: "search", queries: matrix, search: { ...search, mask }, shard: i, exchange },
          mask ? [mask.buffer] : [],
        );
      }),
    );
    return queries.map((_, i) =>
      merge(
        answers.map((own) => own[i]!),
        search.k,
      ),
    );
  }
}

/** The k best of all shards' best. */
function merge(answers: readonly ShardAnswer[], k: number): SearchResult {
  const results = answers.flatMap(({ ids, scores }) => ids.map((id, i) => ({ id, score: scores[i]! })));
  results.sort((a, b) => b.score - a.score || compareText(a.id, b.id));
  results.length = Math.min(results.length, k);
  return { totalCount: answers.reduce((sum, answer) => sum + answer.totalCount, 0), results };
}

/** All of them, or none: what did start is ended when one does not. */
async function startAll(count: number): Promise<ShardClient[]> {
  const started = await Promise.allSettled(Array.from({ length: count }, () => ShardClient.start()));
  const failed = started.find((result) => result.status === "rejected");
  const shards = started.filter((result) => result.status === "fulfilled").map(({ value }) => value);
  if (failed === undefined) return shards;
  await Promise.all(shards.map((shard) => shard.stop()));
  throw failed.reason;
}

function availableProcessors(): number {
  if (typeof navigator !== "undefined" && navigator.hardwareConcurrency > 0) return navigator.hardwareConcurrency;
  return nodeModule("node:os")?.availableParallelism() ?? 1;
}
