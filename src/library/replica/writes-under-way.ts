/** Writes that have begun: several at once, so that the next is prepared meanwhile, but not any number of them. */

/** As many requests as a worker is sent at once. */
const MOST_WRITES = 4;
const MOST_BYTES = 16 << 20;

interface Write {
  readonly done: Promise<unknown>;
  readonly bytes: number;
}

export class WritesUnderWay {
  /** In the order in which they began. */
  readonly #writes: Write[] = [];
  #bytes = 0;

  /**
   * Resolves when another one may begin.
   * @param bytes  that it holds until it is done.
   * @throws the error of the first write that failed; the caller begins no more then.
   */
  async add(done: Promise<unknown>, bytes: number): Promise<void> {
    // Its error is thrown in its turn, and may come before that.
    done.catch(() => {});
    this.#writes.push({ done, bytes });
    this.#bytes += bytes;
    while (this.#writes.length >= MOST_WRITES || this.#bytes >= MOST_BYTES) await this.#first();
  }

  /** Resolves when all are done. @throws as `add`. */
  async end(): Promise<void> {
    while (this.#writes.length > 0) await this.#first();
  }

  async #first(): Promise<void> {
    const { done, bytes } = this.#writes[0]!;
    await done;
    // Not before: a write that failed stays the first.
    this.#writes.shift();
    this.#bytes -= bytes;
  }
}
