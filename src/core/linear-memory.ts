/**
 * Views of a shard's linear memory. They cover all of it, and are taken once: making one costs as much as a small search's result. Growing detaches them, which
 * their length shows; then they are taken anew.
 */

/** u32 of an entry of a heap (assembly/exact/top-k.ts): score f64, row u32, unused u32. */
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

  /** Element i is at address 4 i. To be asked for again after a call that can grow memory. */
  get floats(): Float32Array<ArrayBuffer> {
    this.#renew();
    return this.#floats;
  }

  /** Element i is at address 4 i. To be asked for again after a call that can grow memory. */
  get words(): Uint32Array<ArrayBuffer> {
    this.#renew();
    return this.#words;
  }

  /** Copies of the `count` entries of a heap at address `ptr`. */
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
