/**
 * How much the change feed reads at once.
 *
 * The embedded database has one session. A caller who writes one long statement after another gets it back as soon
 * as a read of the feed has ended. A read of fixed size may return less than each statement writes, and the feed
 * would never catch up. So a read may last three times as long as it had to wait: reading what was written takes
 * less time than writing it, but not always much less. Its longest time is one of computing: on a machine that is ten
 * times slower a statement takes ten times as long, too, and reading what it wrote.
 *
 * When several callers are there, who writes for long rests for as long (unit-queue.ts), and the feed reads on
 * meanwhile. Then its turns are short, so that nobody waits long for one.
 */

const TURN_FACTOR = 3;
/** Others do not wait longer than this for it, on a processor that is not shared. */
const MAX_TURN_MS = 2_000;
/** The same when several callers are there. */
const SHARED_TURN_MS = 250;
/** Bounds what a turn reads, since all of it is held at once. */
const MAX_TURN_BYTES = 48_000_000;

/** Both in milliseconds. */
export interface Clocks {
  /** Never goes back. */
  now(): number;
  /** What this process has computed in all of its threads. */
  computed(): number;
}

const CLOCKS: Clocks = {
  now: () => performance.now(),
  computed: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
};

export class FeedTurn {
  readonly #clocks: Clocks;
  readonly #longestMs: number;
  readonly #mostComputedMs: number;
  readonly #begunAt: number;
  readonly #computedBefore: number;
  #bytes = 0;

  /** Begins now. @param waitedMs  how long it had to wait. @param isShared  several callers are there. @param clocks  for tests. */
  constructor(waitedMs: number, isShared: boolean, clocks = CLOCKS) {
    this.#clocks = clocks;
    this.#longestMs = TURN_FACTOR * waitedMs;
    this.#mostComputedMs = isShared ? SHARED_TURN_MS : MAX_TURN_MS;
    this.#begunAt = clocks.now();
    this.#computedBefore = clocks.computed();
  }

  /** Whether another piece may be read, after one of `bytes` bytes. */
  goesOn(bytes: number): boolean {
    this.#bytes += bytes;
    const lastsMs = this.#clocks.now() - this.#begunAt;
    // Not the computed time alone: while shards search, it runs faster than the clock.
    const countedMs = Math.min(lastsMs, this.#clocks.computed() - this.#computedBefore);
    return this.#bytes < MAX_TURN_BYTES && lastsMs < this.#longestMs && countedMs < this.#mostComputedMs;
  }
}
