/** The replicas of a branch that wait for its next group: told in turns, and how long that takes says how much is gathered for the next. */

/** Between the first change and its read: what is written together, and what its answers say of it, is one group. */
const GATHERED_MS = 4;
/** So many times as long as telling all replicas of a group took is gathered for the next: they take a quarter of the thread at most. */
const GATHERED_PER_TOLD = 3;
const LONGEST_GATHERED_MS = 500;
/** Replicas that are told in one turn of the event loop: 0.1 ms each. */
const TOLD_AT_ONCE = 64;

export class WaitingReplicas {
  readonly #waiting = new Set<() => void>();
  /** How long telling those of the last group took. */
  #toldMs = 0;

  /** For so long changes are gathered before they are read. */
  get gatheredMs(): number {
    return Math.min(Math.max(GATHERED_MS, GATHERED_PER_TOLD * this.#toldMs), LONGEST_GATHERED_MS);
  }

  /** Resolves when it is told (true), or after so many milliseconds (false); rejects with the signal's reason. */
  wait(signal: AbortSignal, timeMs?: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const end = (): void => {
        this.#waiting.delete(woken);
        signal.removeEventListener("abort", left);
        clearTimeout(timer);
      };
      const woken = (): void => {
        end();
        resolve(true);
      };
      const left = (): void => {
        end();
        reject(signal.reason);
      };
      const late = (): void => {
        end();
        resolve(false);
      };
      const timer = timeMs === undefined ? undefined : setTimeout(late, timeMs);
      this.#waiting.add(woken);
      signal.addEventListener("abort", left, { once: true });
    });
  }

  /** Tells those that wait now, and resolves when each has been given its piece. */
  async tell(): Promise<void> {
    this.#toldMs = 0;
    const waiting = [...this.#waiting];
    for (let n = 0; n < waiting.length; n += TOLD_AT_ONCE) {
      const beganAt = performance.now();
      for (const woken of waiting.slice(n, n + TOLD_AT_ONCE)) woken();
      // Before anything else runs they make their pieces and write them.
      await new Promise((resolve) => setImmediate(resolve));
      this.#toldMs += performance.now() - beganAt;
    }
  }

  /** Tells all of them at once that there will be nothing more. */
  end(): void {
    for (const woken of [...this.#waiting]) woken();
  }
}
