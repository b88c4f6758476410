/** Counting semaphore, first in, first out. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Handed on to whoever waits, else given back.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
