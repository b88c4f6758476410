/**
 * Is there one order of a key's operations, each placed between its request and its response, that explains
 * every response?
 *
 * The search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with Lowe's memory of
 * visited configurations (2017), one key at a time (Herlihy and Wing: a history is linearizable when each
 * object's part is). Deviations:
 * - Operations without a response may be left out: when nothing else explains the responses up to the moment
 *   after which they cannot take effect.
 * - An answered operation that changed nothing (a read, a delete that found nothing) is placed at once where
 *   its response fits, and never tried later. No order is lost by that.
 * - Visited configurations are kept as two 32-bit Zobrist hashes and the state. A collision could only report
 *   a false fault, with odds of 1 in 10^8.
 */
import type { Operation } from "./history.ts";
import { isAnswered, type State, stateText, step } from "./record-model.ts";

export type Linearization =
  | { readonly outcome: "linearizable"; readonly order: readonly Operation[] }
  /**
   * `blocked` is the operation whose response could not be placed in the longest order found; `state` is what
   * the key held there.
   */
  | { readonly outcome: "impossible"; readonly blocked: Operation; readonly state: State; readonly placed: number }
  | { readonly outcome: "undecided"; readonly steps: number };

const DEFAULT_MAX_STEPS = 20_000_000;

/**
 * The order in which continuations are tried. Unanswered writes that nobody saw come last: most of them were
 * never done, and trying each one at every point is what makes the search explode.
 */
const ANSWERED = 0;
const UNANSWERED_BUT_SEEN = 1;
const OMIT = 2;
const UNANSWERED_UNSEEN = 3;

interface Placed {
  readonly operation: number;
  readonly before: State;
  readonly pass: number;
  /** Its response fits here, and it changed nothing. */
  readonly forced: boolean;
}

export function linearize(operations: readonly Operation[], initial: State = null, maxSteps = DEFAULT_MAX_STEPS): Linearization {
  const sorted = operations.map((operation) => ({ operation, from: earliest(operation) })).sort((a, b) => a.from - b.from);
  const list = new EventList(
    sorted.map(({ from }) => from),
    sorted.map(({ operation }) => operation.returnedMs),
  );
  const seen = new Set(operations.flatMap(({ action }) => ("saw" in action && action.saw !== null ? [action.saw.value] : [])));
  const passOf = sorted.map(({ operation: { action } }) => {
    if (isAnswered(action)) return ANSWERED;
    return "value" in action && seen.has(action.value) ? UNANSWERED_BUT_SEEN : UNANSWERED_UNSEEN;
  });
  const { low, high } = zobrist(sorted.length);
  const visited = new Set<string>();
  const placed: Placed[] = [];
  let state: State = initial;
  let hashLow = 0;
  let hashHigh = 0;
  let deepest: { blocked: Operation; state: State; placed: number } | undefined;
  let event = list.first;
  let pass = ANSWERED;

  for (let steps = 0; steps < maxSteps; steps++) {
    if (event === list.end) {
      return { outcome: "linearizable", order: placed.filter((p) => p.pass !== OMIT).map((p) => sorted[p.operation]!.operation) };
    }
    const index = list.operationOf(event);
    const { operation } = sorted[index]!;
    if (list.isCall(event)) {
      const next = passOf[index] === pass ? step(state, operation.action) : undefined;
      if (next === undefined || !place(index, next)) event = list.next(event);
    } else if (pass === OMIT) {
      // Its time is over and it has not been placed: without a response it may never have been done.
      if (isAnswered(operation.action) || !place(index, state)) {
        pass = UNANSWERED_UNSEEN;
        event = list.first;
      }
    } else if (pass === UNANSWERED_BUT_SEEN) {
      pass = OMIT; // at this very event
    } else if (pass === ANSWERED) {
      pass = UNANSWERED_BUT_SEEN;
      event = list.first;
    } else {
      if (deepest === undefined || placed.length > deepest.placed) deepest = { blocked: operation, state, placed: placed.length };
      if (!undo()) return { outcome: "impossible", ...deepest };
    }
  }
  return { outcome: "undecided", steps: maxSteps };

  /** False if this configuration has been tried before without success. */
  function place(index: number, next: State): boolean {
    const key = `${hashLow ^ low[index]!}:${hashHigh ^ high[index]!}:${stateText(next)}`;
    if (visited.has(key)) return false;
    visited.add(key);
    placed.push({ operation: index, before: state, pass, forced: next === state && pass === ANSWERED });
    state = next;
    hashLow ^= low[index]!;
    hashHigh ^= high[index]!;
    list.lift(index);
    event = list.first;
    pass = ANSWERED;
    return true;
  }

  /** Takes back the last choice that has an alternative, and continues with that. False if there is none. */
  function undo(): boolean {
    for (let last = placed.pop(); last !== undefined; last = placed.pop()) {
      state = last.before;
      hashLow ^= low[last.operation]!;
      hashHigh ^= high[last.operation]!;
      list.putBack(last.operation);
      if (last.forced) continue;
      pass = last.pass === OMIT ? UNANSWERED_UNSEEN : last.pass;
      event = last.pass === OMIT ? list.first : list.next(list.callOf(last.operation));
      return true;
    }
    return false;
  }
}

