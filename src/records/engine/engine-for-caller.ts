/**
 * An engine on behalf of one caller: what it is asked for ends with the caller's signal, as
 * TransactionOptions.signal says, and what it reads is charged to the caller's budget. Everything else is the
 * engine's own.
 */
import type { AnswerBudget } from "../../budget/memory-budget.ts";
import type { Engine } from "./engine.ts";

export function engineForCaller(engine: Engine, signal: AbortSignal, budget?: AnswerBudget): Engine {
  return {
    kind: engine.kind,
    shared: engine.shared,
    budget,
    query: (text, values, options) => engine.query(text, values, { budget, ...options, signal }),
    transaction: (work, options) => engine.transaction(work, { budget, ...options, signal }),
    listen: (channel, listener) => engine.listen(channel, listener),
    guardConnections: (guard) => engine.guardConnections(guard),
    backup: (directory) => engine.backup(directory),
    walBytes: () => engine.walBytes(),
    close: () => engine.close(),
  };
}

/**
 * Most statements that change nothing, by their first word: they may be ended when nobody waits for them. The functions that they
 * call must not write.
 */
export const isReading = (text: string): boolean => /^\s*(?:SELECT|VALUES|TABLE)\b/i.test(text);
