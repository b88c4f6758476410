/**
 * How much the change feed reads at once.
 *
 * The embedded database has one session. A caller who writes one long statement after the other has it again as
 * soon as a read of the feed has ended. A read of fixed size may bring less than each statement writes, and the
 * feed would never catch up. So a read may go on for three times as long as it had to wait: reading what was
 * written takes less than writing it, but not always by much.
 */

const TURN_FACTOR = 3;
/** Others wait no longer for it. */
const MAX_TURN_MS = 2_000;
/** What a turn has read is held all at once. */
const MAX_TURN_BYTES = 48_000_000;

export class FeedTurn {
  readonly #endsAt: number;
  #bytes = 0;
  readonly #now: () => number;

  /** Begins now. @param waitedMs  how long it had to wait. @param now  milliseconds of a clock that is never set; for tests. */
  constructor(waitedMs: number, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#endsAt = now() + Math.min(TURN_FACTOR * waitedMs, MAX_TURN_MS);
  }

  /** Whether there may be one more piece, after one of so many bytes. */
  goesOn(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes < MAX_TURN_BYTES && this.#now() < this.#endsAt;
  }
}
