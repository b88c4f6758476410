/**
 * Faults of single branches. Several often fail for the same reason: it is said once, when the first of them fails,
 * and once more when the last of them works again.
 */
import type { FaultListeners } from "../errors/fault-state.ts";
import type { BranchKey } from "./search-messages.ts";

export class BranchFaults {
  readonly #what: string;
  readonly #listeners: FaultListeners;
  readonly #reasons = new Map<BranchKey, string>();
  #isClosed = false;

  /** @param what  is named in the log, as the beginning of a sentence. */
  constructor(what: string, listeners: FaultListeners) {
    this.#what = what;
    this.#listeners = listeners;
  }

  /** Why the branch fails at the moment; undefined: it works. */
  reasonOf(key: BranchKey): string | undefined {
    return this.#reasons.get(key);
  }

  failed(key: BranchKey, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    const isKnown = this.#isReason(reason);
    this.#reasons.set(key, reason);
    if (!isKnown && !this.#isClosed) this.#listeners.onFault?.(error);
  }

  works(key: BranchKey): void {
    const reason = this.#reasons.get(key);
    if (reason === undefined) return;
    this.#reasons.delete(key);
    if (!this.#isReason(reason)) this.#listeners.onRecovery?.(`${this.#what} works again. It had failed: ${reason}`);
  }

  /** No fault is said any more: what a close interrupts is none. */
  close(): void {
    this.#isClosed = true;
  }

  #isReason(reason: string): boolean {
    for (const other of this.#reasons.values()) if (other === reason) return true;
    return false;
  }
}
