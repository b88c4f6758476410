/**
 * Frees what large bodies leave behind. V8 lets its heap grow before it looks for garbage, by far more than all bodies
 * may take at once where memory is short. So the heap is collected each time when bodies of half their budget have been
 * released. Cost: some 50 ms, after bodies that took about a second to read and parse.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** The values of smaller bodies are mostly gone with the next quick collection of young values. */
const LEAST_BYTES = 2 ** 20;

export class ReleasedBodies {
  readonly #most: number;
  readonly #collect: () => void;
  #bytes = 0;

  /** @param budgetBytes  of memory, for all bodies together with their values. */
  constructor(budgetBytes: number, collect: () => void = collectGarbage) {
    this.#most = budgetBytes / 2;
    this.#collect = collect;
  }

  /** A request has ended whose body took that much memory. */
  add(bytes: number): void {
    if (bytes < LEAST_BYTES) return;
    this.#bytes += bytes;
    if (this.#bytes < this.#most) return;
    this.#bytes = 0;
    // By then nobody refers to the last one any more.
    setImmediate(this.#collect);
  }
}

let collector: (() => void) | undefined;

export function collectGarbage(): void {
  if (collector === undefined) {
    // Contexts that are made from then on have the function.
    setFlagsFromString("--expose-gc");
    collector = runInNewContext("gc") as () => void;
    setFlagsFromString("--no-expose-gc");
  }
  collector();
}
