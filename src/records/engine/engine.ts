/**
 * The interface to PostgreSQL that the record store uses, with two implementations: PGlite in a worker thread
 * (one session) and a server (a pool of connections). Everything else in `records/` is written against this
 * interface. Nobody asks which one it is: where they differ, the interface has a property that says how.
 */
import type { QueryResult } from "pg";
import type { AnswerBudget } from "../../budget/memory-budget.ts";
import { SLICE_UNITS, type SliceOptions, Slices } from "../../threads/event-loop.ts";
import type { VectorForm } from "../binary-arrays.ts";

export interface QueryOptions {
  /** Return every value as PostgreSQL's text (or null), unparsed. */
  readonly raw?: boolean;
  /** "array": each row is an array of values, so that columns of the same name are all kept. */
  readonly rowMode?: "object" | "array";
  /**
   * As in a transaction; a statement that begins with SELECT is abandonable. Only for an engine's `query`.
   */
  readonly signal?: AbortSignal;
  /**
   * What is read is charged here as it arrives. Reading stops when it is too much (TOO_LARGE, OVERLOADED).
   * Without a budget the limit is MAX_STATEMENT_BYTES.
   */
  readonly budget?: AnswerBudget | undefined;
  /**
   * The service needs it to go on: it is not refused while the disk is nearly full. For what writes little. Only for
   * an engine's `query`.
   */
  readonly isUpkeep?: boolean;
  /**
   * The text comes again and again, its plan is the same whatever the values are, and the types of its result never change: the
   * embedded engine prepares it. On a server there may be a pooler between.
   */
  readonly isRepeated?: boolean;
  /** The statement commits by itself, so its (small) result is charged but not refused. Set by engines. */
  readonly isCommitted?: boolean;
}

/** How long work in flight may still run when an engine is closed. */
export const CLOSE_LIMIT_MS = 1_000;

export interface Connection {
  /** How vectors go in and out. */
  readonly vectors: VectorForm;
  /**
   * Runs one statement. `values` are bound, never spliced into the text. A Buffer is sent in the binary
   * format of the parameter's type. session-query.ts lists what a caller gets for each type. Rejects with the
   * database's own error (`code` is its SQLSTATE) or a LodestoneError.
   */
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<QueryResult<Row>>;
  /** The budget of the request that this work belongs to, for what its response takes beyond what is read. */
  readonly budget?: AnswerBudget | undefined;
  /** How its callers do long work in slices while they have it: `slicesOf`. Default: as everybody does. */
  readonly slices?: SliceOptions | undefined;
}

/** For work that belongs to a request, while it has the connection: of a transaction that everybody waits for, it goes first. */
export const slicesOf = ({ budget, slices }: Pick<Connection, "budget" | "slices">): Slices =>
  new Slices(SLICE_UNITS, budget?.caller, slices);

/** A user's SQL statement, whose result must not fill memory. */
export interface BoundedQuery {
  readonly text: string;
  /**
   * Called once PostgreSQL has said the types (oids) of the parameters. Returns them as PostgreSQL's text.
   */
  readonly values: (types: readonly number[]) => readonly (string | null)[];
  readonly maxRows: number;
  /** Limit for all values together. Rows beyond it are cut and, as far as possible, not read at all. */
  readonly maxBytes: number;
  /**
   * Runs a cut result to its end, without keeping its rows, to learn how many there were. For INSERT, UPDATE
   * and DELETE with RETURNING.
   */
  readonly countsAll: boolean;
  readonly budget?: AnswerBudget | undefined;
}

export interface BoundedResult {
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[];
  /** Values as PostgreSQL's text. */
  readonly rows: readonly (string | null)[][];
  /**
   * There were more rows, or they were too long. A cut SELECT is not computed any further; every other
   * statement has run to its end.
   */
  readonly isCut: boolean;
  /** Rows changed (or returned); null when a cut result leaves this unknown. */
  readonly rowCount: number | null;
}

/** The connection inside a transaction. */
export interface TransactionConnection extends Connection {
  queryBounded(query: BoundedQuery): Promise<BoundedResult>;
  /** The result of a SELECT without parameters, for CopiedRows. Only on a server. All of it is held at once. */
  copyOut?(select: string): Promise<Buffer>;
}

