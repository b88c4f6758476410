/**
 * Exact search over vectors with ids, in one linear memory (4 GiB; for more see ParallelVectorIndex).
 *
 * Answers equal those of an exhaustive float64 computation over the stored float32 values: same ids, same
 * order, same scores, whichever build runs.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { checkBytes, checkIds, checkMany } from "./batch-input.ts";
import type { ByteSource, ByteStream } from "./byte-stream.ts";
import { createShard } from "./create-shard.ts";
import { checkIndexOptions, checkType } from "./options.ts";
import type { ColumnName, RowColumns, RowOf, ValuesOf } from "./row-columns.ts";
import { checkId, RowDirectory } from "./row-directory.ts";
import { RunningSaves, SavedRows } from "./saved-rows.ts";
import { scoreRows } from "./score-rows.ts";
import {
  type SearchOptions,
  type SearchPlan,
  type SearchResult,
  toQuery,
  toQueryMatrix,
  toSearchPlan,
  toSearchResult,
  withColumns,
} from "./search-input.ts";
import { startLoader } from "./shard-image.ts";
import type { Similarity } from "./similarity.ts";
import { isTextSearch, type TextSearch, type TextSearchResult } from "./text-search.ts";
import { loadSnapshot, snapshotBytes, snapshotStream, type TransferOptions } from "./transfer.ts";
import { checkDimension, toFloat32 } from "./vector-input.ts";
import type { ScanCounts, ShardHits, VectorShard } from "./vector-shard.ts";
import type { VectorStore } from "./vector-store.ts";
import type { Build } from "./wasm-module.ts";

export interface VectorIndexOptions<Columns extends RowColumns = RowColumns> {
  /** 1 to 10,000. */
  dimension: number;
  /**
   * A directory to share with other indexes. `delete` then removes only this index's vector, and the id keeps
   * its row; `rows.release(id)` removes the id and its vectors in all indexes. Without it the index has its
   * own directory and `delete` frees the row.
   */
  rows?: RowDirectory | undefined;
  /** Memory limit in bytes; default and maximum 4 GiB. */
  maximumMemoryBytes?: number | undefined;
  /**
   * Values beside the vectors, for filters and to return with results: `new Columns({ year: "int" })`.
   * Indexes that share a directory also share its columns.
   */
  columns?: Columns | undefined;
  /**
   * Where the float32 vectors are kept; default: in memory. With a file, memory holds only their codes, a third of their
   * size, and a search reads the few vectors that it scores; the answers are the same: `new VectorStore(file)` with
   * `openVectorFile(path)` in Node, in a browser's worker with a `FileSystemSyncAccessHandle`. The index does not close the
   * file. Without effect on dimensions below 48 and where WebAssembly does not run.
   */
  vectors?: VectorStore | undefined;
}

/** Options of fromBytes and fromStream. */
export type LoadIndexOptions<Columns extends RowColumns = RowColumns> = Omit<VectorIndexOptions<Columns>, "dimension"> & TransferOptions;

export class VectorIndex<Columns extends RowColumns = RowColumns> {
  /** Bundlers rename classes. */
  static readonly name: string = "VectorIndex";
  /** Maps ids to rows. Use it to make masks. */
  readonly rows: RowDirectory;
  readonly #shard: VectorShard;
  readonly #ownsRows: boolean;
  readonly #columns: RowColumns | undefined;
  readonly #holder: { clearRow(row: number): void };
  readonly #saves = new RunningSaves();
  #loader: ((piece: Uint8Array | undefined) => void) | undefined;

  private constructor(shard: VectorShard, rows: RowDirectory, ownsRows: boolean, columns: RowColumns | undefined) {
    this.#shard = shard;
    this.rows = rows;
    this.#ownsRows = ownsRows;
    this.#columns = columns;
    this.#holder = {
      clearRow: (row) => {
        this.#saves.beforeChange([row]);
        shard.clear(row);
      },
    };
    rows.attach(this.#holder);
  }

