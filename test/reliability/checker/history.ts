/**
 * What concurrent clients did and saw, as the checker reads it. A key is one record, or a group of records that are only ever written together (then a key
 * has one value, and an answer that shows two is a fault of its own, `torn`). Times are of one monotonic clock, that of the process that ran all clients.
 */

/** What a key holds. `version` is the records' own; undefined where an answer does not tell it (a search). */
export interface Seen {
  readonly value: number;
  readonly version?: number | undefined;
}

/** A request and, where it was answered, its answer. Every value of put, create and update is used once in a history. */
export type Action =
  /** `saw: null`: there was none. */
  | { readonly do: "read"; readonly saw: Seen | null }
  /** An eventually consistent read (a search). `lagLimitMs`: how old its state may have been when it was asked for. */
  | { readonly do: "follow"; readonly saw: Seen | null; readonly lagLimitMs: number }
  /** Creates or replaces. */
  | { readonly do: "put"; readonly value: number; readonly answer?: { readonly version?: number | undefined } }
  /** Creates, and is refused when there is one already. */
  | { readonly do: "create"; readonly value: number; readonly answer?: { readonly done: boolean } }
  /** Changes, and finds nothing to change when there is none; with `ifVersion`, only that version. */
  | {
      readonly do: "update";
      readonly value: number;
      readonly ifVersion?: number | undefined;
      readonly answer?: { readonly done: boolean; readonly version?: number | undefined };
    }
  /** Adds to the value that is there (`$increment`). */
  | { readonly do: "add"; readonly amount: number; readonly answer?: { readonly done: boolean; readonly saw?: Seen | undefined } }
  /** `found`: there was one. */
  | { readonly do: "delete"; readonly answer?: { readonly found: boolean } };

export interface Operation {
  readonly client: number;
  readonly key: string;
  readonly action: Action;
  readonly invokedMs: number;
  /**
   * When the answer came. For an operation without an answer (`action.answer` undefined) the moment after which it cannot take effect any more
   * (its server was killed), or Infinity: it took effect once in between, or never.
   */
  readonly returnedMs: number;
}

export type FaultKind =
  /** Two values where one was written: half of a transaction was seen. */
  | "torn"
  /** An acknowledged write is not there, though nobody deleted it. */
  | "lost"
  /** A value that an acknowledged write had replaced before the read began. */
  | "stale"
  /** A record that an acknowledged delete had removed. */
  | "resurrected"
  /** A later read saw an older state than an earlier one. */
  | "non-monotonic"
  /** A value that nobody wrote, or that was refused or rolled back. */
  | "phantom"
  /** No order of the operations explains all answers. */
  | "not linearizable"
  /** The search for an order was given up; proves nothing, and is reported as a fault so that nobody takes it for a pass. */
  | "undecided";

export interface Fault {
  readonly kind: FaultKind;
  readonly key: string;
  /** A sentence with the operations that cannot both be. */
  readonly message: string;
}

export function describeOperation(operation: Operation): string {
  const { client, key, action, invokedMs, returnedMs } = operation;
  const returned = returnedMs === Number.POSITIVE_INFINITY ? "…" : returnedMs.toFixed(1);
  return `client ${client} on ${key} [${invokedMs.toFixed(1)}, ${returned}] ${JSON.stringify(action)}`;
}
