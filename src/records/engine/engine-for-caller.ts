/** An engine on behalf of one caller: what it is asked for ends with the caller's signal, as TransactionOptions.signal says. Everything else is the engine's own. */
import type { Engine } from "./engine.ts";

export function engineForCaller(engine: Engine, signal: AbortSignal): Engine {
  return {
    kind: engine.kind,
    shared: engine.shared,
    query: (text, values, options) => engine.query(text, values, { ...options, signal }),
    transaction: (work, options) => engine.transaction(work, { ...options, signal }),
    listen: (channel, listener) => engine.listen(channel, listener),
    guardConnections: (guard) => engine.guardConnections(guard),
    backup: (directory) => engine.backup(directory),
    walBytes: () => engine.walBytes(),
    close: () => engine.close(),
  };
}

/** A statement of our own that changes nothing: it may be ended when nobody waits for it. */
export const isReading = (text: string): boolean => /^\s*SELECT\b/i.test(text);
