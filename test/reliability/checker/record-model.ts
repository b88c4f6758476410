/**
 * How a key behaves when operations come one at a time: the sequential specification that a history is
 * checked against.
 */
import type { Action, Seen } from "./history.ts";

/** null: there is no record. */
export type State = { readonly value: number; readonly version: number } | null;

export const stateText = (state: State): string => (state === null ? "-" : `${state.value}@${state.version}`);

/** True if the operation cannot change anything, whatever the state. */
export const isRead = (action: Action): boolean => action.do === "read" || action.do === "follow";

/** True when the request was answered, so that what it did is known. */
export const isAnswered = (action: Action): boolean => action.do === "read" || action.do === "follow" || action.answer !== undefined;

/**
 * The state after the operation, or undefined when its answer cannot be given in this state. An operation
 * without an answer gives what it does if it is done.
 */
export function step(state: State, action: Action): State | undefined {
  switch (action.do) {
    case "read":
    case "follow":
      return shows(action.saw, state) ? state : undefined;
    case "put": {
      const next = state === null ? { value: action.value, version: 0 } : { value: action.value, version: state.version + 1 };
      return fitsVersion(action.answer?.version, next.version) ? next : undefined;
    }
    case "create":
      if (state !== null) return action.answer?.done === true ? undefined : state;
      return action.answer?.done === false ? undefined : { value: action.value, version: 0 };
    case "update": {
      const possible = state !== null && (action.ifVersion === undefined || action.ifVersion === state.version);
      if (action.answer !== undefined && action.answer.done !== possible) return undefined;
      if (!possible) return state;
      const next = { value: action.value, version: state.version + 1 };
      return fitsVersion(action.answer?.version, next.version) ? next : undefined;
    }
    case "add": {
      if (action.answer !== undefined && action.answer.done !== (state !== null)) return undefined;
      if (state === null) return state;
      const next = { value: state.value + action.amount, version: state.version + 1 };
      return action.answer?.saw === undefined || shows(action.answer.saw, next) ? next : undefined;
    }
    case "delete":
      return action.answer === undefined || action.answer.found === (state !== null) ? null : undefined;
  }
}

function shows(saw: Seen | null, state: State): boolean {
  if (saw === null || state === null) return saw === state;
  return saw.value === state.value && fitsVersion(saw.version, state.version);
}

const fitsVersion = (told: number | undefined, version: number): boolean => told === undefined || told === version;

/** An acknowledged write after which there was a record. */
export function hasMade(action: Action): boolean {
  switch (action.do) {
    case "put":
      return action.answer !== undefined;
    case "create":
    case "update":
    case "add":
      return action.answer?.done === true;
    default:
      return false;
  }
}
