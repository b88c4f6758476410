/**
 * VectorShard in plain JavaScript, for places where WebAssembly is forbidden (a Content-Security-Policy
 * without 'wasm-unsafe-eval'). It scores every selected row exactly. Ids, order and scores are those of the
 * WASM builds, but it is slower.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { paddedLength, type RowsScorer, rowsScorer, squares } from "./exact.ts";
import type { ShardHits, ShardOptions, ShardSearch, VectorShard } from "./vector-shard.ts";

/** Target size of one block of rows, in bytes. */
const BLOCK_TARGET_BYTES = 1 << 20;

interface Hit {
  row: number;
  score: number;
}

export class ScalarShard implements VectorShard {
  readonly build = "scalar";
  lastScan = { fullRows: 0, exactRows: 0, bytes: 0, fetchedRows: 0, fetchedBytes: 0 };
  readonly isOutside = false;
  readonly fileBytes = 0;
  readonly dimension: number;
  readonly #isIdBefore: (rowA: number, rowB: number) => boolean;
  readonly #maximumBytes: number;
  /** Elements from one row to the next. */
  readonly #stride: number;
  /** Rows per block, a power of two. */
  readonly #blockRows: number;
  #blocks: Float32Array[] = [];
  #squares: Float64Array[] = [];
  #live = new Uint32Array(0);
  #size = 0;
  #isFreed = false;
  /** Of the selected rows of one block. */
  readonly #selected: { rows: Uint32Array; starts: Uint32Array; squares: Float64Array; scores: Float64Array };

  constructor(options: ShardOptions) {
    this.dimension = options.dimension;
    this.#isIdBefore = options.isIdBefore;
    this.#maximumBytes = options.maximumMemoryBytes ?? 2 ** 32;
    this.#stride = paddedLength(options.dimension);
    this.#blockRows = 2 ** Math.max(5, Math.floor(Math.log2(BLOCK_TARGET_BYTES / (4 * this.#stride))));
    const [count, sums] = [this.#blockRows, () => new Float64Array(this.#blockRows)];
    this.#selected = { rows: new Uint32Array(count), starts: new Uint32Array(count), squares: sums(), scores: sums() };
  }

  get capacity(): number {
    return this.#blocks.length * this.#blockRows;
  }

  get size(): number {
    this.#checkUsable();
    return this.#size;
  }

  get memoryBytes(): number {
    return this.#blocks.length * this.#blockBytes;
  }

  get #blockBytes(): number {
    return this.#blockRows * (4 * this.#stride + 8);
  }

