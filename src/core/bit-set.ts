/** A set of whole numbers that grows, one bit each: a million of them take 125 kB. */
export class BitSet {
  #words = new Uint32Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(n: number): boolean {
    return (((this.#words[n >>> 5] ?? 0) >>> (n & 31)) & 1) === 1;
  }

  add(n: number): void {
    if (n >>> 5 >= this.#words.length) this.#grow((n >>> 5) + 1);
    if (this.has(n)) return;
    this.#words[n >>> 5]! |= 1 << (n & 31);
    this.#size++;
  }

  /** @returns whether it was there. */
  delete(n: number): boolean {
    if (!this.has(n)) return false;
    this.#words[n >>> 5]! &= ~(1 << (n & 31));
    this.#size--;
    return true;
  }

  addAll(other: BitSet): void {
    for (let n = other.next(0); n !== -1; n = other.next(n + 1)) this.add(n);
  }

  /** The first number of the set from `from` on, or −1. */
  next(from: number): number {
    let below = -1 << (from & 31);
    for (let w = from >>> 5; w < this.#words.length; w++) {
      const bits = this.#words[w]! & below;
      if (bits !== 0) return 32 * w + (31 - Math.clz32(bits & -bits));
      below = -1;
    }
    return -1;
  }

  #grow(words: number): void {
    const grown = new Uint32Array(Math.max(words, 2 * this.#words.length, 8));
    grown.set(this.#words);
    this.#words = grown;
  }
}
