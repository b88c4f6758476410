/** Asks the statement that PostgreSQL is computing to end with an error, as a signal would on a server. */
import type { InterruptFlags } from "./worker-messages.ts";

/**
 * May be called from any thread. PostgreSQL sees the request at the next row or page. A request that comes
 * while nothing is computed is forgotten when the next statement is read.
 */
export function interruptStatement({ memory, queryCancelPending, interruptPending }: InterruptFlags): void {
  Atomics.store(memory, queryCancelPending, 1);
  Atomics.store(memory, interruptPending, 1);
}
