/**
 * The steps of one key's history: the operations of its clients, and two for each promotion of an asynchronous
 * standby. Somewhere between the commits that are left and those that are lost, the state is kept; when the
 * standby takes over, the key holds that state again. So on each key a suffix of the writes is lost or nothing,
 * and nothing that is lost is seen later. The instants of a promotion are the same for all keys: what is lost
 * is a suffix of the order of commits over all of them.
 */
import { describeOperation, type Operation, type Promotion } from "./history.ts";
import { isRead, type State, stateText, step as stepOfRecord } from "./record-model.ts";

export interface Configuration {
  readonly state: State;
  /** What the next promotion brings back, once that is decided. */
  readonly kept: State | undefined;
  /** Turning points that are past: two of each promotion. */
  readonly turns: number;
}

/** Something that happened at one instant between two. */
export interface Step {
  readonly fromMs: number;
  readonly toMs: number;
  readonly operation: Operation | undefined;
  /** "keep" and "return": the two of a promotion. */
  readonly turn: "keep" | "return" | undefined;
  /** Only after so many turning points: a change that is known to be lost, a search of the new primary. */
  readonly changesAfterTurns: number;
  readonly showsAfterTurns: number;
}

export const initially = (state: State): Configuration => ({ state, kept: undefined, turns: 0 });

export const configurationText = ({ state, kept }: Configuration): string =>
  kept === undefined ? stateText(state) : `${stateText(state)}/${stateText(kept)}`;

export function describeStep({ operation, turn, fromMs, toMs }: Step): string {
  return operation === undefined ? `${turn} of a promotion [${fromMs.toFixed(1)}, ${toMs.toFixed(1)}]` : describeOperation(operation);
}

export function stepsOf(operations: readonly Operation[], promotions: readonly Promotion[]): Step[] {
  const turns = promotions.flatMap(({ leftUntilMs, cutOffMs, reachedMs }): Step[] => {
    const base = { operation: undefined, changesAfterTurns: 0, showsAfterTurns: 0 };
    // A commit may become visible some time after it was written to the log, so the state may be kept late.
    return [
      { ...base, turn: "keep", fromMs: leftUntilMs, toMs: reachedMs },
      { ...base, turn: "return", fromMs: cutOffMs, toMs: reachedMs },
    ];
  });
  const steps = operations.map((operation): Step => {
    const { action, invokedMs, returnedMs } = operation;
    const lostBy = promotions.findLastIndex(({ lostFromMs }) => invokedMs > lostFromMs);
    const followedBy = action.do === "follow" ? promotions.findLastIndex(({ wholeMs }) => invokedMs > wholeMs) : -1;
    return {
      // An eventual read is like a strong one that was made up to its limit earlier.
      fromMs: action.do === "follow" ? invokedMs - action.lagLimitMs : invokedMs,
      toMs: returnedMs,
      operation,
      turn: undefined,
      changesAfterTurns: isRead(action) ? 0 : 2 * lostBy + 1,
      showsAfterTurns: 2 * (followedBy + 1),
    };
  });
  return [...turns, ...steps];
}

/** The configuration after the step, the same one if it changes nothing, or undefined if it cannot come next. */
export function advance(configuration: Configuration, step: Step): Configuration | undefined {
  const { state, kept, turns } = configuration;
  // A promotion's state is kept before it returns.
  if (step.turn === "keep") return turns % 2 === 0 ? { state, kept: state, turns: turns + 1 } : undefined;
  if (step.turn === "return") return kept === undefined ? undefined : { state: kept, kept: undefined, turns: turns + 1 };
  if (turns < step.showsAfterTurns) return undefined;
  const next = stepOfRecord(state, step.operation!.action);
  if (next === state) return configuration;
  return next === undefined || turns < step.changesAfterTurns ? undefined : { state: next, kept, turns };
}
