/**
 * Exact search over vectors with ids, in one linear memory (4 GiB; beyond: ParallelVectorIndex).
 *
 * Answers are those of an exhaustive float64 computation over the stored float32 values: same ids, same order, same scores, whatever build runs.
 */
import { createShard } from "./create-shard.ts";
import { checkId, RowDirectory } from "./row-directory.ts";
import { type SearchOptions, type SearchResult, toQuery, toQueryMatrix, toShardSearch } from "./search-input.ts";
import { decodeSnapshot, encodeSnapshot } from "./snapshot.ts";
import { checkDimension, checkMatrix, toFloat32 } from "./vector-input.ts";
import type { ScanCounts, ShardHits, VectorShard } from "./vector-shard.ts";
import type { Build } from "./wasm-module.ts";

export interface VectorIndexOptions {
  /** 1 to 10,000. */
  dimension: number;
  /**
   * A directory to share with other indexes. Then `delete` removes only this index's vector and leaves the id its row; `rows.release(id)` removes
   * the id and its vectors in all indexes. Without it the index has a directory of its own and `delete` frees the row.
   */
  rows?: RowDirectory | undefined;
  /** At most this much memory, in bytes; default and maximum 4 GiB. */
  maximumMemoryBytes?: number | undefined;
}

export class VectorIndex {
  /** Which row belongs to which id; masks are made with it. */
  readonly rows: RowDirectory;
  readonly #shard: VectorShard;
  readonly #ownsRows: boolean;
  readonly #holder: { clearRow(row: number): void };

