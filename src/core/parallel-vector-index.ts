/**
 * VectorIndex over several shards, each in a worker with its own linear memory. Searches use several cores,
 * and columns may be larger than 4 GiB. Answers are the same, as promises. Only queries and top-k lists are
 * sent. SharedArrayBuffer is not required; where it exists, shards use it to skip rows that other shards have
 * already beaten.
 *
 * Invariant: operations take effect in call order, whether or not their promises are awaited.
 */
import type { AbortSignalLike } from "./abort-signal.ts";
import { checkBytes, checkIds, checkMany } from "./batch-input.ts";
import type { ByteSource, ByteStream } from "./byte-stream.ts";
import { nodeModule } from "./node-modules.ts";
import { checkIndexOptions, checkInteger, checkType } from "./options.ts";
import type { ColumnName, RowColumns, RowOf, ValuesOf } from "./row-columns.ts";
import { checkId, RowDirectory } from "./row-directory.ts";
import type { SetOptions } from "./row-writes.ts";
import { RunningSaves, SavedRows } from "./saved-rows.ts";
import { readFromShards, scoreInShards, searchShards, startShards } from "./scatter-gather.ts";
import { type SearchOptions, type SearchResult, toQueryMatrix, toSearchPlan, toSearchResult, withColumns } from "./search-input.ts";
import type { ShardClient } from "./shard-client.ts";
import { endImages, ImagesLoader, imagesToSave, saveImages } from "./shard-images.ts";
import type { ShardResults } from "./shard-messages.ts";
import { ShardedRows } from "./sharded-rows.ts";
import type { Similarity } from "./similarity.ts";
import { isTextSearch, type TextSearch, type TextSearchResult } from "./text-search.ts";
import { joined, loadSnapshot, snapshotPieces, snapshotStream, type TransferOptions } from "./transfer.ts";
import type { VectorFolder } from "./vector-file.ts";
import { checkDimension, toFloat32 } from "./vector-input.ts";
import type { ShardUsage } from "./vector-shard.ts";
import { type Build, coreModule } from "./wasm-module.ts";

export interface ParallelVectorIndexOptions<Columns extends RowColumns = RowColumns> {
  /** 1 to 10,000. */
  dimension: number;
  /** Number of workers. Default: the number of processors; in a page half of it, where that is 4 or more. */
  shards?: number | undefined;
  /** A directory to share with other indexes; see VectorIndexOptions. */
  rows?: RowDirectory | undefined;
  /** Memory limit of each shard in bytes; default and maximum 4 GiB. */
  maximumMemoryBytes?: number | undefined;
  /** See VectorIndexOptions. The values and filters stay in this thread. */
  columns?: Columns | undefined;
  /**
   * Where each worker keeps its vectors, in a file `shard-0.vectors` and so on; default: in memory; see VectorIndexOptions. In
   * Node the path of a directory, in a browser a directory handle of the origin private file system.
   */
  vectors?: VectorFolder | undefined;
}

/** Vectors in one message to a worker. */
const ENTRIES_PER_READ = 1000;

export interface ParallelSearchOptions<Columns extends RowColumns = RowColumns> extends SearchOptions<Columns> {
  /**
   * Cancels the call: the promise rejects at once with the signal's reason. A scan that has begun runs to its
   * end and its result is discarded; a waiting one is not started.
   */
  signal?: AbortSignalLike | undefined;
}

/** Options of fromBytes and fromStream. */
export type LoadParallelIndexOptions<Columns extends RowColumns = RowColumns> = Omit<ParallelVectorIndexOptions<Columns>, "dimension"> &
  TransferOptions;

export class ParallelVectorIndex<Columns extends RowColumns = RowColumns> {
  /** Bundlers rename classes. */
  static readonly name: string = "ParallelVectorIndex";
  readonly dimension: number;
  readonly rows: RowDirectory;
  /** Which build of the core runs. All builds give identical answers. */
  readonly build: Build;
  /** Whether the vectors are in files. @internal */
  readonly isOutside: boolean;
  readonly #shards: readonly ShardClient[];
  readonly #holder = { clearRow: (row: number) => this.#written.clear(row) };
  readonly #written: ShardedRows;
  readonly #saves = new RunningSaves();
  readonly #columns: RowColumns | undefined;
  #isFreed = false;
  #loader: ImagesLoader | undefined;

