/** Asks the statement that PostgreSQL computes to end with an error, as a signal would on a server. */
import type { InterruptFlags } from "./worker-messages.ts";

/**
 * From any thread. It is seen at the next row or page; one that comes when nothing is computed is forgotten
 * when the next statement is read.
 */
export function interruptStatement({ memory, queryCancelPending, interruptPending }: InterruptFlags): void {
  Atomics.store(memory, queryCancelPending, 1);
  Atomics.store(memory, interruptPending, 1);
}
