/**
 * The vectors of one column. A small column is one index in this thread. Beyond a size limit it is split into
 * shards, each in its own thread, because then a search outweighs the cost of messages. Beyond another one the shards
 * keep their float32 in files. Answers are the same either way. Row numbers are those of the table's directory.
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

/** Where large columns go. */
export interface ColumnPlacement {
  /** A column is split into shards from this many bytes of float32 on; default 64 MiB. */
  readonly shardedFromBytes?: number | undefined;
  /** From this many bytes of float32 on the vectors of a column are in files; Infinity: never. */
  readonly onDiskFromBytes?: number | undefined;
  /** Makes the folder of a column's files; undefined: there are no files, or not any more. */
  readonly newFolder?: (() => Promise<string | undefined>) | undefined;
  /** Called when the index of a folder was freed. */
  readonly closeFolder?: ((folder: string) => void) | undefined;
}

export interface ColumnIndexOptions extends ColumnPlacement {
  readonly dimension: number;
  readonly rows: RowDirectory;
}

const DEFAULT_SHARDED_FROM_BYTES = 64 * 2 ** 20;
/** A shard's memory is limited to 4 GiB, codes included, and growing needs free space. */
const SHARD_BYTES = 2 * 2 ** 30;
/** With float32 in files it holds a third of that. */
const SHARD_BYTES_ON_DISK = 6 * 2 ** 30;
/** Below this, memory would hardly be less: what there is beside the float32 takes 60 bytes a row besides the codes. */
const MIN_DIMENSION_ON_DISK = 128;
/** Number of bytes of vectors that are moved at a time from one index to the next. */
const MOVED_BYTES = 16 * 2 ** 20;

export class ColumnIndex {
  readonly dimension: number;
  readonly #rows: RowDirectory;
  readonly #placement: ColumnPlacement;
  #index: VectorIndex | ParallelVectorIndex;
  /** Of its files. */
  #folder: string | undefined;
  /** There are no files any more. */
  #hasNoFolder = false;
  /** False: its rows are still being brought by images. */
  #isWhole = true;
  /** Of shards. */
  #usage = { memoryBytes: 0, fileBytes: 0 };
  #writes: Promise<unknown>[] = [];
  /** Requests that shards have not answered yet. An index is not freed before they have. */
  readonly #reads = new Set<Promise<unknown>>();

  private constructor(index: VectorIndex | ParallelVectorIndex, { dimension, rows, ...placement }: ColumnIndexOptions) {
    this.dimension = dimension;
    this.#rows = rows;
    this.#placement = placement;
    this.#index = index;
  }

  static async create(options: ColumnIndexOptions): Promise<ColumnIndex> {
    return new ColumnIndex(await VectorIndex.create({ dimension: options.dimension, rows: options.rows }), options);
  }

  /** One whose files are there: `loadImage` and `adoptRows` bring their rows. */
  static async reopen(options: ColumnIndexOptions, folder: string, shards: number): Promise<ColumnIndex> {
    const { dimension, rows } = options;
    const index = new ColumnIndex(await ParallelVectorIndex.create({ dimension, rows, shards, vectors: folder }), options);
    index.#folder = folder;
    index.#isWhole = false;
    return index;
  }

  /** The folder of its files; undefined: its vectors are in memory. */
  get folder(): string | undefined {
    return this.#folder;
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
    return this.#index instanceof VectorIndex ? this.#index.memoryBytes : this.#usage.memoryBytes;
  }

  /** Of its files, as of the last `settled`. */
  get fileBytes(): number {
    return this.#usage.fileBytes;
  }

  /** Pieces of the images of its shards (core/shard-image.ts), while changes and searches continue. Only with a folder. */
  images(): AsyncIterable<Uint8Array> {
    return this.#onDisk().images();
  }

  /** @param isKept  whether the images that were read are on disk, and those before them are not needed any more. */
  async endImages(isKept: boolean): Promise<void> {
    await this.#onDisk().endImages(isKept);
  }