  private constructor(shard: VectorShard, rows: RowDirectory, ownsRows: boolean) {
    this.#shard = shard;
    this.rows = rows;
    this.#ownsRows = ownsRows;
    this.#holder = { clearRow: (row) => void shard.clear(row) };
    rows.attach(this.#holder);
  }

  /**
   * @throws {TypeError | RangeError} for a dimension that is not an integer from 1 to 10,000.
   * @throws {LodestoneError} OUT_OF_MEMORY when the memory allowed does not hold an empty index.
   */
  static async create(options: VectorIndexOptions): Promise<VectorIndex> {
    checkDimension(options.dimension);
    const rows = options.rows ?? new RowDirectory();
    const shard = await createShard({
      dimension: options.dimension,
      isIdBefore: (a, b) => rows.isBefore(a, b),
      maximumMemoryBytes: options.maximumMemoryBytes,
    });
    return new VectorIndex(shard, rows, options.rows === undefined);
  }

  /** Which build of the core runs; all give identical answers. */
  get build(): Build {
    return this.#shard.build;
  }

  get dimension(): number {
    return this.#shard.dimension;
  }

  /** How many ids have a vector here. */
  get size(): number {
    return this.#shard.size;
  }

  /** Rows of a mask: `rows.capacity`. */
  get capacity(): number {
    return this.rows.capacity;
  }

  /** Bytes of linear memory held. */
  get memoryBytes(): number {
    return this.#shard.memoryBytes;
  }

  /** What the last search read, for measurements. */
  get lastScan(): ScanCounts {
    return this.#shard.lastScan;
  }

  has(id: string): boolean {
    const row = this.rows.rowOf(id);
    return row !== undefined && this.#shard.has(row);
  }

  /** A copy of the stored float32 vector. */
  get(id: string): Float32Array | undefined {
    const row = this.rows.rowOf(id);
    return row === undefined ? undefined : this.#shard.read(row);
  }

  /**
   * Stores or replaces the vector of `id`, rounded to float32.
   *
   * @param vector  `dimension` finite numbers.
   * @throws {TypeError | RangeError} for a bad id or vector; {LodestoneError} OUT_OF_MEMORY at the limit. Then nothing has changed.
   */
  upsert(id: string, vector: ArrayLike<number>): void {
    checkId(id);
    const floats = toFloat32("vector", vector, this.dimension);
    const isNew = this.rows.rowOf(id) === undefined;
    const row = this.rows.add(id);
    try {
      this.#shard.set(row, floats);
    } catch (error) {
      if (isNew) this.rows.release(id);
      throw error;
    }
  }

  /**
   * Stores or replaces many vectors; an id that is given twice keeps the last.
   *
   * @param matrix  f32[ids.length × dimension], row-major, finite.
   * @throws as upsert; then nothing has changed.
   */
  upsertMany(ids: readonly string[], matrix: Float32Array): void {
    if (!Array.isArray(ids)) throw new TypeError("ids is not an array; expected an array of strings.");
    checkMatrix("matrix", matrix, ids.length, this.dimension);
    for (const id of ids) checkId(id);
    const added: string[] = [];
    const rows = ids.map((id) => {
      if (this.rows.rowOf(id) === undefined) added.push(id);
      return this.rows.add(id);
    });
    try {
      this.#shard.reserve(rows.reduce((most, row) => Math.max(most, row + 1), 0));
    } catch (error) {
      for (const id of added.reverse()) this.rows.release(id);
      throw error;
    }
    const d = this.dimension;
    for (let i = 0; i < rows.length; i++) this.#shard.set(rows[i]!, matrix.subarray(i * d, (i + 1) * d));
  }

  /** Removes the vector of `id`. @returns whether there was one. */
  delete(id: string): boolean {
    const row = this.rows.rowOf(id);
    if (row === undefined) return false;
    const had = this.#shard.clear(row);
    if (this.#ownsRows) this.rows.release(id);
    return had;
  }

  /**
   * The k best rows.
   *
   * @param query  `dimension` finite numbers, rounded to float32; not all zero for cosineSimilarity.
   * @throws {TypeError | RangeError} for a bad query, k, similarity or filter.
   */
  search(query: ArrayLike<number>, options: SearchOptions = {}): SearchResult {
    return this.#search([query], options, () => "query")[0]!;
  }

  /**
   * One answer for each of `queries`, which are scanned together.
   *
   * @throws as search.
   */
  searchMany(queries: readonly ArrayLike<number>[], options: SearchOptions = {}): SearchResult[] {
    return this.#search(queries, options, (i) => `queries[${i}]`);
  }

  /** One buffer that fromBytes reads: versioned and checksummed, the same in Node and browsers. */
  toBytes(): Uint8Array<ArrayBuffer> {
    const entries: [string, number][] = [];
    for (const entry of this.rows.entries()) if (this.#shard.has(entry[1])) entries.push(entry);
    entries.sort((a, b) => a[1] - b[1]);
    return encodeSnapshot(
      this.dimension,
      entries.map(([id]) => id),
      (i) => this.#shard.read(entries[i]![1])!,
    );
  }

  /**
   * The index that toBytes wrote.
   *
   * @param options.rows  shared directory, as in create; ids that it lacks are added.
   * @throws {LodestoneError} CORRUPT when the bytes are truncated, changed, or of another version.
   */
  static async fromBytes(bytes: Uint8Array, options: Omit<VectorIndexOptions, "dimension"> = {}): Promise<VectorIndex> {
    const { dimension, ids, matrix } = decodeSnapshot(bytes);
    const index = await VectorIndex.create({ ...options, dimension });
    index.upsertMany(ids, matrix);
    return index;
  }

  /** Drops the memory. The index cannot be used afterwards; a shared directory stays as it is. */
  free(): void {
    this.rows.detach(this.#holder);
    this.#shard.free();
  }

  #search(queries: readonly ArrayLike<number>[], options: SearchOptions, nameAt: (i: number) => string): SearchResult[] {
    const search = toShardSearch(options, this.rows);
    // One query is not copied on its way into linear memory: it shows where a filter leaves little else to do.
    const matrix =
      queries.length === 1
        ? toQuery(queries[0]!, this.dimension, search.similarity, nameAt(0))
        : toQueryMatrix(queries, this.dimension, search.similarity, nameAt);
    return this.#shard.search(matrix, search).map((hits) => this.#withIds(hits));
  }

  #withIds({ totalCount, rows, scores }: ShardHits): SearchResult {
    const results: SearchResult["results"] = [];
    for (let i = 0; i < rows.length; i++) results.push({ id: this.rows.idOf(rows[i]!)!, score: scores[i]! });
    return { totalCount, results };
  }
}
