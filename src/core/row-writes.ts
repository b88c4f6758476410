/**
 * Which rows hold a vector, and by which write each was changed last. In typed arrays by row: a million rows
 * take 9 MB, and setting one is two stores.
 */
const FIRST_ROWS = 64;

export class RowWrites {
  #isLive = new Uint8Array(0);
  /** 0: never, or undone. */
  #writes = new Float64Array(0);
  #size = 0;

  /** Number of rows that hold a vector. */
  get size(): number {
    return this.#size;
  }

  has(row: number): boolean {
    return this.#isLive[row] === 1;
  }

  /** @returns whether the row had no vector before. */
  set(row: number, write: number): boolean {
    if (row >= this.#isLive.length) this.#grow(row + 1);
    const isNew = this.#isLive[row] === 0;
    this.#isLive[row] = 1;
    this.#writes[row] = write;
    if (isNew) this.#size++;
    return isNew;
  }

  clear(row: number, write: number): void {
    if (!this.has(row)) return;
    this.#isLive[row] = 0;
    this.#writes[row] = write;
    this.#size--;
  }

  /** Whether no later write has changed the row. */
  isLast(row: number, write: number): boolean {
    return this.#writes[row] === write;
  }

  #grow(rows: number): void {
    const length = Math.max(rows, 2 * this.#isLive.length, FIRST_ROWS);
    const isLive = new Uint8Array(length);
    isLive.set(this.#isLive);
    const writes = new Float64Array(length);
    writes.set(this.#writes);
    this.#isLive = isLive;
    this.#writes = writes;
  }
}

/**
 * How the rows of one directory are distributed over shards: in blocks, round-robin. Shards then fill evenly,
 * and a row mask is split into the shards' masks by copying words.
 *
 *   row = block · BLOCK_ROWS + rest;  shard = block mod shards
 *   row in the shard = ⌊block / shards⌋ · BLOCK_ROWS + rest
 */
const BLOCK_ROWS = 512;
const BLOCK_WORDS = BLOCK_ROWS / 32;

export function shardOfRow(row: number, shards: number): number {
  return Math.floor(row / BLOCK_ROWS) % shards;
}

export function rowInShard(row: number, shards: number): number {
  return Math.floor(row / (BLOCK_ROWS * shards)) * BLOCK_ROWS + (row % BLOCK_ROWS);
}

export function rowOfShard(own: number, shard: number, shards: number): number {
  return (Math.floor(own / BLOCK_ROWS) * shards + shard) * BLOCK_ROWS + (own % BLOCK_ROWS);
}

/** The part of a mask that belongs to `shard`, over that shard's own rows. */
export function maskOfShard(mask: Uint32Array, shard: number, shards: number): Uint32Array<ArrayBuffer> {
  const blocks = Math.ceil(mask.length / BLOCK_WORDS);
  const own = new Uint32Array(Math.max(0, Math.ceil((blocks - shard) / shards)) * BLOCK_WORDS);
  for (let block = shard, to = 0; block < blocks; block += shards, to += BLOCK_WORDS) {
    own.set(mask.subarray(block * BLOCK_WORDS, (block + 1) * BLOCK_WORDS), to);
  }
  return own;
}

/**
 * Buffers for vectors on their way to the workers. A worker that gets a buffer of its own with each message has
 * it accounted to its heap, and V8 collects that whole heap every few messages: a third of the time of loading
 * a million vectors. Memory shared between threads is used again and again instead. A page that is not
 * cross-origin isolated has none; its vectors are transferred.
 */
const MAX_BUFFERS = 8;
const MIN_BYTES = 1 << 16;
/** How rows are written. @internal */
export interface SetOptions {
  /** The caller needs the matrix's buffer no more: it is transferred where one worker has all the rows. */
  readonly isGiven?: boolean;
  /** Much comes, and is searched before it has codes: these are made when nothing more comes. */
  readonly isDeferred?: boolean;
}

/** Longer messages are seldom, and their buffers are not kept. */
const MAX_BYTES = 1 << 21;

export class VectorStaging {
  readonly #free: SharedArrayBuffer[] = [];
  #count = 0;

  /** Room for so many elements. `give` it back when the worker has answered. */
  take(elements: number): Float32Array {
    const bytes = 4 * elements;
    if (typeof SharedArrayBuffer === "undefined" || bytes > MAX_BYTES) return new Float32Array(elements);
    const fitting = this.#free.findIndex(({ byteLength }) => byteLength >= bytes);
    if (fitting !== -1) return new Float32Array(this.#free.splice(fitting, 1)[0]!, 0, elements);
    if (this.#free.pop() !== undefined) this.#count--;
    if (this.#count === MAX_BUFFERS) return new Float32Array(elements);
    this.#count++;
    return new Float32Array(new SharedArrayBuffer(Math.max(bytes, MIN_BYTES)), 0, elements);
  }

  give({ buffer }: Float32Array): void {
    if (typeof SharedArrayBuffer !== "undefined" && buffer instanceof SharedArrayBuffer) this.#free.push(buffer);
  }
}
