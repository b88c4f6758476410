/**
 * XXH32, seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). It detects damage; it is
 * not cryptographic.
 */

const P1 = 0x9e3779b1;
const P2 = 0x85ebca77;
const P3 = 0xc2b2ae3d;
const P4 = 0x27d4eb2f;
const P5 = 0x165667b1;

function rotate(x: number, bits: number): number {
  return (x << bits) | (x >>> (32 - bits));
}

function round(accumulator: number, word: number): number {
  return Math.imul(rotate((accumulator + Math.imul(word, P2)) | 0, 13), P1);
}

const BLOCK_BYTES = 16;

/** Computes the checksum of bytes that arrive in pieces. */
export class Xxh32 {
  #a = (P1 + P2) | 0;
  #b = P2 | 0;
  #c = 0;
  #d = -P1 | 0;
  #length = 0;
  /** The bytes of an incomplete block. */
  readonly #rest = new Uint8Array(BLOCK_BYTES);
  #restLength = 0;

  update(bytes: Uint8Array): void {
    this.#length += bytes.length;
    let from = 0;
    if (this.#restLength > 0) {
      from = Math.min(BLOCK_BYTES - this.#restLength, bytes.length);
      this.#rest.set(bytes.subarray(0, from), this.#restLength);
      this.#restLength += from;
      if (this.#restLength < BLOCK_BYTES) return;
      this.#blocks(this.#rest);
      this.#restLength = 0;
    }
    const whole = from + Math.floor((bytes.length - from) / BLOCK_BYTES) * BLOCK_BYTES;
    const blocks = bytes.subarray(from, whole);
    this.#blocks(blocks.byteOffset % 4 === 0 ? blocks : blocks.slice());
    this.#rest.set(bytes.subarray(whole));
    this.#restLength = bytes.length - whole;
  }

  #blocks(bytes: Uint8Array): void {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    let a = this.#a;
    let b = this.#b;
    let c = this.#c;
    let d = this.#d;
    for (let at = 0; at < words.length; at += 4) {
      a = round(a, words[at]!);
      b = round(b, words[at + 1]!);
      c = round(c, words[at + 2]!);
      d = round(d, words[at + 3]!);
    }
    this.#a = a;
    this.#b = b;
    this.#c = c;
    this.#d = d;
  }

  digest(): number {
    let hash = this.#length < BLOCK_BYTES ? P5 : rotate(this.#a, 1) + rotate(this.#b, 7) + rotate(this.#c, 12) + rotate(this.#d, 18);
    hash = (hash + this.#length) | 0;
    const words = new Int32Array(this.#rest.buffer, 0, this.#restLength >> 2);
    for (const word of words) hash = Math.imul(rotate((hash + Math.imul(word, P3)) | 0, 17), P4);
    for (let i = words.length << 2; i < this.#restLength; i++) {
      hash = Math.imul(rotate((hash + Math.imul(this.#rest[i]!, P5)) | 0, 11), P1);
    }
    hash = Math.imul(hash ^ (hash >>> 15), P2);
    hash = Math.imul(hash ^ (hash >>> 13), P3);
    return (hash ^ (hash >>> 16)) >>> 0;
  }
}
