/**
 * Views of a shard's linear memory. They cover all of it and are created once, because creating one costs as
 * much as a small search's result. Growing the memory detaches them, which shows in their length; they are
 * then created again.
 */

/** Size in u32 of a heap entry (assembly/exact/top-k.ts): score f64, row u32, unused u32. */
const ENTRY_WORDS = 4;
const ROW_WORD = 2;

export class LinearMemory {
  readonly #memory: WebAssembly.Memory;
  #floats: Float32Array<ArrayBuffer>;
  #doubles: Float64Array<ArrayBuffer>;
  #words: Uint32Array<ArrayBuffer>;

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory;
    this.#floats = new Float32Array(memory.buffer);
    this.#doubles = new Float64Array(memory.buffer);
    this.#words = new Uint32Array(memory.buffer);
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
  }
}
