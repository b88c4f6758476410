/** Counting semaphore, first in, first out; with 1 a mutex. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  async run<Result>(work: () => Promise<Result> | Result): Promise<Result> {
    await this.take();
    try {
      return await work();
    } finally {
      this.give();
    }
  }

  /** Resolves when it is the caller's turn, which lasts until it calls `give`. */
  async take(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    // Passed to the next in line, or returned if nobody waits.
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
