/**
 * The vectors of one column. A small column is one index in this thread. Beyond a size limit it is split into
 * shards, each in its own thread, because then a search outweighs the cost of messages. Answers are the same
 * either way. Row numbers are those of the table's directory.
 *
 * Writes take effect in call order, also relative to searches. They are not awaited; `settled` reports those
 * that failed.
 */
import { availableParallelism } from "node:os";
import { ParallelVectorIndex } from "../core/parallel-vector-index.ts";
import type { RowDirectory } from "../core/row-directory.ts";
import type { SearchOptions, SearchResult } from "../core/search-input.ts";
import type { Similarity } from "../core/similarity.ts";
import { VectorIndex } from "../core/vector-index.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";

export interface ColumnIndexOptions {
  readonly dimension: number;
  readonly rows: RowDirectory;
  /** The column is split into shards from this many bytes of float32 on; default 64 MiB. */
  readonly shardedFromBytes?: number | undefined;
}

const DEFAULT_SHARDED_FROM_BYTES = 64 * 2 ** 20;
/** A shard's memory is limited to 4 GiB, codes included, and growing needs free space. */
const SHARD_BYTES = 2 * 2 ** 30;
/** Number of bytes of vectors that are moved at a time from one index to the next. */
const MOVED_BYTES = 16 * 2 ** 20;

export class ColumnIndex {
  readonly dimension: number;
  readonly #rows: RowDirectory;
  readonly #shardedFromBytes: number;
  #index: VectorIndex | ParallelVectorIndex;
  #shardedMemoryBytes = 0;
  #writes: Promise<unknown>[] = [];
  /** Requests that shards have not answered yet. An index is not freed before they have. */
  readonly #reads = new Set<Promise<unknown>>();

  private constructor(index: VectorIndex, options: ColumnIndexOptions) {
    this.dimension = options.dimension;
    this.#rows = options.rows;
    this.#shardedFromBytes = options.shardedFromBytes ?? DEFAULT_SHARDED_FROM_BYTES;
    this.#index = index;
  }

  static async create(options: ColumnIndexOptions): Promise<ColumnIndex> {
    return new ColumnIndex(await VectorIndex.create({ dimension: options.dimension, rows: options.rows }), options);
  }

  get size(): number {
    return this.#index.size;
  }

  /** 0: the index is in this thread. */
  get shards(): number {
    return this.#index instanceof VectorIndex ? 0 : this.#index.shards;
  }

  /** With shards: as of the last `settled`. */
  get memoryBytes(): number {
    return this.#index instanceof VectorIndex ? this.#index.memoryBytes : this.#shardedMemoryBytes;
  }

  /** `rows` are the rows of the ids. The elements must be finite. */
  setRows(rows: readonly number[], ids: readonly string[], matrix: Float32Array): void {
    if (ids.length === 0) return;
    if (this.#index instanceof VectorIndex) this.#index.setRows(rows, matrix);
    else this.#writes.push(this.#index.setRows(rows, ids, matrix));
  }

  delete(id: string): void {
    if (this.#index instanceof VectorIndex) this.#index.delete(id);
    else this.#writes.push(this.#index.delete(id));
  }

  /** The vectors as of the moment of the call. */
  async getMany(ids: readonly string[]): Promise<(Float32Array | undefined)[]> {
    const index = this.#index;
    if (index instanceof VectorIndex) return ids.map((id) => index.get(id));
    return this.#read(index.getMany(ids));
  }

  /** Searches the state and the rows as of the moment of the call. */
  async searchMany(queries: readonly Float32Array[], options: SearchOptions): Promise<SearchResult[]> {
    if (this.#index instanceof VectorIndex) return this.#index.searchMany(queries, options);
    return this.#read(this.#index.searchMany(queries, options));
  }

  /** See scoreRows in core/score-rows.ts; as searchMany otherwise. */
  async scoreRows(query: Float32Array, rows: Uint32Array, similarity: Similarity): Promise<Float64Array> {
    if (this.#index instanceof VectorIndex) return this.#index.scoreRows(query, rows, similarity);
    return this.#read(this.#index.scoreRows(query, rows, similarity));
  }

  /**
   * Resolves when all writes so far have been applied and the column is split as its size requires. Do not
   * write meanwhile; searches may run.
   *
   * @throws {LodestoneError} OUT_OF_MEMORY: it is then unknown which writes were applied, and all have to be
   *   repeated.
   */
  async settled(): Promise<void> {
    const writes = this.#writes;
    this.#writes = [];
    const failed = (await Promise.allSettled(writes)).find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const wanted = this.#wantedShards();
    if (wanted > this.shards) await this.#cut(Math.max(wanted, 2 * this.shards));
    if (!(this.#index instanceof VectorIndex) && writes.length > 0) this.#shardedMemoryBytes = await this.#index.memoryBytes();
  }

  /** Pending requests are answered first. */
  async free(): Promise<void> {
    const index = this.#index;
    await Promise.allSettled(this.#reads);
    await index.free();
  }

  async #read<Result>(read: Promise<Result>): Promise<Result> {
    this.#reads.add(read);
    try {
      return await read;
    } finally {
      this.#reads.delete(read);
    }
  }

  #wantedShards(): number {
    const bytes = 4 * this.size * this.dimension;
    const bySize = Math.ceil(bytes / SHARD_BYTES);
    const byCores = bytes >= this.#shardedFromBytes ? availableParallelism() : 1;
    const wanted = Math.max(bySize, byCores);
    return wanted > 1 ? wanted : 0;
  }

  /** Moves the vectors to new shards. The old index answers searches until all are there. */
  async #cut(shards: number): Promise<void> {
    const next = await ParallelVectorIndex.create({ dimension: this.dimension, rows: this.#rows, shards });
    try {
      const step = Math.max(1, Math.floor(MOVED_BYTES / (4 * this.dimension)));
      let ids: string[] = [];
      let rows: number[] = [];
      const movePiece = async (): Promise<void> => {
        const vectors = await this.getMany(ids);
        const present = [...ids.keys()].filter((i) => vectors[i] !== undefined);
        const matrix = new Float32Array(present.length * this.dimension);
        present.forEach((i, to) => {
          matrix.set(vectors[i]!, to * this.dimension);
        });
        await next.setRows(
          present.map((i) => rows[i]!),
          present.map((i) => ids[i]!),
          matrix,
        );
        ids = [];
        rows = [];
      };
      for (const [id, row] of this.#rows.entries()) {
        rows.push(row);
        if (ids.push(id) === step) await movePiece();
      }
      await movePiece();
    } catch (error) {
      await next.free();
      throw error;
    }
    const before = this.#index;
    this.#index = next;
    this.#shardedMemoryBytes = await next.memoryBytes();
    await Promise.allSettled(this.#reads);
    await before.free();
  }
}

/** Whether a thread of a column died, and its vectors with it. */
export function isLost(error: unknown): boolean {
  return error instanceof LodestoneError && error.code === "UNAVAILABLE";
}
