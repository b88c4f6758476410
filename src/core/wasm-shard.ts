/** VectorShard over an instance of assembly/. */
import { instantiateSync } from "@assemblyscript/loader";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { RowStore } from "./row-store.ts";
import type { ImageExports } from "./shard-image.ts";
import { similarityCode } from "./similarity.ts";
import { damaged } from "./snapshot.ts";
import type { ThresholdExchange } from "./threshold-exchange.ts";
import type { Plan, ScanCounts, ShardHits, ShardOptions, ShardSearch, VectorShard } from "./vector-shard.ts";
import type { Build } from "./wasm-module.ts";

const PAGE_BYTES = 65536;
const MAX_PAGES = 65536;
/** The numbers of assembly/plans/search.ts. */
const PLAN_CODES: Record<Plan, number> = { floats: 0, auto: 1, sketches: 2 };

/** The exports of assembly/index.ts. Booleans and addresses come as i32. */
interface CoreExports extends ImageExports, Record<string, unknown> {
  memory: WebAssembly.Memory;
  initialize(dimension: number, maximumPages: number, outside: number): number;
  isOutside(): number;
  capacity(): number;
  size(): number;
  usedBytes(): bigint;
  rowPtr(row: number): number;
  stagingPtr(): number;
  isRelaxed(): number;
  set(row: number, isDeferred: number): void;
  code(): number;
  clear(row: number): number;
  hasRow(row: number): number;
  reserveQueries(count: number, k: number): number;
  queryPtr(query: number): number;
  filterPtr(words: number): number;
  countSelected(isFiltered: number): number;
  search(count: number, similarity: number, isFiltered: number, selected: number, plan: number): void;
  resultCount(query: number): number;
  fullRowCount(): number;
  exactRowCount(): number;
  fetchedRowCount(): number;
  scannedBytes(): number;
  resultsPtr(query: number): number;
}

/** Elements from one row to the next, as in assembly/rows/rows.ts. */
function strideOf(dimension: number): number {
  return Math.ceil(dimension / 4) * 4;
}

interface Instance {
  core: CoreExports;
  memory: LinearMemory;
}

/** The search in progress, for the host functions. */
interface Running {
  exchange?: ThresholdExchange | undefined;
}

export class WasmShard implements VectorShard {
  readonly build: Build;
  readonly dimension: number;
  readonly #maximumPages: number;
  #instance: Instance | undefined;
  readonly #running: Running;
  /** Where float32 are kept outside. */
  readonly #store: RowStore | undefined;

  private constructor(dimension: number, maximumPages: number, instance: Instance, running: Running, store: RowStore | undefined) {
    this.build = instance.core.isRelaxed() === 0 ? "simd" : "relaxed";
    this.dimension = dimension;
    this.#maximumPages = maximumPages;
    this.#instance = instance;
    this.#running = running;
    this.#store = store;
  }

  /** @throws {LodestoneError} OUT_OF_MEMORY when the memory limit is too small for an empty shard. */
  static async create(module: WebAssembly.Module, options: ShardOptions): Promise<WasmShard> {
    const isIdBefore = (a: number, b: number): number => (options.isIdBefore(a >>> 0, b >>> 0) ? 1 : 0);
    const running: Running = {};
    const tellScores = (ptr: number, count: number): void => running.exchange?.tell(memory.results(ptr >>> 0, count).scores);
    const sharedFloor = (): number => running.exchange?.floor ?? Number.NEGATIVE_INFINITY;
    const rowBytes = 4 * strideOf(options.dimension);
    const store = options.vectors?.open(rowBytes);
    const bytesAt = (ptr: number, rows: number): Uint8Array<ArrayBuffer> => memory.bytes.subarray(ptr >>> 0, (ptr >>> 0) + rows * rowBytes);
    const storeRows = (ptr: number, count: number, places: number): void =>
      store!.store(bytesAt(ptr, count), memory.words.subarray(places >>> 2, (places >>> 2) + count));
    const fetchRows = (runs: number, count: number): void => {
      for (let i = 0, at = runs >>> 2; i < count; i++, at += 3) {
        const [place, rows, to] = [memory.words[at]!, memory.words[at + 1]!, memory.words[at + 2]!];
        store!.read(place, rows, bytesAt(to, rows));
      }
    };
    const freePlace = (place: number): void => store!.free(place >>> 0);
    const damagedRow = (): void => {
      throw damaged("a row is not the one that was written");
    };
    const host = { isIdBefore, tellScores, sharedFloor, storeRows, fetchRows, freePlace, damagedRow };
    const { exports } = instantiateSync<CoreExports>(module, { host });
    const memory = new LinearMemory(exports.memory);
    const maximumPages = Math.min(MAX_PAGES, Math.floor((options.maximumMemoryBytes ?? MAX_PAGES * PAGE_BYTES) / PAGE_BYTES));
    const isInitialized = exports.initialize(options.dimension, maximumPages, store === undefined ? 0 : 1) !== 0;
    const isOutside = isInitialized && exports.isOutside() !== 0;
    const shard = new WasmShard(options.dimension, maximumPages, { core: exports, memory }, running, isOutside ? store : undefined);
    if (!isInitialized) throw shard.#outOfMemory("an empty index");
    return shard;
  }

