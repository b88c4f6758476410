/**
 * How the shards of one search share scores while they run, so that each can skip rows that the others have
 * already beaten. Uses memory shared between threads. A page that is not cross-origin isolated has none; its
 * shards then work independently. Answers are the same.
 *
 * Each shard s of S publishes two scores of rows that it has scored: u, that of its k-th best, and t, that of
 * its ⌈k/S⌉-th best. Each is −Infinity, which every row reaches, until there are that many. The k-th best of all rows
 * then scores at least
 *   max over s of u      since k rows of that shard do, and
 *   min over s of t      since ⌈k/S⌉ rows of each of S shards do, k or more together.
 * A row below that is not among the k best. A row equal to it may be, and is not skipped. Each number is
 * written by one shard and can be read at any time: an older value is lower and still valid. They are stored
 * as float32 rounded down, as integers that sort like them: their bits, those after the sign inverted if it is set. The
 * memory begins with zeros: what stands there is the integer ^ that of −Infinity.
 */
const NUMBERS_PER_SHARD = 2;
/** For a larger k, finding the scores to publish takes too long while others wait. */
const MAX_SHARED_K = 1_000;

const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);
/** −Infinity, below all others. */
const NONE = orderedBits(-0x800000);

/** Zeroed memory for one search, or undefined where threads cannot share memory. */
export function createExchange(shards: number, k: number): SharedArrayBuffer | undefined {
  if (shards < 2 || k > MAX_SHARED_K || typeof SharedArrayBuffer === "undefined") return undefined;
  // A frame may have the constructor but not be allowed to send its memory to a worker. Node does not have
  // the property.
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

  /** @param scores  of this shard's best rows so far, at most k, in any order. They are sorted in place. */
  tell(scores: Float64Array): void {
    scores.sort();
    const shards = this.#numbers.length / NUMBERS_PER_SHARD;
    const at = NUMBERS_PER_SHARD * this.#shard;
    Atomics.store(this.#numbers, at, NONE ^ numberBelow(scores[scores.length - this.#k]));
    Atomics.store(this.#numbers, at + 1, NONE ^ numberBelow(scores[scores.length - Math.ceil(this.#k / shards)]));
  }

  /** A score that the k-th best row of all shards reaches. */
  get floor(): number {
    let most = NONE;
    let least = 0x7fffffff;
    for (let at = 0; at < this.#numbers.length; at += NUMBERS_PER_SHARD) {
      most = Math.max(most, Atomics.load(this.#numbers, at) ^ NONE);
      least = Math.min(least, Atomics.load(this.#numbers, at + 1) ^ NONE);
    }
    bits[0] = orderedBits(Math.max(most, least));
    return float[0]!;
  }
}

/** Of the bits of a float32 an integer that sorts like it, and of that integer the bits. */
function orderedBits(either: number): number {
  return either < 0 ? either ^ 0x7fffffff : either;
}

/** The integer of the largest float32 not above `score`. */
function numberBelow(score = Number.NEGATIVE_INFINITY): number {
  float[0] = score;
  const number = orderedBits(bits[0]!);
  return float[0] > score ? number - 1 : number;
}