  /**
   * @throws {TypeError | RangeError} for a dimension that is not an integer from 1 to 10,000, a bad memory
   *   limit, or an unknown option.
   * @throws {LodestoneError} OUT_OF_MEMORY when the memory limit is too small for an empty index.
   */
  static async create<Columns extends RowColumns = RowColumns>(options: VectorIndexOptions<Columns>): Promise<VectorIndex<Columns>> {
    checkIndexOptions(options);
    checkDimension(options.dimension);
    const rows = options.rows ?? new RowDirectory();
    options.columns?.bind(rows);
    const { vectors } = options;
    checkType(vectors === undefined || typeof vectors?.open === "function", "vectors", vectors, "a VectorStore");
    const shard = await createShard({
      dimension: options.dimension,
      isIdBefore: (a, b) => rows.isBefore(a, b),
      maximumMemoryBytes: options.maximumMemoryBytes,
      vectors,
    });
    return new VectorIndex(shard, rows, options.rows === undefined, options.columns);
  }

  /** Which build of the core runs. All builds give identical answers. */
  get build(): Build {
    return this.#shard.build;
  }

  get dimension(): number {
    return this.#shard.dimension;
  }

  /** Number of ids with a vector in this index. */
  get size(): number {
    return this.#shard.size;
  }

  /** Number of rows of a mask: `rows.capacity`. */
  get capacity(): number {
    return this.rows.capacity;
  }

  /** Bytes of linear memory held. */
  get memoryBytes(): number {
    return this.#shard.memoryBytes;
  }

  /** Bytes of the file of the vectors; 0 when they are in memory. */
  get fileBytes(): number {
    return this.#shard.fileBytes;
  }

  /** Whether the vectors are in a file. @internal */
  get isOutside(): boolean {
    return this.#shard.isOutside;
  }

  /** What the last search read; for measurements. */
  get lastScan(): ScanCounts {
    return this.#shard.lastScan;
  }

  has(id: string): boolean {
    const row = this.#rowOf(id);
    return row !== undefined && this.#shard.has(row);
  }

  /** A copy of the stored float32 vector. */
  get(id: string): Float32Array | undefined {
    const row = this.#rowOf(id);
    return row === undefined ? undefined : this.#shard.read(row);
  }

  /** Like `get` for each id; undefined for ids without a vector. */
  getMany(ids: readonly string[]): (Float32Array | undefined)[] {
    checkIds(ids);
    return ids.map((id) => this.get(id));
  }

  /** Ids with a vector and copies of these, in no defined order. Do not change the index while iterating. */
  *entries(): IterableIterator<[string, Float32Array]> {
    for (const [id, row] of this.rows.entries()) {
      const vector = this.#shard.read(row);
      if (vector !== undefined) yield [id, vector];
    }
  }

  [Symbol.iterator](): IterableIterator<[string, Float32Array]> {
    return this.entries();
  }