  reserve(rows: number): void {
    this.#checkUsable();
    const wanted = Math.ceil(rows / this.#blockRows);
    if (wanted * this.#blockBytes > this.#maximumBytes) {
      throw new LodestoneError(
        "OUT_OF_MEMORY",
        `No room for ${rows} rows of dimension ${this.dimension}: the index holds ${this.#size} rows and may use ${this.#maximumBytes / 2 ** 20} MiB. What is stored stays and answers; use a ParallelVectorIndex for more.`,
      );
    }
    while (this.#blocks.length < wanted) {
      this.#blocks.push(new Float32Array(this.#blockRows * this.#stride));
      this.#squares.push(new Float64Array(this.#blockRows));
    }
    const words = this.capacity / 32;
    if (words > this.#live.length) {
      const live = new Uint32Array(words);
      live.set(this.#live);
      this.#live = live;
    }
  }

  set(row: number, vector: Float32Array): void {
    if (row >= this.capacity) this.reserve(row + 1);
    const block = this.#blocks[Math.floor(row / this.#blockRows)]!;
    const at = (row % this.#blockRows) * this.#stride;
    block.set(vector, at);
    this.#squares[Math.floor(row / this.#blockRows)]![row % this.#blockRows] = squares(block, at, this.dimension);
    if (!this.has(row)) this.#size++;
    this.#live[row >>> 5]! |= 1 << (row & 31);
  }

  code(): boolean {
    return false;
  }

  clear(row: number): boolean {
    if (!this.has(row)) return false;
    this.#live[row >>> 5]! &= ~(1 << (row & 31));
    this.#size--;
    return true;
  }

  has(row: number): boolean {
    this.#checkUsable();
    return (((this.#live[row >>> 5] ?? 0) >>> (row & 31)) & 1) === 1;
  }

  read(row: number): Float32Array | undefined {
    if (!this.has(row)) return undefined;
    const at = (row % this.#blockRows) * this.#stride;
    return this.#blocks[Math.floor(row / this.#blockRows)]!.slice(at, at + this.dimension);
  }

  search(queries: Float32Array, options: ShardSearch): ShardHits[] {
    this.#checkUsable();
    const answers: ShardHits[] = [];
    this.lastScan = { ...this.lastScan, bytes: 0 };
    for (let at = 0; at < queries.length; at += this.dimension) {
      answers.push(this.#searchOne(queries.slice(at, at + this.dimension), options));
    }
    return answers;
  }

  save(): never {
    throw notOutside();
  }

  endSave(): never {
    throw notOutside();
  }

  load(): never {
    throw notOutside();
  }

  free(): void {
    this.#isFreed = true;
    this.#blocks = [];
    this.#squares = [];
    this.#live = new Uint32Array(0);
    this.#size = 0;
  }

  #searchOne(query: Float32Array, { k, similarity, mask }: ShardSearch): ShardHits {
    const score = rowsScorer(similarity, query);
    const best = new TopHits(k, this.#isIdBefore);
    let totalCount = 0;
    for (let block = 0; block < this.#blocks.length; block++) totalCount += this.#searchBlock(block, mask, score, best);
    this.lastScan.bytes += totalCount * (4 * this.dimension + 8);
    const hits = best.sorted();
    return { totalCount, rows: Uint32Array.from(hits, (hit) => hit.row), scores: Float64Array.from(hits, (hit) => hit.score) };
  }

  /** Offers the selected rows of a block. @returns their number. */
  #searchBlock(block: number, mask: Uint32Array | undefined, score: RowsScorer, best: TopHits): number {
    const { rows, starts, squares: selectedSquares, scores } = this.#selected;
    const first = block * this.#blockRows;
    let count = 0;
    for (let word = first / 32; word < (first + this.#blockRows) / 32; word++) {
      let bits = this.#live[word]! & (mask === undefined ? -1 : (mask[word] ?? 0));
      for (; bits !== 0; bits &= bits - 1) {
        const row = word * 32 + (31 - Math.clz32(bits & -bits));
        rows[count] = row;
        starts[count] = (row - first) * this.#stride;
        selectedSquares[count++] = this.#squares[block]![row - first]!;
      }
    }
    score(this.#blocks[block]!, starts, count, selectedSquares, scores);
    for (let i = 0; i < count; i++) if (scores[i]! >= best.threshold) best.offer({ row: rows[i]!, score: scores[i]! });
    return count;
  }

  #checkUsable(): void {
    if (this.#isFreed) throw new TypeError("The index was freed; create another one.");
  }
}

/** Keeps the k best hits: collects up to 2k, then sorts and truncates. */
class TopHits {
  readonly #k: number;
  readonly #compare: (a: Hit, b: Hit) => number;
  #hits: Hit[] = [];
  /** No row with a lower score can be among the k best. */
  threshold = Number.NEGATIVE_INFINITY;

  constructor(k: number, isIdBefore: (rowA: number, rowB: number) => boolean) {
    this.#k = k;
    this.#compare = (a, b) => b.score - a.score || (a.row === b.row ? 0 : isIdBefore(a.row, b.row) ? -1 : 1);
  }

  offer(hit: Hit): void {
    this.#hits.push(hit);
    if (this.#hits.length >= 2 * this.#k) {
      this.sorted();
      this.threshold = this.#hits[this.#k - 1]!.score;
    }
  }

  /** Best first, at most k. */
  sorted(): Hit[] {
    this.#hits.sort(this.#compare);
    this.#hits.length = Math.min(this.#hits.length, this.#k);
    return this.#hits;
  }
}

function notOutside(): LodestoneError {
  return new LodestoneError("INVALID", "Plain JavaScript keeps vectors in memory, and a shard that does has no image.");
}
