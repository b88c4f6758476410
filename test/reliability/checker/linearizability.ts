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
 * - The promotion of an asynchronous standby is two steps of the history; see turning-points.ts.
 */
import type { Operation, Promotion } from "./history.ts";
import { isAnswered, type State } from "./record-model.ts";
import { advance, type Configuration, configurationText, initially, type Step, stepsOf } from "./turning-points.ts";

export type Linearization =
  | { readonly outcome: "linearizable"; readonly order: readonly Operation[] }
  /**
   * `blocked` is the step whose end came before it could be placed, in the longest order found; `state` is what
   * the key held there.
   */
  | { readonly outcome: "impossible"; readonly blocked: Step; readonly state: State; readonly placed: number }
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

export interface LinearizeOptions {
  readonly initial?: State;
  readonly maxSteps?: number | undefined;
  /** In the order of time; they do not overlap. */
  readonly promotions?: readonly Promotion[];
}

interface Placed {
  readonly step: number;
  readonly before: Configuration;
  readonly pass: number;
  /** Its response fits here, and it changed nothing. */
  readonly forced: boolean;
}

export function linearize(operations: readonly Operation[], options: LinearizeOptions = {}): Linearization {
  const { initial = null, maxSteps = DEFAULT_MAX_STEPS, promotions = [] } = options;
  const sorted = stepsOf(operations, promotions).sort((a, b) => a.fromMs - b.fromMs);
  const list = new EventList(
    sorted.map(({ fromMs }) => fromMs),
    sorted.map(({ toMs }) => toMs),
  );
  const seen = new Set(operations.flatMap(({ action }) => ("saw" in action && action.saw !== null ? [action.saw.value] : [])));
  const passOf = sorted.map(({ operation }) => {
    if (operation === undefined || isAnswered(operation.action)) return ANSWERED;
    return "value" in operation.action && seen.has(operation.action.value) ? UNANSWERED_BUT_SEEN : UNANSWERED_UNSEEN;
  });
  const { low, high } = zobrist(sorted.length);
  const visited = new Set<string>();
  const placed: Placed[] = [];
  let configuration = initially(initial);
  let hashLow = 0;
  let hashHigh = 0;
  let deepest: { blocked: Step; state: State; placed: number } | undefined;
  let event = list.first;
  let pass = ANSWERED;

  for (let steps = 0; steps < maxSteps; steps++) {
    if (event === list.end) {
      const order = placed.flatMap((p) => (p.pass === OMIT ? [] : (sorted[p.step]!.operation ?? [])));
      return { outcome: "linearizable", order };
    }
    const index = list.stepOf(event);
    const step = sorted[index]!;
    if (list.isCall(event)) {
      const next = passOf[index] === pass ? advance(configuration, step) : undefined;
      if (next === undefined || !place(index, next)) event = list.next(event);
    } else if (pass === OMIT) {
      // Its time is over and it has not been placed: without a response it may never have been done.
      if (passOf[index] === ANSWERED || !place(index, configuration)) {
        pass = UNANSWERED_UNSEEN;
        event = list.first;
      }
    } else if (pass === UNANSWERED_BUT_SEEN) {
      pass = OMIT; // at this very event
    } else if (pass === ANSWERED) {
      pass = UNANSWERED_BUT_SEEN;
      event = list.first;
    } else {
      if (deepest === undefined || placed.length > deepest.placed)
        deepest = { blocked: step, state: configuration.state, placed: placed.length };
      if (!undo()) return { outcome: "impossible", ...deepest };
    }
  }
  return { outcome: "undecided", steps: maxSteps };

  /** False if this configuration has been tried before without success. */
  function place(index: number, next: Configuration): boolean {
    const key = `${hashLow ^ low[index]!}:${hashHigh ^ high[index]!}:${configurationText(next)}`;
    if (visited.has(key)) return false;
    visited.add(key);
    placed.push({ step: index, before: configuration, pass, forced: next === configuration && pass === ANSWERED });
    configuration = next;
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
      configuration = last.before;
      hashLow ^= low[last.step]!;
      hashHigh ^= high[last.step]!;
      list.putBack(last.step);
      if (last.forced) continue;
      pass = last.pass === OMIT ? UNANSWERED_UNSEEN : last.pass;
      event = last.pass === OMIT ? list.first : list.next(list.callOf(last.step));
      return true;
    }
    return false;
  }
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
 * Requests and responses in order of time: a linked list from which steps are removed, and restored in reverse
 * order.
 */
class EventList {
  readonly end: number;
  readonly #head: number;
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #step: Int32Array;
  readonly #call: Int32Array;
  readonly #return: Int32Array;

  constructor(calledMs: readonly number[], returnedMs: readonly number[]) {
    const count = calledMs.length;
    // At the same instant requests come before responses: what may have been concurrent counts as concurrent.
    const events = calledMs
      .flatMap((called, step) => [
        { at: called, answer: 0, step },
        { at: returnedMs[step]!, answer: 1, step },
      ])
      .sort((a, b) => (a.at === b.at ? a.answer - b.answer : a.at - b.at));
    this.#head = 2 * count;
    this.end = 2 * count + 1;
    this.#next = new Int32Array(2 * count + 2);
    this.#previous = new Int32Array(2 * count + 2);
    this.#step = new Int32Array(2 * count);
    this.#call = new Int32Array(count);
    this.#return = new Int32Array(count);
    let last = this.#head;
    for (const [event, { answer, step }] of events.entries()) {
      this.#step[event] = step;
      (answer === 0 ? this.#call : this.#return)[step] = event;
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

  stepOf(event: number): number {
    return this.#step[event]!;
  }

  callOf(step: number): number {
    return this.#call[step]!;
  }

  isCall(event: number): boolean {
    return this.#call[this.#step[event]!] === event;
  }

  lift(step: number): void {
    this.#unlink(this.#call[step]!);
    this.#unlink(this.#return[step]!);
  }

  putBack(step: number): void {
    this.#link(this.#return[step]!);
    this.#link(this.#call[step]!);
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