  /**
   * The values of `id`, of all columns or of the named ones; undefined for an id without a vector.
   * @throws {LodestoneError} INVALID for an unknown name.
   */
  getColumns(id: string, names?: readonly ColumnName<Columns>[]): RowOf<Columns> | undefined {
    const row = this.#rowOf(id);
    const columns = withColumns(this.#columns, "getColumns");
    if (names !== undefined) columns.checkNames(names);
    return row === undefined || !this.#shard.has(row) ? undefined : columns.get(row, names);
  }

  /**
   * Stores or replaces the vector of `id`, rounded to float32.
   *
   * @param vector  `dimension` finite numbers.
   * @param values  of the index's columns. They replace all previous values; a column that is not named then
   *   has none. If omitted, the id keeps its values.
   * @throws {TypeError | RangeError} for a bad id or vector; {LodestoneError} INVALID for bad values,
   *   OUT_OF_MEMORY at the limit. Nothing has changed then.
   */
  upsert(id: string, vector: ArrayLike<number>, values?: ValuesOf<Columns>): void {
    checkId(id);
    const floats = toFloat32("vector", vector, this.dimension);
    const checked = values && withColumns(this.#columns, "values").check(values);
    const isNew = this.rows.rowOf(id) === undefined;
    const row = this.rows.add(id);
    this.#saves.beforeChange([row]);
    try {
      this.#shard.set(row, floats);
    } catch (error) {
      if (isNew) this.rows.release(id);
      throw error;
    }
    this.#columns?.set(row, checked);
  }

  /**
   * Stores or replaces many vectors. If an id is given twice, the last one counts.
   *
   * @param matrix  f32[ids.length × dimension], row-major, finite.
   * @param values  for each id, as for upsert.
   * @throws as upsert; nothing has changed then.
   */
  upsertMany(ids: readonly string[], matrix: Float32Array, values?: readonly (ValuesOf<Columns> | undefined)[]): void {
    const checked = checkMany(ids, matrix, this.dimension, values, this.#columns);
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
    this.#saves.beforeChange(rows);
    const d = this.dimension;
    for (let i = 0; i < rows.length; i++) this.#shard.set(rows[i]!, matrix.subarray(i * d, (i + 1) * d));
    if (this.#columns !== undefined) for (let i = 0; i < rows.length; i++) this.#columns.set(rows[i]!, checked?.[i]);
  }

  /**
   * Like upsertMany, for a caller that has already assigned the rows and checked that the elements are
   * finite. @internal
   */
  setRows(rows: readonly number[], matrix: Float32Array): void {
    this.#shard.reserve(rows.reduce((most, row) => Math.max(most, row + 1), 0));
    this.#saves.beforeChange(rows);
    const d = this.dimension;
    for (let i = 0; i < rows.length; i++) this.#shard.set(rows[i]!, matrix.subarray(i * d, (i + 1) * d));
  }

  /** Removes the vector of `id`. @returns whether there was one. */
  delete(id: string): boolean {
    const row = this.#rowOf(id);
    if (row === undefined) return false;
    this.#saves.beforeChange([row]);
    const had = this.#shard.clear(row);
    if (this.#ownsRows) this.rows.release(id);
    return had;
  }

  /** Removes the vectors of `ids`. @returns how many there were. */
  deleteMany(ids: readonly string[]): number {
    checkIds(ids);
    return ids.reduce((count, id) => count + (this.delete(id) ? 1 : 0), 0);
  }

  /** Removes all vectors. Their memory is used again by others. A shared directory keeps its ids. */
  clear(): void {
    for (const [id] of this.rows.idsFromLast()) this.delete(id);
  }

  /**
   * The k best rows.
   *
   * @param query  `dimension` finite numbers, rounded to float32; not all zero for cosineSimilarity.
   * @throws {TypeError | RangeError} for a bad query, k, similarity or filter.
   */
  search(query: ArrayLike<number>, options?: SearchOptions<Columns>): SearchResult<RowOf<Columns>>;
  /**
   * The k best rows by words, or by words and a vector: the same ids, order and scores as those of scoring every
   * record. Needs TextColumns.
   *
   * @throws {TypeError | RangeError} for a bad member; {LodestoneError} INVALID for an unknown column or a bad filter.
   */
  search(request: TextSearch<Columns>): TextSearchResult<RowOf<Columns>>;
  search(query: ArrayLike<number> | TextSearch, options: SearchOptions = {}): SearchResult {
    if (isTextSearch(query)) return withColumns(this.#columns, "A search for words").searchText(query, this.#shard);
    return this.#search([query], options, () => "query")[0]!;
  }

  /**
   * One answer for each of `queries`. They are scanned together.
   *
   * @throws as search.
   */
  searchMany(queries: readonly ArrayLike<number>[], options: SearchOptions<Columns> = {}): SearchResult<RowOf<Columns>>[] {
    checkType(Array.isArray(queries), "queries", queries, "an array of vectors");
    return this.#search(queries, options, (i) => `queries[${i}]`);
  }

  /** See scoreRows. Nothing is checked. @internal */
  scoreRows(query: Float32Array, rows: Uint32Array, similarity: Similarity): Float64Array {
    return scoreRows(this.#shard, query, rows, similarity);
  }

  /**
   * One buffer that fromBytes reads: versioned and checksummed, the same in Node and browsers. It blocks the
   * thread until done; toStream does not. If the vectors are in a file, the buffer does not have them and belongs to that
   * file, as it is now and until the index is saved again; keep both.
   */
  toBytes(): Uint8Array<ArrayBuffer> {
    return snapshotBytes(this.#contents());
  }

  /**
   * The same bytes in pieces of about 1 MB, produced on demand: those of the index as it is at this call, whatever is written
   * meanwhile. Other work in this thread can run in between.
   *
   * @throws from the stream: the signal's reason; {LodestoneError} CONFLICT when the vectors are in a file, and the index is changed
   *   before the stream's end.
   */
  toStream(options: TransferOptions = {}): ByteStream {
    return snapshotStream(this.#contents(), options);
  }

  /**
   * Loads an index from the bytes that toBytes wrote. Other work in this thread can run meanwhile.
   *
   * With `options.rows`, a shared directory as in create, ids that it lacks are added.
   *
   * @throws {LodestoneError} CORRUPT when the bytes are truncated, changed, or of another version; INVALID
   *   when they hold values and `options.columns` are not the same columns. A shared directory is then
   *   unchanged.
   */
  static async fromBytes<Columns extends RowColumns = RowColumns>(
    bytes: Uint8Array,
    options: LoadIndexOptions<Columns> = {},
  ): Promise<VectorIndex<Columns>> {
    checkBytes(bytes);
    return VectorIndex.fromStream(bytes, options);
  }

  /**
   * The same from a `ReadableStream`, a `Blob` or `File`, or pieces of bytes. @throws as fromBytes; what the
   * source throws; the signal's reason.
   */
  static async fromStream<Columns extends RowColumns = RowColumns>(
    source: ByteSource,
    options: LoadIndexOptions<Columns> = {},
  ): Promise<VectorIndex<Columns>> {
    return loadSnapshot(source, options, (dimension, shards) => {
      const { rows, maximumMemoryBytes, columns, vectors } = options;
      if ((shards ?? 1) !== 1)
        throw new LodestoneError("INVALID", `The snapshot is of ${shards} shards; load it as a ParallelVectorIndex.`);
      return VectorIndex.create({ dimension, rows, maximumMemoryBytes, columns, vectors });
    });
  }

  /** Takes in the pieces of an image, into an empty index. @internal */
  loadImage(piece: Uint8Array<ArrayBuffer> | undefined): void {
    this.#loader ??= startLoader(this.#shard.load());
    this.#loader(piece);
  }

  /** Call it after loadImage, when the directory has the ids of the rows: rows without an id are cleared. @internal */
  adoptRows(): void {
    for (let row = 0; row < this.#shard.capacity; row++) {
      if (this.#shard.has(row) && this.rows.idOf(row) === undefined) this.#shard.clear(row);
    }
  }

  /** Frees the memory. The index cannot be used afterwards; a shared directory is left unchanged. */
  free(): void {
    this.rows.detach(this.#holder);
    this.#shard.free();
  }

  /** @throws {TypeError} after `free`, also for an id without a row, of which the shard is not asked. */
  #rowOf(id: string): number | undefined {
    void this.#shard.size;
    return this.rows.rowOf(id);
  }

  #search(queries: readonly ArrayLike<number>[], options: SearchOptions, nameAt: (i: number) => string): SearchResult[] {
    const plan = toSearchPlan(options, this.rows, this.#columns);
    const search = plan.shardSearch;
    // A single query is not copied on its way into linear memory. The copy would be noticeable when a filter
    // leaves little else to do.
    const matrix =
      queries.length === 1
        ? toQuery(queries[0]!, this.dimension, search.similarity, nameAt(0))
        : toQueryMatrix(queries, this.dimension, search.similarity, nameAt);
    return this.#shard.search(matrix, search).map((hits) => this.#withIds(hits, plan));
  }

  #withIds({ totalCount, rows, scores }: ShardHits, plan: SearchPlan): SearchResult {
    const results: SearchResult["results"] = [];
    for (let i = 0; i < rows.length; i++) results.push({ id: this.rows.idOf(rows[i]!)!, score: scores[i]! });
    return toSearchResult(totalCount, results, plan, this.rows, this.#columns);
  }

  #contents(): SavedRows {
    const { dimension } = this;
    const shard = this.#shard;
    const image = shard.isOutside ? shard.save()[Symbol.iterator]() : undefined;
    return new SavedRows({
      dimension,
      rows: this.rows,
      columns: this.#columns,
      saves: this.#saves,
      hasVector: (row) => shard.has(row),
      read: (rows) => {
        const matrix = new Float32Array(rows.length * dimension);
        for (const [i, row] of rows.entries()) matrix.set(shard.read(row)!, i * dimension);
        return matrix;
      },
      images: image && { shards: 1, next: () => image.next().value ?? undefined, end: (isKept) => shard.endSave(isKept) },
    });
  }
}