  get #parts(): Instance {
    if (this.#instance === undefined) throw new TypeError("The index was freed; create another one.");
    return this.#instance;
  }

  get #exports(): CoreExports {
    return this.#parts.core;
  }

  get capacity(): number {
    return this.#exports.capacity() >>> 0;
  }

  get size(): number {
    return this.#exports.size() >>> 0;
  }

  get memoryBytes(): number {
    // Memory grows ahead of what is used, and pages that were never touched take none.
    return Number(this.#exports.usedBytes());
  }

  get fileBytes(): number {
    return this.#store?.bytes ?? 0;
  }

  get isOutside(): boolean {
    return this.#store !== undefined;
  }

  reserve(rows: number): void {
    if (this.#exports.reserve(rows) === 0) throw this.#outOfMemory(`${rows} rows of dimension ${this.dimension}`);
  }

  set(row: number, vector: Float32Array, isDeferred = false): void {
    const { core, memory } = this.#parts;
    if (row >= core.capacity() >>> 0) this.reserve(row + 1);
    memory.floats.set(vector, core.stagingPtr() >>> 2);
    core.set(row, isDeferred ? 1 : 0);
  }

  code(): boolean {
    return this.#exports.code() !== 0;
  }

  clear(row: number): boolean {
    return this.#exports.clear(row) !== 0;
  }

  has(row: number): boolean {
    return this.#exports.hasRow(row) !== 0;
  }

  read(row: number): Float32Array | undefined {
    const { core, memory } = this.#parts;
    if (core.hasRow(row) === 0) return undefined;
    const at = core.rowPtr(row) >>> 2;
    return memory.floats.slice(at, at + this.dimension);
  }

  search(queries: Float32Array, options: ShardSearch): ShardHits[] {
    const { core, memory } = this.#parts;
    const similarity = similarityCode(options.similarity);
    const count = queries.length / this.dimension;
    if (count === 0) return [];
    const isFiltered = options.mask === undefined ? 0 : this.#writeMask(options.mask);
    const totalCount = core.countSelected(isFiltered) >>> 0;
    const k = Math.min(options.k, totalCount);
    if (k === 0) return Array.from({ length: count }, () => ({ totalCount, rows: new Uint32Array(0), scores: new Float64Array(0) }));
    if (core.reserveQueries(count, k) === 0) throw this.#outOfMemory(`${count} queries with ${k} results`);
    for (let i = 0; i < count; i++) {
      const query = count === 1 ? queries : queries.subarray(i * this.dimension, (i + 1) * this.dimension);
      memory.floats.set(query, core.queryPtr(i) >>> 2);
    }
    this.#running.exchange = count === 1 ? options.exchange : undefined;
    core.search(count, similarity, isFiltered, totalCount, PLAN_CODES[options.plan ?? "auto"]);
    const answers: ShardHits[] = [];
    for (let i = 0; i < count; i++) {
      const { rows, scores } = memory.results(core.resultsPtr(i) >>> 0, core.resultCount(i));
      answers.push({ totalCount, rows, scores });
    }
    return answers;
  }

  get lastScan(): ScanCounts {
    const core = this.#exports;
    const fetchedRows = core.fetchedRowCount();
    return {
      fullRows: core.fullRowCount(),
      exactRows: core.exactRowCount(),
      bytes: core.scannedBytes(),
      fetchedRows,
      fetchedBytes: fetchedRows * 4 * strideOf(this.dimension),
    };
  }

  save(): Generator<Uint8Array<ArrayBuffer>, void, void> {
    return this.#requireStore().save(this.#exports, this.dimension);
  }

  endSave(isKept: boolean): void {
    this.#requireStore().endSave(isKept);
  }

  load(): Generator<undefined, void, Uint8Array> {
    return this.#requireStore().load(this.#exports, this.dimension, (rows) => this.#outOfMemory(`${rows} rows`));
  }

  free(): void {
    this.#instance = undefined;
  }

  /** Copies the mask, truncated or zero-filled to the capacity. @returns 1. */
  #writeMask(mask: Uint32Array): number {
    const { core, memory } = this.#parts;
    const count = Math.ceil((core.capacity() >>> 0) / 32);
    const ptr = core.filterPtr(count) >>> 0;
    if (ptr === 0) throw this.#outOfMemory(`a mask of ${count} words`);
    const { words } = memory;
    const start = ptr >>> 2;
    words.set(mask.length > count ? mask.subarray(0, count) : mask, start);
    if (mask.length < count) words.fill(0, start + mask.length, start + count);
    return 1;
  }

  #requireStore(): RowStore {
    if (this.#store === undefined)
      throw new LodestoneError("INVALID", "The vectors are in memory, and an index that has them there has no image.");
    return this.#store;
  }

  #outOfMemory(what: string): LodestoneError {
    const limitMiB = Math.floor((this.#maximumPages * PAGE_BYTES) / 2 ** 20);
    return new LodestoneError(
      "OUT_OF_MEMORY",
      `No room for ${what}: the index holds ${this.size} rows and may use ${limitMiB} MiB. What is stored stays and answers; use a ParallelVectorIndex for more.`,
    );
  }
}

// Views of a shard's linear memory. They cover all of it and are created once, because creating one costs as
// much as a small search's result. Growing the memory detaches them, which shows in their length; they are
// then created again.

/** Size in u32 of a heap entry (assembly/exact/top-k.ts): score f64, row u32, unused u32. */
const ENTRY_WORDS = 4;
const ROW_WORD = 2;

export class LinearMemory {
  readonly #memory: WebAssembly.Memory;
  #floats: Float32Array<ArrayBuffer>;
  #doubles: Float64Array<ArrayBuffer>;
  #words: Uint32Array<ArrayBuffer>;
  #bytes: Uint8Array<ArrayBuffer>;

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory;
    this.#floats = new Float32Array(memory.buffer);
    this.#doubles = new Float64Array(memory.buffer);
    this.#words = new Uint32Array(memory.buffer);
    this.#bytes = new Uint8Array(memory.buffer);
  }

  /** Element i is at address 4 i. Get the view again after any call that can grow memory. */
  get floats(): Float32Array<ArrayBuffer> {
    this.#renew();
    return this.#floats;
  }

  /** Element i is at address 4 i. Get the view again after any call that can grow memory. */
  get words(): Uint32Array<ArrayBuffer> {
    this.#renew();
    return this.#words;
  }

  /** Element i is at address i. Get the view again after any call that can grow memory. */
  get bytes(): Uint8Array<ArrayBuffer> {
    this.#renew();
    return this.#bytes;
  }

  /** Copies the `count` heap entries at address `ptr`. */
  results(ptr: number, count: number): { rows: Uint32Array<ArrayBuffer>; scores: Float64Array<ArrayBuffer> } {
    this.#renew();
    const rows = new Uint32Array(count);
    const scores = new Float64Array(count);
    let word = ptr >>> 2;
    for (let i = 0; i < count; i++, word += ENTRY_WORDS) {
      scores[i] = this.#doubles[word >>> 1]!;
      rows[i] = this.#words[word + ROW_WORD]!;
    }
    return { rows, scores };
  }

  #renew(): void {
    if (this.#floats.length > 0) return;
    const { buffer } = this.#memory;
    this.#floats = new Float32Array(buffer);
    this.#doubles = new Float64Array(buffer);
    this.#words = new Uint32Array(buffer);
    this.#bytes = new Uint8Array(buffer);
  }
}
