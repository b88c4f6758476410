/** Histories for tests of the checker: made by hand, and by simulated correct servers. */
import type { Action, Operation, Promotion } from "./checker/history.ts";
import { type State, step } from "./checker/record-model.ts";

/** How long a request may still take effect after its client has left. */
const LATE_MS = 20;

/** Operations as `[from, to, action]`. */
export const history = (...operations: [number, number, Action][]): Operation[] =>
  operations.map(([invokedMs, returnedMs, action], client) => ({ client, key: "k", invokedMs, returnedMs, action }));

export const put = (value: number, version?: number): Action => ({ do: "put", value, answer: { version } });
export const putUnanswered = (value: number): Action => ({ do: "put", value });
export const create = (value: number, done = true): Action => ({ do: "create", value, answer: { done } });
export const update = (value: number, done = true, version?: number): Action => ({ do: "update", value, answer: { done, version } });
export const remove = (found = true): Action => ({ do: "delete", answer: { found } });
export const removeUnanswered: Action = { do: "delete" };
export const read = (value: number | null, version?: number): Action => ({ do: "read", saw: value === null ? null : { value, version } });
export const follow = (value: number | null, lagLimitMs = 100): Action => ({
  do: "follow",
  lagLimitMs,
  saw: value === null ? null : { value },
});
export const add = (amount: number, value?: number): Action => ({
  do: "add",
  amount,
  answer: { done: true, saw: value === undefined ? undefined : { value } },
});

/**
 * The honest server's first operations, and then others on what its standby had of them: all up to some
 * commit, which the known commits surround.
 */
export function honestStandby(seed: number): { operations: Operation[]; promotion: Promotion } {
  const { operations: former, states, random } = honestServer(seed, 40, 4);
  const cutOffMs = Math.max(...former.map(({ returnedMs }) => returnedMs)) + 1;
  const reachedMs = cutOffMs + 10;
  const cutMs = cutOffMs * (0.3 + 0.6 * random());
  const left = states.findLast(({ at }) => at <= cutMs)!.state;
  const { operations: later } = honestServer(seed + 1, 20, 4, { state: left, firstValue: 1_000, fromMs: reachedMs });
  const promotion = { leftUntilMs: cutMs - random(), lostFromMs: cutMs + random(), cutOffMs, reachedMs, wholeMs: reachedMs };
  return { operations: [...former, ...later], promotion };
}

/**
 * A server with one key that does each operation at one instant between request and response. Some responses
 * get lost, and searches show a state that is behind.
 */
export function honestServer(
  seed: number,
  count: number,
  clients: number,
  { state: initial = null as State, firstValue = 0, fromMs = 0 } = {},
): { operations: Operation[]; states: { state: State; at: number }[]; random: () => number } {
  let state = seed >>> 0;
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const planned: { client: number; from: number; at: number; to: number; kind: number; value: number }[] = [];
  const free = Array.from({ length: clients }, () => fromMs);
  for (let i = 0; i < count; i++) {
    const client = i % clients;
    const from = free[client]! + random() * 3;
    const at = from + random() * 4;
    const to = at + random() * 4;
    free[client] = to;
    planned.push({ client, from, at, to, kind: random(), value: firstValue + i });
  }
  planned.sort((a, b) => a.at - b.at);
  const states: { state: State; at: number }[] = [{ state: initial, at: Number.NEGATIVE_INFINITY }];
  let shown = 0;
  const operations = planned.map(({ client, from, at, to, kind, value }): Operation => {
    const before = states.at(-1)!.state;
    const perform = (action: Action): State => {
      const after = step(before, action)!;
      if (after !== before) states.push({ state: after, at });
      return after;
    };
    const operation = (action: Action, returnedMs = to): Operation => ({ client, key: "k", invokedMs: from, returnedMs, action });
    const lost = random() < 0.05;
    if (kind < 0.25) return operation({ do: "read", saw: before });
    if (kind < 0.5) {
      // The follower is somewhere between what it last showed and now, at most 20 ms back.
      while (shown + 1 < states.length && (states[shown + 1]!.at < at - 20 || random() < 0.5)) shown++;
      const { state: seen } = states[shown]!;
      return operation({ do: "follow", lagLimitMs: 30, saw: seen === null ? null : { value: seen.value } });
    }
    if (kind < 0.65) {
      const after = perform({ do: "put", value });
      return lost ? operation({ do: "put", value }, at + LATE_MS) : operation({ do: "put", value, answer: { version: after!.version } });
    }
    if (kind < 0.75) {
      const after = perform({ do: "update", value });
      const done = before !== null;
      return lost
        ? operation({ do: "update", value }, at + LATE_MS)
        : operation({ do: "update", value, answer: { done, version: after?.version } });
    }
    if (kind < 0.85) {
      perform({ do: "create", value });
      return operation({ do: "create", value, answer: { done: before === null } });
    }
    if (kind < 0.9) return operation({ do: "put", value }, to); // refused by a server that was killed: no answer, no effect
    perform({ do: "delete" });
    return lost ? operation({ do: "delete" }, at + LATE_MS) : operation({ do: "delete", answer: { found: before !== null } });
  });
  return { operations, states, random };
}
