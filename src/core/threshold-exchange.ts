/**
 * What the shards of one search tell each other while they run: scores that let each skip rows which the others have outdone. Memory that threads share, so there
 * is none in a page that is not cross-origin isolated; shards then work for themselves. Answers are the same.
 *
 * Each shard s of S tells two scores of rows that it has scored: that of its k-th best, u, and that of its ⌈k/S⌉-th best, t; 0, which every row reaches, until
 * it has that many. The k-th best of all rows then scores at least
 *   max over s of u      since k rows of that shard do, and
 *   min over s of t      since ⌈k/S⌉ rows of each of S shards do, k or more together,
 * and a row below that is none of the k best. One that equals it may be, and is not skipped. Each number is written by one shard and read at any time: an older one
 * is lower and as true. They travel as float32 rounded down, whose bits, of numbers that are not negative, are in their order.
 */
const NUMBERS_PER_SHARD = 2;
/** More results than this are not looked through while others wait for what they tell. */
const MAX_SHARED_K = 1_000;

const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** Zeroed memory for one search, or undefined where threads share none. */
export function createExchange(shards: number, k: number): SharedArrayBuffer | undefined {
  if (shards < 2 || k > MAX_SHARED_K || typeof SharedArrayBuffer === "undefined") return undefined;
  // A frame may have the constructor and still not be allowed to send what it makes to a worker. Node does not have the property.
  if (globalThis.crossOriginIsolated === false) return undefined;
  return new SharedArrayBuffer(4 * NUMBERS_PER_SHARD * shards);
}

/** One shard's side. */
export class ThresholdExchange {
  readonly #numbers: Int32Array;
  readonly #shard: number;
  readonly #k: number;

  constructor(buffer: SharedArrayBuffer, shard: number, k: number) {
    this.#numbers = new Int32Array(buffer);
    this.#shard = shard;
    this.#k = k;
  }

  /** @param scores  of this shard's best rows so far, at most k, in any order; they are sorted. */
  tell(scores: Float64Array): void {
    scores.sort();
    const shards = this.#numbers.length / NUMBERS_PER_SHARD;
    const at = NUMBERS_PER_SHARD * this.#shard;
    Atomics.store(this.#numbers, at, bitsBelow(scores[scores.length - this.#k] ?? 0));
    Atomics.store(this.#numbers, at + 1, bitsBelow(scores[scores.length - Math.ceil(this.#k / shards)] ?? 0));
  }

  /** A score that the k-th best of all shards' rows reaches. */
  get floor(): number {
    let most = 0;
    let least = 0x7fffffff;
    for (let at = 0; at < this.#numbers.length; at += NUMBERS_PER_SHARD) {
      most = Math.max(most, Atomics.load(this.#numbers, at));
      least = Math.min(least, Atomics.load(this.#numbers, at + 1));
    }
    bits[0] = Math.max(most, least);
    return float[0]!;
  }
}

/** Bits of the largest float32 that is not above `score`, which is at least 0. */
function bitsBelow(score: number): number {
  float[0] = score;
  return float[0] > score ? bits[0]! - 1 : bits[0]!;
}
