/**
 * Writes the history of all clients, key by key. A key that has seen enough operations is retired: it is read once more when nobody uses it, judged,
 * and its history forgotten but for the state it was left in, which every later audit must find again.
 */
import { appendFileSync } from "node:fs";
import { type Action, describeOperation, type Fault, type Operation, type Seen } from "../checker/history.ts";
import { isAnswered } from "../checker/record-model.ts";
import { judgeKey } from "../checker/verdict.ts";

/** Of a retired key's history, told with whatever an audit finds. */
const LAST_OPERATIONS = 8;

interface KeyHistory {
  readonly operations: Operation[];
  pending: number;
}

export class Recorder {
  readonly faults: Fault[] = [];
  /** Answers that the workload has no explanation for: a 5xx, a refusal where none is possible. */
  readonly unexpected: string[] = [];
  operations = 0;
  unanswered = 0;
  refusedForLoad = 0;
  keysJudged = 0;
  recordsAudited = 0;
  /** What retired keys were left with. Nobody writes them any more, so this must never change. */
  readonly retired = new Map<string, Seen | null>();
  /** What was done to them: for the message of an audit that finds something else. */
  readonly #histories = new Map<string, readonly Operation[]>();
  readonly #keys = new Map<string, KeyHistory>();
  /** Every key that anybody ever wrote. */
  readonly #used = new Set<string>();
  #lastValue = 0;
  readonly #servers: "one" | "many";
  /** When the client of a request without an answer gave up. */
  readonly #gaveUpMs = new WeakMap<Operation, number>();

  constructor(servers: "one" | "many" = "one") {
    this.#servers = servers;
  }

  /** A value that nobody has written yet. Below 2^24, so that a float32 keeps it. */
  freshValue(): number {
    return ++this.#lastValue;
  }

  /**
   * Runs one request on a key and records what came of it.
   * @param perform  gives the action as answered; without its answer when there was none; undefined for a request that is known to have done nothing.
   */
  async record(client: number, key: string, perform: () => Promise<Action | undefined>): Promise<void> {
    const history = this.#historyOf(key);
    const invokedMs = performance.now();
    history.pending++;
    try {
      const action = await perform();
      if (action === undefined) return;
      const answered = isAnswered(action);
      this.operations++;
      if (!answered) this.unanswered++;
      const endedMs = performance.now();
      const operation = { client, key, action, invokedMs, returnedMs: answered ? endedMs : Number.POSITIVE_INFINITY };
      history.operations.push(operation);
      if (!answered) this.#gaveUpMs.set(operation, endedMs);
    } finally {
      history.pending--;
    }
  }

  /**
   * Requests without an answer whose clients gave up before `beforeMs` were carried out until now, or never will be: their server is gone, say. Of later ones
   * nothing is known yet.
   */
  settle(beforeMs = performance.now()): void {
    const nowMs = performance.now();
    for (const { operations } of this.#keys.values()) {
      for (const [index, operation] of operations.entries()) {
        const gaveUpMs = this.#gaveUpMs.get(operation);
        if (gaveUpMs !== undefined && gaveUpMs <= beforeMs) operations[index] = { ...operation, returnedMs: nowMs };
      }
    }
  }

  operationsOn(key: string): number {
    return this.#keys.get(key)?.operations.length ?? 0;
  }

  wasUsed(key: string): boolean {
    return this.#used.has(key);
  }

  isBusy(key: string): boolean {
    return (this.#keys.get(key)?.pending ?? 0) > 0;
  }

  /** The operations on a retired key that may explain what it holds: all writes without an answer, the writes of `value`, and the last few. */
  explain(key: string, value: number | undefined): string {
    const operations = [...(this.#histories.get(key) ?? [])].sort((a, b) => a.invokedMs - b.invokedMs);
    const telling = operations.filter(
      ({ action }, index) =>
        index >= operations.length - LAST_OPERATIONS ||
        (!isAnswered(action) && action.do !== "read" && action.do !== "follow") ||
        ("value" in action && action.value === value),
    );
    return telling.map(describeOperation).join("; ");
  }

  get keys(): string[] {
    return [...this.#keys.keys()];
  }

  /** Judges the key and forgets its history. */
  judge(key: string): void {
    const history = this.#keys.get(key);
    if (history === undefined) return;
    this.#keys.delete(key);
    this.keysJudged++;
    // Searches do not tell versions.
    const last = history.operations.findLast(
      ({ action }) => action.do === "read" && (action.saw === null || action.saw.version !== undefined),
    );
    // Behind the client that went away a request may still be carried out: then nothing is known for sure.
    const isSettled =
      last !== undefined &&
      history.operations.every(
        ({ returnedMs, invokedMs, action }) =>
          action.do === "read" || action.do === "follow" || (returnedMs < last.returnedMs && invokedMs < last.invokedMs),
      );
    if (isSettled && last.action.do === "read") {
      this.retired.set(key, last.action.saw);
      this.#histories.set(key, history.operations);
    }
    const faults = judgeKey(history.operations, null, undefined, this.#servers);
    this.faults.push(...faults);
    const path = process.env.LODESTONE_SOAK_HISTORY;
    if (faults.length > 0 && path !== undefined) {
      const lines = history.operations.sort((a, b) => a.invokedMs - b.invokedMs).map(describeOperation);
      appendFileSync(path, `${faults.map((fault) => `${fault.kind}: ${fault.message}`).join("\n")}\n${lines.join("\n")}\n\n`);
    }
  }

  #historyOf(key: string): KeyHistory {
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    const history: KeyHistory = { operations: [], pending: 0 };
    this.#keys.set(key, history);
    this.#used.add(key);
    return history;
  }
}