export interface TransactionOptions {
  readonly readOnly?: boolean;
  /** Default: read committed. "repeatable read" makes all statements see one snapshot. */
  readonly isolation?: "read committed" | "repeatable read" | "serializable";
  /**
   * Runs as this role, with only the branch's schema in `search_path`; no SQL inside can undo it. Only for
   * users' raw SQL.
   */
  readonly jail?: { readonly roleName: string; readonly schemaName: string };
  /**
   * Runs ahead of everything that waits for the session (embedded), as unit-queue.ts says. For the change feed's reads,
   * which others wait for.
   */
  readonly urgent?: boolean;
  /**
   * After this time the work is cancelled and rolled back, and the promise rejects with LodestoneError
   * TIMEOUT. Default: the engine's limit (60 s; 10 s in a jail on the embedded engine).
   */
  readonly timeoutMs?: number;
  /**
   * Aborted when nobody waits for the result any more. Work that has not begun is then not started. Work in
   * flight continues to its end unless it is `abandonable`. The promise of work that was not done rejects
   * with the signal's reason. A commit is never cut short.
   */
  readonly signal?: AbortSignal;
  /** As for a query. */
  readonly isUpkeep?: boolean;
  /** The work leaves nothing behind but its result, so the signal may end it. Default: `readOnly`. */
  readonly abandonable?: boolean;
  /**
   * Charged with everything that the work reads. A refusal is thrown inside the work, hence before the
   * commit.
   */
  readonly budget?: AnswerBudget | undefined;
}

/** Sentences for operators, which name nobody's data; null when all is well. */
export interface EngineHealth {
  /** Why it does nothing at all. */
  readonly outage: string | null;
  /** Why it only reads. */
  readonly writeRefusal: string | null;
}

/**
 * An engine's `query` runs one statement in a transaction of its own, which is committed and durable when the
 * promise resolves.
 */
export interface Engine extends Connection {
  /** Nothing else uses the database while it is open: no other process changes it, or has to be told. */
  readonly isExclusive: boolean;
  /** An SQL expression: PostgreSQL's timeline, which is another one after a standby was promoted. */
  readonly timelineSql: string;
  /** The engine itself, for what is kept beyond one caller; see engine-for-caller.ts. */
  readonly shared: Engine;
  /**
   * How many callers were recently at the session that all share, besides the service itself; null on a server, where nobody waits
   * for the session of another.
   */
  readonly callers: number | null;
  /** Of an engine for one caller: aborted when the caller has left. */
  readonly signal?: AbortSignal | undefined;
  /**
   * BEGIN, work, COMMIT; ROLLBACK when work rejects. Resolves only once the commit is durable (fsync).
   * Serialization failures and deadlocks are retried, that is, `work` runs again; after the last attempt it
   * rejects with OVERLOADED.
   */
  transaction<Result>(work: (connection: TransactionConnection) => Promise<Result>, options?: TransactionOptions): Promise<Result>;
  /**
   * Calls `listener` with the payload of each NOTIFY on the channel. After a reconnect it subscribes again
   * and calls `listener` with "".
   */
  listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>>;
  /**
   * From now on runs `guard` once on each new connection to a server, before anything else uses it. The
   * connection may reach another life of the database than earlier ones did: a standby was promoted, or a
   * backup was restored. A connection stays with its life. Does nothing on the embedded engine.
   */
  guardConnections(guard: (connection: Connection) => Promise<void>): void;
  /**
   * Copies the embedded database into a new directory while it is in use; the copy is a complete data
   * directory. INVALID on a server, where pg_dump and pg_basebackup do this better.
   * @param signal  when it aborts, nothing is left of the copy, and the promise rejects with its reason.
   */
  backup(directory: string, signal?: AbortSignal): Promise<void>;
  /** Size of the write-ahead log on disk. Not on a server: its own monitoring knows the size, and it decides who may ask. */
  walBytes?(): Promise<number>;
  health(): EngineHealth;
  /**
   * Lets work in flight finish within a second and rolls back the rest. Refuses new work, makes a checkpoint
   * (embedded), and releases the directory or the pool.
   */
  close(): Promise<void>;
}