/** An eventual read is like a strong one that was made up to its limit earlier. */
function earliest({ action, invokedMs }: Operation): number {
  return action.do === "follow" ? invokedMs - action.lagLimitMs : invokedMs;
}

/** Seeded, so that a verdict can be repeated. */
function zobrist(count: number): { low: Int32Array; high: Int32Array } {
  let seed = 0x9e3779b9;
  const random = (): number => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return mixed ^ (mixed >>> 14);
  };
  return { low: Int32Array.from({ length: count }, random), high: Int32Array.from({ length: count }, random) };
}

/**
 * Requests and responses in order of time: a linked list from which operations are removed, and restored in
 * reverse order.
 */
class EventList {
  readonly end: number;
  readonly #head: number;
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #operation: Int32Array;
  readonly #call: Int32Array;
  readonly #return: Int32Array;

  constructor(calledMs: readonly number[], returnedMs: readonly number[]) {
    const count = calledMs.length;
    // At the same instant requests come before responses: what may have been concurrent counts as concurrent.
    const events = calledMs
      .flatMap((called, operation) => [
        { at: called, answer: 0, operation },
        { at: returnedMs[operation]!, answer: 1, operation },
      ])
      .sort((a, b) => (a.at === b.at ? a.answer - b.answer : a.at - b.at));
    this.#head = 2 * count;
    this.end = 2 * count + 1;
    this.#next = new Int32Array(2 * count + 2);
    this.#previous = new Int32Array(2 * count + 2);
    this.#operation = new Int32Array(2 * count);
    this.#call = new Int32Array(count);
    this.#return = new Int32Array(count);
    let last = this.#head;
    for (const [event, { answer, operation }] of events.entries()) {
      this.#operation[event] = operation;
      (answer === 0 ? this.#call : this.#return)[operation] = event;
      this.#next[last] = event;
      this.#previous[event] = last;
      last = event;
    }
    this.#next[last] = this.end;
    this.#previous[this.end] = last;
  }

  get first(): number {
    return this.#next[this.#head]!;
  }

  next(event: number): number {
    return this.#next[event]!;
  }

  operationOf(event: number): number {
    return this.#operation[event]!;
  }

  callOf(operation: number): number {
    return this.#call[operation]!;
  }

  isCall(event: number): boolean {
    return this.#call[this.#operation[event]!] === event;
  }

  lift(operation: number): void {
    this.#unlink(this.#call[operation]!);
    this.#unlink(this.#return[operation]!);
  }

  putBack(operation: number): void {
    this.#link(this.#return[operation]!);
    this.#link(this.#call[operation]!);
  }

  #unlink(event: number): void {
    this.#next[this.#previous[event]!] = this.#next[event]!;
    this.#previous[this.#next[event]!] = this.#previous[event]!;
  }

  #link(event: number): void {
    this.#next[this.#previous[event]!] = event;
    this.#previous[this.#next[event]!] = event;
  }
}
