/**
 * An engine on behalf of one caller. Its work ends with the caller's signal, as TransactionOptions.signal
 * says, and what it reads is charged to the caller's budget. Everything else is the underlying engine's.
 */
import type { AnswerBudget } from "../../budget/memory-budget.ts";
import type { Engine } from "./engine.ts";

export function engineForCaller(engine: Engine, signal: AbortSignal, budget?: AnswerBudget): Engine {
  return {
    isExclusive: engine.isExclusive,
    timelineSql: engine.timelineSql,
    vectors: engine.vectors,
    shared: engine.shared,
    get callers() {
      return engine.callers;
    },
    budget,
    signal,
    query: (text, values, options) => engine.query(text, values, { budget, ...options, signal }),
    transaction: (work, options) => engine.transaction(work, { budget, ...options, signal }),
    listen: (channel, listener) => engine.listen(channel, listener),
    guardConnections: (guard) => engine.guardConnections(guard),
    backup: (directory, ending) => engine.backup(directory, ending),
    ...(engine.walBytes && { walBytes: () => engine.walBytes!() }),
    health: () => engine.health(),
    close: () => engine.close(),
  };
}

/**
 * True for most statements that change nothing, judged by their first word. Such a statement may be ended
 * when nobody waits for it any more. Functions it calls must not write.
 */
export const isReading = (text: string): boolean => /^\s*(?:SELECT|VALUES|TABLE)\b/i.test(text);
