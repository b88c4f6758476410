/**
 * Searches on their way to the worker. Few are sent ahead, the rest waits here, where it can still be given up; beyond a bound a search is
 * refused at once, which is better for everybody than an answer that comes too late.
 */
import { LodestoneError } from "../errors.ts";

/** One that is being worked on, one that the worker finds when it has finished. */
const SENT_AHEAD = 2;
const DEFAULT_MAX_WAITING = 512;
const AVERAGED_OVER = 32;

interface Waiting {
  start(): void;
  reject(error: unknown): void;
}

export class SearchQueue {
  readonly #maxWaiting: number;
  readonly #waiting = new Set<Waiting>();
  #running = 0;
  /** A moving average of how long the worker takes for one. */
  #averageMs = 0;

  constructor(maxWaiting = DEFAULT_MAX_WAITING) {
    this.#maxWaiting = maxWaiting;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Runs `work` when its turn comes.
   *
   * @throws {LodestoneError} OVERLOADED, with the time that what waits will take; the signal's reason when it aborts before `work` begins.
   */
  async run<Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    signal?.throwIfAborted();
    if (this.#running >= SENT_AHEAD) await this.#wait(signal);
    else this.#running++;
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      const elapsedMs = (performance.now() - startedAt) / SENT_AHEAD;
      this.#averageMs += (elapsedMs - this.#averageMs) / AVERAGED_OVER;
      this.#next();
    }
  }

  /** Resolves when this one may run; its place in `#running` is that of the one that ended. */
  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= this.#maxWaiting) {
      const retryAfterSeconds = Math.max(1, Math.ceil((this.#waiting.size * this.#averageMs) / 1000));
      throw new LodestoneError("OVERLOADED", `${this.#waiting.size} searches are waiting already; try again in ${retryAfterSeconds} s.`, {
        retryAfterSeconds,
      });
    }
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(entry);
        reject(signal!.reason);
      };
      const entry: Waiting = {
        start: () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
        reject: (error) => {
          signal?.removeEventListener("abort", onAbort);
          reject(error);
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(entry);
    });
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#running--;
      return;
    }
    this.#waiting.delete(first);
    first.start();
  }

  /** Refuses what waits. */
  close(error: Error): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const entry of waiting) entry.reject(error);
  }
}
