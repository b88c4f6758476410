/** When a worker makes the codes of rows that were set without: while nothing is asked of it, and after each search. */
import type { VectorShard } from "./vector-shard.ts";

/** So long nothing is asked of a worker that has nothing more to do: more than lies between two pieces of a download. */
const QUIET_MS = 50;

export class DeferredCoding {
  readonly #shard: VectorShard;
  #isWaiting = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(shard: VectorShard) {
    this.#shard = shard;
  }

  /** Call it after each request. @param isSearch  whether it was a search: these get faster by it, so each does a part. */
  asked(isSearch: boolean): void {
    if (!this.#isWaiting) return;
    if (isSearch) this.#isWaiting = this.#shard.code();
    this.#codeAfter(QUIET_MS);
  }

  /** Rows were set whose codes wait. */
  begin(): void {
    this.#isWaiting = true;
  }

  #codeAfter(pauseMs: number): void {
    clearTimeout(this.#timer);
    if (!this.#isWaiting) return;
    this.#timer = setTimeout(() => {
      this.#isWaiting = this.#shard.code();
      this.#codeAfter(0);
    }, pauseMs);
  }
}
