/**
 * Keeps a branch at one position while a search reads it in several steps. A change waits for the searches that have
 * begun, and searches that come while it waits begin after it: neither waits for ever.
 */
export class Hold {
  #held = 0;
  #onFree: (() => void) | undefined;
  /** Resolves when the change that waits, or is being made, is there. */
  #changing: Promise<unknown> | undefined;

  async read<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#changing !== undefined) await this.#changing;
    this.#held++;
    try {
      return await work();
    } finally {
      if (--this.#held === 0) this.#onFree?.();
    }
  }

  /** One at a time. */
  async change<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    if (this.#held === 0 && this.#changing === undefined) {
      const result = work();
      if (!(result instanceof Promise)) return result;
      return this.#guarded(() => result);
    }
    return this.#guarded(async () => {
      if (this.#held > 0) {
        await new Promise<void>((resolve) => {
          this.#onFree = resolve;
        });
        this.#onFree = undefined;
      }
      return work();
    });
  }

  async #guarded<Result>(work: () => Promise<Result>): Promise<Result> {
    const changing = work();
    this.#changing = changing.catch(() => {}); // told to the caller
    try {
      return await changing;
    } finally {
      this.#changing = undefined;
    }
  }
}
