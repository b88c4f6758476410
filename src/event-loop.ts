/**
 * Long work on the main thread, cut in slices: below every layer, since all of them have some. A slice is
 * bounded by the work in it (characters looked at, values made), never by rows or requests, whose sizes are the
 * users' to choose. Between two slices everything else that waits is served, and however many pieces of work
 * are cut so, the event loop runs one slice a turn, the callers' in turns.
 */
import { FairQueue } from "./fairness/fair-queue.ts";

/** Some 5 ms of looking at characters one by one. */
export const SLICE_UNITS = 1 << 19;

interface Waiting {
  readonly resume: () => void;
}

const waiting = new FairQueue<Waiting>();
let isTurning = false;

/** Resolves when others have been served, and it is this caller's turn to go on. */
export function yieldToEventLoop(caller = ""): Promise<void> {
  return new Promise((resume) => {
    waiting.push(caller, { resume });
    if (isTurning) return;
    isTurning = true;
    setImmediate(turn);
  });
}

function turn(): void {
  waiting.shift(1)?.item.resume();
  isTurning = waiting.size > 0;
  if (isTurning) setImmediate(turn);
}

/**
 * Counts the work of one request: `if (slices.spend(n)) await slices.rest();`. Synchronous, so that most steps
 * cost no promise.
 */
export class Slices {
  readonly #caller: string;
  readonly #unitsPerSlice: number;
  #left: number;

  constructor(unitsPerSlice = SLICE_UNITS, caller = "") {
    this.#caller = caller;
    this.#unitsPerSlice = unitsPerSlice;
    this.#left = unitsPerSlice;
  }

  /** Work that was done just now. True: the slice is used up. */
  spend(units: number): boolean {
    this.#left -= units;
    return this.#left <= 0;
  }

  rest(): Promise<void> {
    this.#left = this.#unitsPerSlice;
    return yieldToEventLoop(this.#caller);
  }
}
