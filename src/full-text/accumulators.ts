/**
 * The arrays by document that scoring a query adds up in. They are all zeros between queries, and one set is kept for the
 * next: otherwise each query would allocate, clear and collect 16 bytes a document, however rare its words (1,000,000
 * documents: 3 ms, and some 80 ms of garbage collection in every tenth query). The collector may have them at any time.
 */
export class Accumulators {
  scores = new Float64Array(0);
  /** How often a document has any of some words, in tenths. */
  frequencies = new Uint32Array(0);
  /** Of the last term that was found in the document. */
  stamps = new Uint32Array(0);
  #stamp = 0;

  reserve(documents: number): void {
    if (documents <= this.scores.length) return;
    const length = Math.ceil(1.25 * documents);
    this.scores = new Float64Array(length);
    this.frequencies = new Uint32Array(length);
    this.stamps = new Uint32Array(length);
  }

  /** A stamp that no document has. */
  nextStamp(): number {
    if (this.#stamp === 0xffff_ffff) {
      this.stamps.fill(0);
      this.#stamp = 0;
    }
    return ++this.#stamp;
  }
}

let idle: WeakRef<Accumulators> | undefined;

/** Arrays for this many documents; no other query has them until `giveBack`. */
export function takeAccumulators(documents: number): Accumulators {
  const taken = idle?.deref() ?? new Accumulators();
  idle = undefined;
  taken.reserve(documents);
  return taken;
}

/** @param accumulators  whose scores and frequencies are zeros again. A query that is given up keeps its own. */
export function giveBack(accumulators: Accumulators): void {
  idle = new WeakRef(accumulators);
}
