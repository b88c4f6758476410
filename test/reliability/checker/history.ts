/**
 * What concurrent clients did and saw, as the checker reads it. A key is one record, or a group of records
 * that are only ever written together (such a key has one value, and a response that shows two is a fault of
 * its own, `torn`). Times are from one monotonic clock, that of the process that ran all clients.
 */

/**
 * What a key holds. `version` is the record's own; undefined if a response does not contain it (a search).
 */
export interface Seen {
  readonly value: number;
  readonly version?: number | undefined;
}

/**
 * A request and, if there was one, its response. Every value of put, create and update is used once in a
 * history.
 */
export type Action =
  /** `saw: null`: there was no record. */
  | { readonly do: "read"; readonly saw: Seen | null }
  /**
   * An eventually consistent read (a search). `lagLimitMs`: how old its state may have been when it was
   * requested. `replica`: which one was read; each of them has a time of its own.
   */
  | { readonly do: "follow"; readonly saw: Seen | null; readonly lagLimitMs: number; readonly replica?: number }
  /** Creates or replaces. */
  | { readonly do: "put"; readonly value: number; readonly answer?: { readonly version?: number | undefined } }
  /** Creates; refused if there is a record already. */
  | { readonly do: "create"; readonly value: number; readonly answer?: { readonly done: boolean } }
  /** Changes the record, or finds none to change; with `ifVersion`, only that version. */
  | {
      readonly do: "update";
      readonly value: number;
      readonly ifVersion?: number | undefined;
      readonly answer?: { readonly done: boolean; readonly version?: number | undefined };
    }
  /** Adds to the current value (`$increment`). */
  | { readonly do: "add"; readonly amount: number; readonly answer?: { readonly done: boolean; readonly saw?: Seen | undefined } }
  /** `found`: there was a record. */
  | { readonly do: "delete"; readonly answer?: { readonly found: boolean } };

export interface Operation {
  readonly client: number;
  readonly key: string;
  readonly action: Action;
  readonly invokedMs: number;
  /**
   * When the response came. For an operation without one (`action.answer` undefined) the moment after which
   * it can no longer take effect (its server was killed), or Infinity. It took effect once in between, or
   * never.
   */
  readonly returnedMs: number;
}

/**
 * An asynchronous standby became the primary. It had received a prefix of the former primary's commits; the
 * rest is lost, even if it was acknowledged.
 *
 * Two commits that nobody else made say where that prefix ends: the last one that is left, and the first one
 * that is lost. Both instants are those of their client, from the same clock as the operations.
 */
export interface Promotion {
  /** When the last known commit that is left was sent: every write that had ended before it is left. */
  readonly leftUntilMs: number;
  /** When the first known commit that is lost was acknowledged: every write that began after it is lost. */
  readonly lostFromMs: number;
  /** When the former primary was about to be cut off. */
  readonly cutOffMs: number;
  /** When nobody reached the former primary any more, and nobody the new one yet. */
  readonly reachedMs: number;
  /** Eventual reads that begin after this show nothing older than the new primary. */
  readonly wholeMs: number;
}

export type FaultKind =
  /** Two values where one was written: half of a transaction was visible. */
  | "torn"
  /** An acknowledged write is missing, though nobody deleted it. */
  | "lost"
  /** A value that an acknowledged write had replaced before the read began. */
  | "stale"
  /** A record that an acknowledged delete had removed. */
  | "resurrected"
  /** A later read saw an older state than an earlier one. */
  | "non-monotonic"
  /** A value that nobody wrote, or that was refused or rolled back. */
  | "phantom"
  /** No order of the operations explains all responses. */
  | "not linearizable"
  /**
   * The search for an order was given up. Proves nothing, but is reported as a fault so that nobody takes it
   * for a pass.
   */
  | "undecided";

export interface Fault {
  readonly kind: FaultKind;
  readonly key: string;
  /** A sentence with the operations that contradict each other. */
  readonly message: string;
}

export function describeOperation(operation: Operation): string {
  const { client, key, action, invokedMs, returnedMs } = operation;
  const returned = returnedMs === Number.POSITIVE_INFINITY ? "…" : returnedMs.toFixed(1);
  return `client ${client} on ${key} [${invokedMs.toFixed(1)}, ${returned}] ${JSON.stringify(action)}`;
}
