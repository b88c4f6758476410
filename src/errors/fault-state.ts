/**
 * How the parts of the service say that something has gone wrong, or works again, that no request can be told of:
 * work in the background, a database that died. Below every layer; `serve` writes what it hears to the log.
 */

export interface FaultListeners {
  /** Gets a fault that changes what the service does, with its cause, once. */
  readonly onFault?: ((error: unknown) => void) | undefined;
  /** Gets a sentence when the fault is over. */
  readonly onRecovery?: ((sentence: string) => void) | undefined;
}

/** One thing that may fail again and again: said once when it begins to, and once when it works again. */
export class FaultState {
  readonly #what: string;
  readonly #listeners: FaultListeners;
  #reason: string | null = null;
  #isClosed = false;

  /** @param what  is named in the log, as the beginning of a sentence: "Vacuuming tables". */
  constructor(what: string, listeners: FaultListeners) {
    this.#what = what;
    this.#listeners = listeners;
  }

  /** The same reason again is not said again; another one is. */
  failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (this.#reason === reason || this.#isClosed) return;
    this.#reason = reason;
    this.#listeners.onFault?.(new Error(`${this.#what} fails: ${reason}`, { cause: error }));
  }

  works(): void {
    if (this.#reason === null || this.#isClosed) return;
    this.#reason = null;
    this.#listeners.onRecovery?.(`${this.#what} works again.`);
  }

  /** Says how the attempt ends. Never rejects, so nobody has to wait for it. */
  async follow(attempt: Promise<unknown>): Promise<void> {
    try {
      await attempt;
      this.works();
    } catch (error) {
      this.failed(error);
    }
  }

  /** Nothing is said any more: what a close interrupts is no fault. */
  close(): void {
    this.#isClosed = true;
  }
}
