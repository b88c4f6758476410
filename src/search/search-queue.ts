/**
 * The queue of searches on their way to the engine. A few are sent ahead. The rest waits here, where they can
 * still be cancelled, and callers are served fairly by the time that their searches take. Beyond a limit,
 * which callers also share, a search is refused at once: that is better for everyone than an answer that
 * comes too late.
 */
import { FairTurns } from "../fairness/fair-turns.ts";

const DEFAULT_MAX_WAITING = 512;
const MIB = 2 ** 20;
/**
 * Searches are sent ahead until the indexes that they may read have so many MiB: one in progress and one that is ready
 * when it has finished, or several small ones. Those are answered together, which wakes each thread once.
 */
const AHEAD_MIB = 256;
/**
 * Searches for words at a time. One with a thousand misspelt words takes seconds, in slices. So they have places of their own, of
 * which one caller gets three: with those of vectors, two of them kept everybody else's searches waiting.
 */
const WORDS_AT_ONCE = 4;

export class SearchQueue {
  readonly #turns: FairTurns;
  readonly #words: FairTurns;
  readonly #most: number;

  /** @param atOnce  how many searches the engine handles at once; default: one, whatever it is given. */
  constructor(maxWaiting = DEFAULT_MAX_WAITING, atOnce?: number) {
    this.#most = atOnce === undefined ? AHEAD_MIB / 2 : 1;
    this.#turns = new FairTurns({
      places: atOnce ?? AHEAD_MIB,
      allToOne: true,
      mostWaiting: maxWaiting,
      busy,
    });
    this.#words = new FairTurns({ places: WORDS_AT_ONCE, mostWaiting: maxWaiting, busy });
  }

  get waiting(): number {
    return this.#turns.waiting + this.#words.waiting;
  }

  /**
   * @param bytes  that the search reads at most; default: more than is sent ahead.
   * @throws {LodestoneError} OVERLOADED; the signal's reason when it aborts before `work` begins; what `work` throws.
   */
  run<Result>(
    caller: string,
    signal: AbortSignal | undefined,
    work: () => Promise<Result>,
    bytes = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    return this.#turns.run(caller, signal, work, { places: Math.min(this.#most, Math.ceil(bytes / MIB) + 1) });
  }

  /** A search for words, with or without a vector. @throws as run. */
  runWords<Result>(caller: string, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    return this.#words.run(caller, signal, work);
  }

  /** Rejects all searches that wait. */
  close(reason: Error): void {
    this.#turns.close(reason);
    this.#words.close(reason);
  }
}

const busy = (waiting: number, seconds: number): string => `${waiting} searches are waiting already; try again in ${seconds} s.`;
