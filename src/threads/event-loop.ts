/**
 * Long work on the main thread, cut into slices. Below every layer, since every layer has some.
 *
 * A slice is bounded by the work in it (characters looked at, values made), never by rows or requests, whose
 * sizes users choose. Everything else that waits is served between two slices. However many such tasks there are,
 * the event loop runs one slice per turn, and callers take turns.
 */
import { FairQueue } from "../fairness/fair-queue.ts";

/** About 5 ms of inspecting characters one by one. */
export const SLICE_UNITS = 1 << 19;

interface Waiting {
  readonly resume: () => void;
}

const waiting = new FairQueue<Waiting>();
let isTurning = false;

/** Resolves when others have been served and it is this caller's turn again. */
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
  readonly #signal: AbortSignal | undefined;
  #left: number;

  /** @param signal  when it aborts, `rest` rejects with its reason. */
  constructor(unitsPerSlice = SLICE_UNITS, caller = "", signal?: AbortSignal) {
    this.#caller = caller;
    this.#signal = signal;
    this.#unitsPerSlice = unitsPerSlice;
    this.#left = unitsPerSlice;
  }

  /** Counts work that was just done. True: the slice is used up. */
  spend(units: number): boolean {
    this.#left -= units;
    return this.#left <= 0;
  }

  async rest(): Promise<void> {
    this.#left = this.#unitsPerSlice;
    await yieldToEventLoop(this.#caller);
    this.#signal?.throwIfAborted();
  }
}
