/** Whose turn it is to advance a branch. */

/** Other rounds wait so long for a snapshot that is likely to follow. */
const HOLD_BACK_MS = 100;

/**
 * Runs the rounds of one branch one at a time. Rounds that stop at a given snapshot go before rounds that
 * advance as far as possible, because a branch cannot go back to a snapshot that it has passed.
 */
export class RoundTurns {
  #isRunning = false;
  readonly #first: (() => void)[] = [];
  readonly #others: (() => void)[] = [];
  #heldBackUntil = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  run<Result>(round: () => Promise<Result>): Promise<Result> {
    return this.#wait(this.#others, round);
  }

  runFirst<Result>(round: () => Promise<Result>): Promise<Result> {
    this.#heldBackUntil = Number.NEGATIVE_INFINITY;
    return this.#wait(this.#first, round);
  }

  /** A snapshot came too late, so another is likely to follow soon. Other rounds wait for it briefly. */
  holdBack(): void {
    this.#heldBackUntil = performance.now() + HOLD_BACK_MS;
  }

  async #wait<Result>(queue: (() => void)[], round: () => Promise<Result>): Promise<Result> {
    await new Promise<void>((resolve) => {
      queue.push(resolve);
      this.#next();
    });
    try {
      return await round();
    } finally {
      this.#isRunning = false;
      this.#next();
    }
  }

  #next(): void {
    if (this.#isRunning) return;
    const waitMs = this.#heldBackUntil - performance.now();
    if (this.#first.length === 0 && this.#others.length > 0 && waitMs > 0) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#next(), waitMs);
      return;
    }
    const start = this.#first.shift() ?? this.#others.shift();
    if (start === undefined) return;
    this.#isRunning = true;
    start();
  }
}