  private constructor(options: ParallelVectorIndexOptions, shards: readonly ShardClient[], opened: ShardResults["open"]) {
    this.dimension = options.dimension;
    this.rows = options.rows ?? new RowDirectory();
    this.build = opened.build;
    this.isOutside = opened.isOutside;
    this.#shards = shards;
    this.#columns = options.columns;
    this.#written = new ShardedRows({
      shards,
      dimension: this.dimension,
      rows: this.rows,
      ownsRows: options.rows === undefined,
      columns: options.columns,
      saves: this.#saves,
    });
    this.#columns?.bind(this.rows);
    this.rows.attach(this.#holder);
  }

  /**
   * @throws {TypeError | RangeError} for a bad dimension, number of shards or memory limit, or an unknown option;
   *   {LodestoneError} UNAVAILABLE when workers cannot be started.
   */
  static async create<Columns extends RowColumns = RowColumns>(
    options: ParallelVectorIndexOptions<Columns>,
  ): Promise<ParallelVectorIndex<Columns>> {
    checkIndexOptions(options);
    const { dimension, maximumMemoryBytes, vectors: folder, shards: count = defaultShards() } = options;
    checkDimension(dimension);
    checkInteger("shards", count, 1, 1024);
    const isFolder = folder === undefined || typeof folder === "string" || typeof folder?.getFileHandle === "function";
    checkType(isFolder, "vectors", folder, "the path of a directory, or a directory handle");
    const module = await coreModule();
    const shards = await startShards(count);
    try {
      const opened = await Promise.all(
        shards.map((shard, i) => {
          const vectors = folder === undefined ? undefined : { folder, name: `shard-${i}.vectors` };
          return shard.call<"open">({ type: "open", dimension, module, maximumMemoryBytes, vectors });
        }),
      );
      return new ParallelVectorIndex(options, shards, opened[0]!);
    } catch (error) {
      await Promise.all(shards.map((shard) => shard.stop()));
      throw error;
    }
  }

  /** Number of ids with a vector in this index, including writes in progress. */
  get size(): number {
    this.#checkUsable();
    return this.#written.size;
  }

  /** Number of rows of a mask: `rows.capacity`. */
  get capacity(): number {
    return this.rows.capacity;
  }

  get shards(): number {
    return this.#shards.length;
  }

  /** Bytes of linear memory of all shards. */
  async memoryBytes(): Promise<number> {
    return (await this.usage()).memoryBytes;
  }

  /** Bytes of the files of the vectors; 0 when they are in memory. */
  async fileBytes(): Promise<number> {
    return (await this.usage()).fileBytes;
  }

  /** Both. @internal */
  async usage(): Promise<ShardUsage> {
    const all = await Promise.all(this.#shards.map((shard) => shard.call<"usage">({ type: "usage" })));
    const sum = (pick: (usage: ShardUsage) => number): number => all.reduce((total, usage) => total + pick(usage), 0);
    return { memoryBytes: sum((own) => own.memoryBytes), fileBytes: sum((own) => own.fileBytes) };
  }

  async has(id: string): Promise<boolean> {
    this.#checkUsable();
    const row = this.rows.rowOf(id);
    return row !== undefined && this.#written.has(row);
  }

  /** A copy of the stored float32 vector. */
  async get(id: string): Promise<Float32Array | undefined> {
    this.#checkUsable();
    const row = this.rows.rowOf(id);
    if (row === undefined || !this.#written.has(row)) return undefined;
    return readFromShards(this.#shards, this.dimension, [row]);
  }

  /**
   * Like VectorIndex.getMany, with one message to each worker. The vectors share one buffer.
   */
  async getMany(ids: readonly string[]): Promise<(Float32Array | undefined)[]> {
    this.#checkUsable();
    checkIds(ids);
    const rows = ids.map((id) => this.rows.rowOf(id));
    const present = rows.filter((row): row is number => row !== undefined && this.#written.has(row));
    const matrix = await readFromShards(this.#shards, this.dimension, present);
    let next = 0;
    return rows.map((row) => {
      if (row !== present[next] || row === undefined) return undefined;
      return matrix.subarray(next * this.dimension, ++next * this.dimension);
    });
  }

  /** Like VectorIndex.entries, read in portions. */
  async *entries(): AsyncIterableIterator<[string, Float32Array]> {
    this.#checkUsable();
    let ids: string[] = [];
    for (const [id, row] of this.rows.entries()) {
      if (this.#written.has(row)) ids.push(id);
      if (ids.length < ENTRIES_PER_READ) continue;
      yield* this.#entriesOf(ids);
      ids = [];
    }
    yield* this.#entriesOf(ids);
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<[string, Float32Array]> {
    return this.entries();
  }

  async *#entriesOf(ids: readonly string[]): AsyncIterableIterator<[string, Float32Array]> {
    const vectors = await this.getMany(ids);
    for (const [i, id] of ids.entries()) if (vectors[i] !== undefined) yield [id, vectors[i].slice()];
  }

  /** Like VectorIndex.getColumns. */
  async getColumns(id: string, names?: readonly ColumnName<Columns>[]): Promise<RowOf<Columns> | undefined> {
    this.#checkUsable();
    const row = this.rows.rowOf(id);
    const columns = withColumns(this.#columns, "getColumns");
    if (names !== undefined) columns.checkNames(names);
    return row === undefined || !this.#written.has(row) ? undefined : columns.get(row, names);
  }

  /** Like VectorIndex.upsert. */
  async upsert(id: string, vector: ArrayLike<number>, values?: ValuesOf<Columns>): Promise<void> {
    this.#checkUsable();
    checkId(id);
    const floats = toFloat32("vector", vector, this.dimension);
    await this.#written.set(this.#rowsFor([id]), [id], floats, values && [withColumns(this.#columns, "values").check(values)]);
  }

  /**
   * Like VectorIndex.upsertMany; `matrix` is read before the call returns. When a shard runs out of memory,
   * that shard's ids are unchanged, and those of the other shards are stored.
   */
  async upsertMany(ids: readonly string[], matrix: Float32Array, values?: readonly (ValuesOf<Columns> | undefined)[]): Promise<void> {
    this.#checkUsable();
    const checked = checkMany(ids, matrix, this.dimension, values, this.#columns);
    await this.#written.set(this.#rowsFor(ids), ids, matrix, checked);
  }

  /**
   * Like upsertMany, for a caller that has already assigned the rows and checked that the elements are
   * finite.
   * @internal
   */
  async setRows(rows: readonly number[], ids: readonly string[], matrix: Float32Array, how: SetOptions = {}): Promise<void> {
    await this.#written.set(rows, ids, matrix, undefined, how);
  }

  /** Removes the vector of `id`. @returns whether there was one. */
  async delete(id: string): Promise<boolean> {
    this.#checkUsable();
    return this.#written.deleteAll([id]) === 1;
  }

  /** Like VectorIndex.deleteMany, with one message to each worker. */
  async deleteMany(ids: readonly string[]): Promise<number> {
    this.#checkUsable();
    checkIds(ids);
    return this.#written.deleteAll(ids);
  }

  /** Like VectorIndex.clear. */
  async clear(): Promise<void> {
    this.#checkUsable();
    this.#written.deleteAll(Array.from(this.rows.idsFromLast(), ([id]) => id));
  }

  /** Like VectorIndex.search, off this thread. @throws as VectorIndex.search; the signal's reason. */
  search(query: ArrayLike<number>, options?: ParallelSearchOptions<Columns>): Promise<SearchResult<RowOf<Columns>>>;
  /**
   * Like VectorIndex.search. Words are looked for in this thread, vectors off it; the answer is that of the state at the
   * call, whatever is written meanwhile.
   */
  search(request: TextSearch<Columns> & Pick<ParallelSearchOptions, "signal">): Promise<TextSearchResult<RowOf<Columns>>>;
  async search(
    query: ArrayLike<number> | (TextSearch & Pick<ParallelSearchOptions, "signal">),
    options: ParallelSearchOptions = {},
  ): Promise<SearchResult> {
    if (isTextSearch(query)) return this.#searchText(query, query.signal);
    return (await this.#search([query], options, () => "query"))[0]!;
  }

  /** Like VectorIndex.searchMany. */
  async searchMany(
    queries: readonly ArrayLike<number>[],
    options: ParallelSearchOptions<Columns> = {},
  ): Promise<SearchResult<RowOf<Columns>>[]> {
    checkType(Array.isArray(queries), "queries", queries, "an array of vectors");
    return this.#search(queries, options, (i) => `queries[${i}]`);
  }

  /** Like VectorIndex.scoreRows. @internal */
  scoreRows(query: Float32Array, rows: Uint32Array, similarity: Similarity): Promise<Float64Array> {
    return scoreInShards(this.#shards, query, rows, similarity, {});
  }

  /** Like VectorIndex.toBytes, in the same format, piece by piece; see VectorIndex.toStream. @throws what its stream throws. */
  async toBytes(options: TransferOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const pieces: Uint8Array[] = [];
    for await (const piece of snapshotPieces(this.#contents(), options)) pieces.push(piece);
    return joined(pieces);
  }

  /** Like VectorIndex.toStream. */
  toStream(options: TransferOptions = {}): ByteStream {
    return snapshotStream(this.#contents(), options);
  }

  /**
   * Loads an index from the bytes that toBytes of either kind of index wrote. @throws as
   * VectorIndex.fromBytes.
   */
  static async fromBytes<Columns extends RowColumns = RowColumns>(
    bytes: Uint8Array,
    options: LoadParallelIndexOptions<Columns> = {},
  ): Promise<ParallelVectorIndex<Columns>> {
    checkBytes(bytes);
    return ParallelVectorIndex.fromStream(bytes, options);
  }

  /** Like VectorIndex.fromStream. */
  static async fromStream<Columns extends RowColumns = RowColumns>(
    source: ByteSource,
    options: LoadParallelIndexOptions<Columns> = {},
  ): Promise<ParallelVectorIndex<Columns>> {
    return loadSnapshot(source, options, (dimension, imageShards) => {
      const { rows, maximumMemoryBytes, columns, vectors } = options;
      return ParallelVectorIndex.create({ dimension, shards: imageShards ?? options.shards, rows, maximumMemoryBytes, columns, vectors });
    });
  }

  /** Takes in the pieces of the shards' images, into an empty index. @internal */
  loadImage(piece: Uint8Array<ArrayBuffer> | undefined): Promise<void> {
    this.#loader ??= new ImagesLoader(this.#shards);
    return this.#loader.take(piece);
  }

  /** Like VectorIndex.adoptRows; rows for which `isKept` is false are cleared too. @internal */
  async adoptRows(isKept: (row: number) => boolean = () => true): Promise<void> {
    await this.#written.adopt((row) => (isKept(row) ? this.rows.idOf(row) : undefined));
  }

  /** Ends the workers. The index cannot be used afterwards; a shared directory is left unchanged. */
  async free(): Promise<void> {
    this.#isFreed = true;
    this.rows.detach(this.#holder);
    await Promise.all(this.#shards.map((shard) => shard.stop()));
  }

  /** As VectorIndex refuses. Calls that go to the workers are refused by them. */
  #checkUsable(): void {
    if (this.#isFreed) throw new TypeError("The index was freed; create another one.");
  }

  #contents(): SavedRows {
    return new SavedRows({
      dimension: this.dimension,
      rows: this.rows,
      columns: this.#columns,
      saves: this.#saves,
      hasVector: (row) => this.#written.has(row),
      read: (rows) => readFromShards(this.#shards, this.dimension, rows),
      images: this.isOutside ? imagesToSave(this.#shards) : undefined,
    });
  }

  /** The pieces of all shards' images. @internal */
  images(): AsyncGenerator<Uint8Array, undefined, void> {
    return saveImages(this.#shards);
  }

  /** See VectorShard.endSave. @internal */
  endImages(isKept: boolean): Promise<void> {
    return endImages(this.#shards, isKept);
  }

  #rowsFor(ids: readonly string[]): number[] {
    return ids.map((id) => this.rows.add(id));
  }

  async #search(
    queries: readonly ArrayLike<number>[],
    options: ParallelSearchOptions,
    nameAt: (i: number) => string,
  ): Promise<SearchResult[]> {
    const plan = toSearchPlan(options, this.rows, this.#columns);
    const search = plan.shardSearch;
    const matrix = toQueryMatrix(queries, this.dimension, search.similarity, nameAt);
    const answers = await searchShards(this.#shards, this.dimension, matrix, search, { signal: options.signal });
    return answers.map(({ totalCount, best }) => {
      const hits = best.map(({ id, score }) => ({ id, score }));
      return toSearchResult(totalCount, hits, plan, this.rows, this.#columns);
    });
  }

  async #searchText(request: TextSearch, signal: AbortSignalLike | undefined): Promise<TextSearchResult> {
    this.#checkUsable();
    const columns = withColumns(this.#columns, "A search for words");
    const asked = { signal, turn: {} };
    for (const shard of this.#shards) shard.hold(asked.turn);
    try {
      return await columns.searchTextHeld(request, {
        dimension: this.dimension,
        size: this.size,
        has: (row) => this.#written.has(row),
        search: async (query, search) => {
          const [answer] = await searchShards(this.#shards, this.dimension, query, search, asked);
          const { totalCount, best } = answer!;
          const scores = Float64Array.from(best, ({ score }) => score);
          return { totalCount, rows: Uint32Array.from(best, ({ row }) => row), scores };
        },
        scoreRows: (query, rows, similarity) => scoreInShards(this.#shards, query, rows, similarity, asked),
      });
    } finally {
      for (const shard of this.#shards) shard.release(asked.turn);
    }
  }
}

/**
 * In a page half of more than four processors: on phones the others are slow, and as each shard has as many rows, the
 * slowest core ends a search; on computers they are mostly second threads of the same cores (docs/library.md).
 */
function defaultShards(): number {
  const os = nodeModule("node:os");
  const processors = (typeof navigator === "undefined" ? undefined : navigator.hardwareConcurrency) || os?.availableParallelism() || 1;
  return os !== undefined || processors <= 4 ? processors : Math.max(4, processors >> 1);
}
