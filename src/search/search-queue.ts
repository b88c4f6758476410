/**
 * The queue of searches on their way to the worker. A few are sent ahead. The rest waits here, where they can
 * still be cancelled, and callers are served fairly by the time that their searches take. Beyond a limit,
 * which callers also share, a search is refused at once: that is better for everyone than an answer that
 * comes too late.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { FairQueue } from "../fairness/fair-queue.ts";
import { FairShares } from "../fairness/fair-shares.ts";

/** One in progress, and one ready when it has finished. */
const DEFAULT_SENT_AHEAD = 2;
const DEFAULT_MAX_WAITING = 512;
const AVERAGED_OVER = 32;

interface Waiting {
  start(expectedMs: number): void;
  reject(error: unknown): void;
}

export class SearchQueue {
  readonly #waiting = new FairQueue<Waiting>();
  readonly #places: FairShares;
  readonly #sentAhead: number;
  #running = 0;
  /** A moving average of the worker's time per search. */
  #averageMs = 0;

  /** @param sentAhead  how many searches the engine is given at once. */
  constructor(maxWaiting = DEFAULT_MAX_WAITING, sentAhead = DEFAULT_SENT_AHEAD) {
    this.#sentAhead = sentAhead;
    this.#places = new FairShares(maxWaiting);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Runs `work` when its turn comes.
   *
   * @param caller  the caller whose turn is used.
   * @throws {LodestoneError} OVERLOADED, with the estimated waiting time; the signal's reason if it aborts
   *   before `work` begins.
   */
  async run<Result>(work: () => Promise<Result>, signal?: AbortSignal, caller = ""): Promise<Result> {
    signal?.throwIfAborted();
    let expectedMs = 0;
    if (this.#running >= this.#sentAhead) expectedMs = await this.#wait(signal, caller);
    else this.#running++;
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      const elapsedMs = (performance.now() - startedAt) / this.#sentAhead;
      this.#averageMs += (elapsedMs - this.#averageMs) / AVERAGED_OVER;
      this.#waiting.charge(caller, elapsedMs - expectedMs);
      this.#next();
    }
  }

  /**
   * Resolves when this search may run, to the cost that was charged for it. It takes over the place in
   * `#running` of the search that ended.
   */
  #wait(signal: AbortSignal | undefined, caller: string): Promise<number> {
    if (!this.#places.take(caller)) {
      const retryAfterSeconds = Math.max(1, Math.ceil((this.#waiting.size * this.#averageMs) / 1000));
      throw new LodestoneError("OVERLOADED", `${this.#waiting.size} searches are waiting already; try again in ${retryAfterSeconds} s.`, {
        retryAfterSeconds,
      });
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#places.give(caller);
        signal?.removeEventListener("abort", onAbort);
      };
      const entry: Waiting = {
        start: (expectedMs) => {
          leave();
          resolve(expectedMs);
        },
        reject: (error) => {
          leave();
          reject(error);
        },
      };
      const onAbort = (): void => {
        this.#waiting.delete(caller, entry);
        entry.reject(signal!.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(caller, entry);
    });
  }

  #next(): void {
    const expectedMs = this.#averageMs;
    const next = this.#waiting.shift(expectedMs);
    if (next === undefined) this.#running--;
    else next.item.start(expectedMs);
  }

  /** Rejects all waiting searches. */
  close(error: Error): void {
    for (const entry of this.#waiting.drain()) entry.reject(error);
  }
}
