/**
 * How much the change feed reads at once.
 *
 * The embedded database has one session. A caller who writes one long statement after another gets it back as soon
 * as a read of the feed has ended. A read of fixed size may return less than each statement writes, and the feed
 * would never catch up. So a read may last three times as long as it had to wait: reading what was written takes
 * less time than writing it, but not always much less.
 */

const TURN_FACTOR = 3;
/** Others do not wait longer than this for it. */
const MAX_TURN_MS = 2_000;
/** Bounds what a turn reads, since all of it is held at once. */
const MAX_TURN_BYTES = 48_000_000;

export class FeedTurn {
  readonly #endsAt: number;
  #bytes = 0;
  readonly #now: () => number;

  /** Begins now. @param waitedMs  how long it had to wait. @param now  milliseconds of a monotonic clock; for tests. */
  constructor(waitedMs: number, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#endsAt = now() + Math.min(TURN_FACTOR * waitedMs, MAX_TURN_MS);
  }

  /** Whether another piece may be read, after one of `bytes` bytes. */
  goesOn(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes < MAX_TURN_BYTES && this.#now() < this.#endsAt;
  }
}
