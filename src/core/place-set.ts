/** A set of places, one bit each: a million places take 125 kB. */
const BITS = 32;

export class PlaceSet {
  #words = new Uint32Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(place: number): boolean {
    return (((this.#words[place >>> 5] ?? 0) >>> (place & 31)) & 1) === 1;
  }

  add(place: number): void {
    if (place >>> 5 >= this.#words.length) this.#grow((place >>> 5) + 1);
    if (this.has(place)) return;
    this.#words[place >>> 5]! |= 1 << (place & 31);
    this.#size++;
  }

  delete(place: number): boolean {
    if (!this.has(place)) return false;
    this.#words[place >>> 5]! &= ~(1 << (place & 31));
    this.#size--;
    return true;
  }

  /** Adds all places of another set. */
  addAll(other: PlaceSet): void {
    if (other.#words.length > this.#words.length) this.#grow(other.#words.length);
    this.#size = 0;
    for (let w = 0; w < this.#words.length; w++) {
      const word = this.#words[w]! | (other.#words[w] ?? 0);
      this.#words[w] = word;
      this.#size += bitCount(word);
    }
  }

  /** The first place of the set from `from` on, or −1. */
  next(from: number): number {
    for (let w = from >>> 5; w < this.#words.length; w++) {
      const bits = w === from >>> 5 ? this.#words[w]! & (-1 << (from & 31)) : this.#words[w]!;
      if (bits !== 0) return w * BITS + (31 - Math.clz32(bits & -bits));
    }
    return -1;
  }

  #grow(words: number): void {
    const grown = new Uint32Array(Math.max(words, 2 * this.#words.length, 8));
    grown.set(this.#words);
    this.#words = grown;
  }
}

function bitCount(word: number): number {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