  /** Takes in a piece; undefined after the last. @throws {LodestoneError} CORRUPT. */
  async loadImage(piece: Uint8Array<ArrayBuffer> | undefined): Promise<void> {
    await this.#onDisk().loadImage(piece);
  }

  /** Call it when the images are there: rows for which `isKept` is false are cleared. */
  async adoptRows(isKept: (row: number) => boolean): Promise<void> {
    await this.#onDisk().adoptRows(isKept);
    this.#isWhole = true;
    this.#usage = await this.#onDisk().usage();
  }

  #onDisk(): ParallelVectorIndex {
    if (this.#folder === undefined || this.#index instanceof VectorIndex) throw new TypeError("The vectors of this column are in memory.");
    return this.#index;
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
    if (!this.#isWhole) return;
    const isOnDisk = this.#belongsOnDisk();
    const wanted = this.#wantedShards(isOnDisk);
    if (wanted > this.shards || isOnDisk !== (this.#folder !== undefined)) {
      await this.#cut(wanted > this.shards ? Math.max(wanted, 2 * this.shards) : this.shards, isOnDisk);
    }
    if (!(this.#index instanceof VectorIndex) && writes.length > 0) this.#usage = await this.#index.usage();
  }

  /** Pending requests are answered first. */
  async free(): Promise<void> {
    const index = this.#index;
    await Promise.allSettled(this.#reads);
    await index.free();
    if (this.#folder !== undefined) this.#placement.closeFolder?.(this.#folder);
  }

  async #read<Result>(read: Promise<Result>): Promise<Result> {
    this.#reads.add(read);
    try {
      return await read;
    } finally {
      this.#reads.delete(read);
    }
  }

  get #floatBytes(): number {
    return 4 * this.size * this.dimension;
  }

  #belongsOnDisk(): boolean {
    const { newFolder, onDiskFromBytes = Number.POSITIVE_INFINITY } = this.#placement;
    // Once there it stays there, unless nothing is to be.
    if (this.#folder !== undefined) return onDiskFromBytes < Number.POSITIVE_INFINITY;
    return newFolder !== undefined && !this.#hasNoFolder && this.dimension >= MIN_DIMENSION_ON_DISK && this.#floatBytes >= onDiskFromBytes;
  }

  #wantedShards(isOnDisk: boolean): number {
    const bySize = Math.ceil(this.#floatBytes / (isOnDisk ? SHARD_BYTES_ON_DISK : SHARD_BYTES));
    const isSharded = isOnDisk || this.#floatBytes >= (this.#placement.shardedFromBytes ?? DEFAULT_SHARDED_FROM_BYTES);
    const wanted = Math.max(bySize, isSharded ? availableParallelism() : 1);
    return isOnDisk || wanted > 1 ? wanted : 0;
  }

  /** Moves the vectors to new shards. The old index answers searches until all are there. */
  async #cut(shards: number, isOnDisk: boolean): Promise<void> {
    const folder = isOnDisk ? await this.#placement.newFolder?.() : undefined;
    if (isOnDisk && folder === undefined) this.#hasNoFolder = true;
    const next = await ParallelVectorIndex.create({ dimension: this.dimension, rows: this.#rows, shards, vectors: folder }).catch(
      (error: unknown) => {
        if (folder !== undefined) this.#placement.closeFolder?.(folder);
        throw error;
      },
    );
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
      if (folder !== undefined) this.#placement.closeFolder?.(folder);
      throw error;
    }
    const [before, folderBefore] = [this.#index, this.#folder];
    this.#index = next;
    this.#folder = folder;
    this.#usage = await next.usage();
    await Promise.allSettled(this.#reads);
    await before.free();
    if (folderBefore !== undefined) this.#placement.closeFolder?.(folderBefore);
  }
}

/** Whether the files of a column are not what was written. */
export function isDamaged(error: unknown): error is LodestoneError {
  return error instanceof LodestoneError && error.code === "CORRUPT";
}

/** Whether a thread of a column died, and its vectors with it. */
export function isLost(error: unknown): boolean {
  return error instanceof LodestoneError && error.code === "UNAVAILABLE";
}
