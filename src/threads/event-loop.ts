/**
 * Long work on the main thread, cut into slices. Below every layer, since every layer has some.
 *
 * A slice is bounded by the work in it (characters looked at, values made), never by rows or requests, whose
 * sizes users choose. Everything else that waits is served between two slices. However many such tasks there are,
 * the event loop runs one slice per turn, and callers take turns. Only who holds what everybody needs goes first.
 */
import { FairQueue } from "../fairness/fair-queue.ts";

/** About 5 ms of inspecting characters one by one. */
export const SLICE_UNITS = 1 << 19;

interface Waiting {
  readonly resume: () => void;
}

const waiting = new FairQueue<Waiting>();
const holding: Waiting[] = [];
let isTurning = false;

/** Resolves when others have been served and it is this caller's turn again. */
export function yieldToEventLoop(caller = ""): Promise<void> {
  return turnOf((resume) => waiting.push(caller, { resume }));
}

/**
 * The same for who holds what everybody needs, against priority inversion: it goes before all others, whose slices wait for
 * as long as there is one.
 */
export function yieldWhileHolding(): Promise<void> {
  return turnOf((resume) => void holding.push({ resume }));
}

function turnOf(push: (resume: () => void) => void): Promise<void> {
  return new Promise((resume) => {
    push(resume);
    if (isTurning) return;
    isTurning = true;
    setImmediate(turn);
  });
}

function turn(): void {
  (holding.shift() ?? waiting.shift(1)?.item)?.resume();
  isTurning = waiting.size + holding.length > 0;
  if (isTurning) setImmediate(turn);
}

export interface SliceOptions {
  /** When it aborts, `rest` rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Others wait for what is held meanwhile. */
  readonly isHolding?: boolean;
}

/**
 * Counts the work of one request: `if (slices.spend(n)) await slices.rest();`. Synchronous, so that most steps
 * cost no promise.
 */
export class Slices {
  readonly #caller: string;
  readonly #unitsPerSlice: number;
  readonly #options: SliceOptions;
  #left: number;

  constructor(unitsPerSlice = SLICE_UNITS, caller = "", options: SliceOptions = {}) {
    this.#caller = caller;
    this.#options = options;
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
    await (this.#options.isHolding === true ? yieldWhileHolding() : yieldToEventLoop(this.#caller));
    this.#options.signal?.throwIfAborted();
  }
}
