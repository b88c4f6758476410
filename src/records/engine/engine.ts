/**
 * What the record store asks of PostgreSQL, whichever it is: PGlite in a worker thread (one session) or a server (a pool).
 * Everything else in `records/` is written against this interface and never asks which one it has.
 */
import type { QueryResult } from "pg";
import type { AnswerBudget } from "../../budget/memory-budget.ts";

export interface QueryOptions {
  /** Every value comes as PostgreSQL's text (or null), unparsed. */
  readonly raw?: boolean;
  /** "array": each row is an array of values (rows of equal column names stay whole). */
  readonly rowMode?: "object" | "array";
  /** As of a transaction; a statement that begins with SELECT is abandonable. For `query` of an engine only. */
  readonly signal?: AbortSignal;
  /**
   * What is read is charged here as it arrives, and stopped when it is too much (TOO_LARGE, OVERLOADED).
   * Default: MAX_STATEMENT_BYTES are read at most.
   */
  readonly budget?: AnswerBudget | undefined;
  /** The statement commits by itself: what it answers, which is small, is charged and not refused. Set by engines. */
  readonly isCommitted?: boolean;
}

/** What runs when an engine is closed gets this long. */
export const CLOSE_LIMIT_MS = 1_000;

export interface Connection {
  /**
   * Runs one statement; `values` are bound, never spliced. A Buffer is sent in PostgreSQL's binary format of
   * the parameter's type. What a caller gets for each type stands in pg-types.ts. Rejects with the database's
   * own error (`code` is its SQLSTATE) or a LodestoneError.
   */
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<QueryResult<Row>>;
  /** Of the request that all this is for: for what its answer takes beyond what is read. */
  readonly budget?: AnswerBudget | undefined;
}

/** Users' SQL, whose result must not fill memory. */
export interface BoundedQuery {
  readonly text: string;
  /** Gives the parameters as PostgreSQL's text, once PostgreSQL has said which types (oids) it takes them for. */
  readonly values: (types: readonly number[]) => readonly (string | null)[];
  readonly maxRows: number;
  /** Of all values together; rows beyond are cut, and as far as can be not read. */
  readonly maxBytes: number;
  /**
   * Runs a cut result to its end (without keeping its rows) to learn how many rows there were: for INSERT,
   * UPDATE and DELETE with RETURNING.
   */
  readonly countsAll: boolean;
  readonly budget?: AnswerBudget | undefined;
}

export interface BoundedResult {
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[];
  /** Values as PostgreSQL's text. */
  readonly rows: readonly (string | null)[][];
  /** There were more rows, or they were too long. A cut SELECT is not computed any further; everything else has run to its end. */
  readonly isCut: boolean;
  /** Rows changed (or returned); null when a cut result leaves it unknown. */
  readonly rowCount: number | null;
}

/** The connection inside a transaction. */
export interface TransactionConnection extends Connection {
  queryBounded(query: BoundedQuery): Promise<BoundedResult>;
}

export interface TransactionOptions {
  readonly readOnly?: boolean;
  /** Default: read committed. "repeatable read" makes all statements see one snapshot. */
  readonly isolation?: "read committed" | "repeatable read" | "serializable";
  /** Runs as this role with the branch's schema alone in `search_path`; no SQL inside can undo it. For users' raw SQL only. */
  readonly jail?: { readonly roleName: string; readonly schemaName: string };
  /** Goes before whatever waits for the session (embedded). For short reads that others wait for: the change feed's. */
  readonly urgent?: boolean;
  /**
   * Past it the work is cancelled, rolled back, and the promise rejects with LodestoneError TIMEOUT. Default:
   * the engine's (60 s; 10 s in a jail on the embedded engine).
   */
  readonly timeoutMs?: number;
  /**
   * Aborted when nobody waits for the result any more. Work that has not begun is not begun then; what runs
   * continues to its end unless it is `abandonable`. The promise of work that was not done rejects with the
   * signal's reason. A commit is never cut short.
   */
  readonly signal?: AbortSignal;
  /** Nothing of the work is kept but its result, so that it may be ended when the signal says so. Default: `readOnly`. */
  readonly abandonable?: boolean;
  /** Charged with all that the work reads. A refusal is thrown out of the work, so before the commit. */
  readonly budget?: AnswerBudget | undefined;
}

/** `query` of an engine: one statement in a transaction of its own, committed and durable when it resolves. */
export interface Engine extends Connection {
  readonly kind: "embedded" | "server";
  /** The engine itself, for what is kept beyond one caller; see engine-for-caller.ts. */
  readonly shared: Engine;
  /**
   * BEGIN, work, COMMIT; ROLLBACK when work rejects. Resolves only once the commit is durable (fsync).
   * Serialization failures and deadlocks are retried (work runs again), at last OVERLOADED.
   */
  transaction<Result>(work: (connection: TransactionConnection) => Promise<Result>, options?: TransactionOptions): Promise<Result>;
  /** Calls `listener` with the payload of each NOTIFY on the channel; resubscribes after a reconnect (and then calls it with ""). */
  listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>>;
  /**
   * Runs `guard` from now on once on each new connection to a server, before anything else is done on it: it
   * may speak to another life of the database than those before (a standby was promoted, a copy was put back).
   * A connection keeps its life. Does nothing on the embedded engine.
   */
  guardConnections(guard: (connection: Connection) => Promise<void>): void;
  /**
   * Copies the embedded database into a new directory while it is in use; the copy is a data directory of its
   * own. INVALID on a server, whose own tools (pg_dump, pg_basebackup) do this better.
   */
  backup(directory: string): Promise<void>;
  /** Size of the write-ahead log on disk. null on a server, whose own monitoring knows it (and who may ask is the server's to say). */
  walBytes(): Promise<number | null>;
  /**
   * Finishes what runs within a second (what takes longer is rolled back), refuses what comes, checkpoints
   * (embedded), and lets go of the directory or the pool.
   */
  close(): Promise<void>;
}
