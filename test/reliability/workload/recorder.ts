/**
 * Records the history of all clients, key by key. A key with enough operations is retired: it is read once
 * more when nobody uses it, and checked. Its history is then dropped except for its final state, which every
 * later audit must find again.
 */
import { appendFileSync } from "node:fs";
import { type Action, describeOperation, type Fault, type Operation, type Promotion, type Seen } from "../checker/history.ts";
import { isAnswered, isRead } from "../checker/record-model.ts";
import { judgeKey } from "../checker/verdict.ts";

/** How many operations of a retired key are reported with whatever an audit finds. */
const LAST_OPERATIONS = 8;

interface KeyHistory {
  readonly operations: Operation[];
  pending: number;
}

export class Recorder {
  readonly faults: Fault[] = [];
  /** Responses that the workload cannot explain: a 5xx, or a refusal where none is possible. */
  readonly unexpected: string[] = [];
  operations = 0;
  /** Operations that were answered, of each kind. */
  readonly answered: Record<Action["do"], number> = { read: 0, follow: 0, put: 0, create: 0, update: 0, add: 0, delete: 0 };
  unanswered = 0;
  refusedForLoad = 0;
  keysJudged = 0;
  recordsAudited = 0;
  /** Acknowledged writes that promotions have certainly lost. */
  lostWrites = 0;
  /** The final state of retired keys. Nobody writes them any more, so this must never change. */
  readonly retired = new Map<string, Seen | null>();
  /** The operations on them, for the message of an audit that finds something else. */
  readonly #histories = new Map<string, readonly Operation[]>();
  readonly #keys = new Map<string, KeyHistory>();
  /** Every key ever written. */
  readonly #used = new Set<string>();
  #lastValue = 0;
  readonly #servers: "one" | "many";
  readonly #promotions: Promotion[] = [];
  /** When the client of an unanswered request gave up. */
  readonly #gaveUpMs = new WeakMap<Operation, number>();

  constructor(servers: "one" | "many" = "one") {
    this.#servers = servers;
  }

  /** A value that nobody has written yet. Below 2^24, so that float32 represents it. */
  freshValue(): number {
    return ++this.#lastValue;
  }

  /**
   * Runs one request on a key and records its outcome.
   * @param perform  returns the action with its response; without one if there was none; undefined for a
   *   request that certainly did nothing.
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
      if (answered) this.answered[action.do]++;
      else this.unanswered++;
      const endedMs = performance.now();
      const operation = { client, key, action, invokedMs, returnedMs: answered ? endedMs : Number.POSITIVE_INFINITY };
      history.operations.push(operation);
      if (!answered) this.#gaveUpMs.set(operation, endedMs);
    } finally {
      history.pending--;
    }
  }

  /**
   * Unanswered requests whose clients gave up before `beforeMs` have been carried out by now or never will be
   * (for example because their server is gone). Nothing is known yet of later ones.
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

  /**
   * An asynchronous standby becomes the primary; to be called before anybody reaches it. What was left of a
   * retired key that was written while writes were lost is uncertain: its history goes on.
   * @returns  these keys; they must be inspected and judged again.
   */
  promoted(promotion: Omit<Promotion, "wholeMs">): string[] {
    this.#promotions.push({ ...promotion, wholeMs: Number.POSITIVE_INFINITY });
    const isLost = ({ action, invokedMs, returnedMs }: Operation): boolean =>
      !isRead(action) && isAnswered(action) && invokedMs > promotion.lostFromMs && returnedMs < promotion.cutOffMs;
    const histories = [...this.#histories.values(), ...[...this.#keys.values()].map(({ operations }) => operations)];
    this.lostWrites += histories.flat().filter(isLost).length;
    const reopened = [...this.#histories].filter(([, operations]) =>
      operations.some(({ action, returnedMs }) => !isRead(action) && returnedMs >= promotion.leftUntilMs),
    );
    for (const [key, operations] of reopened) {
      this.retired.delete(key);
      this.#histories.delete(key);
      this.#keys.set(key, { operations: [...operations], pending: 0 });
    }
    return reopened.map(([key]) => key);
  }

  /** From now on eventual reads, too, show nothing older than the last promotion. */
  whole(): void {
    const last = this.#promotions.pop();
    if (last !== undefined) this.#promotions.push({ ...last, wholeMs: performance.now() });
  }

  get answeredWrites(): number {
    const { read: _read, follow: _follow, ...writes } = this.answered;
    return Object.values(writes).reduce((sum, n) => sum + n, 0);
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

  /**
   * The operations on a retired key that may explain what it holds: all unanswered writes, the writes of
   * `value`, and the last few.
   */
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

  /** Checks the key and drops its history. */
  judge(key: string): void {
    const history = this.#keys.get(key);
    if (history === undefined) return;
    this.#keys.delete(key);
    this.keysJudged++;
    // Searches do not return versions.
    const last = history.operations.findLast(
      ({ action }) => action.do === "read" && (action.saw === null || action.saw.version !== undefined),
    );
    // Nothing is certain if a write overlaps the last read (a read after it may have had no response), if it
    // may still be carried out (its client has left), or if a promotion after the last read may have lost it.
    const isCertain = ({ returnedMs }: Operation, readMs: number): boolean =>
      returnedMs < readMs && this.#promotions.every(({ leftUntilMs, reachedMs }) => returnedMs < leftUntilMs || reachedMs < readMs);
    const writes = history.operations.filter(({ action }) => !isRead(action));
    const isSettled = last !== undefined && writes.every((write) => isCertain(write, last.invokedMs));
    if (isSettled && last.action.do === "read") {
      this.retired.set(key, last.action.saw);
      this.#histories.set(key, history.operations);
    }
    const firstMs = Math.min(...history.operations.map(({ invokedMs }) => invokedMs));
    const promotions = this.#promotions.filter(({ reachedMs }) => reachedMs > firstMs);
    const faults = judgeKey(history.operations, { servers: this.#servers, promotions });
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
