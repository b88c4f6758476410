/**
 * The server engine: a pool of connections to an existing PostgreSQL (15 or later).
 *
 * Invariants: a connection goes back to the pool only outside a transaction and with its protocol state
 * intact; an error of an idle connection (a server that restarts) never reaches the process; the URL's
 * password appears in no message.
 */

import pg, { type QueryResult } from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { FairTurns } from "../../../fairness/fair-turns.ts";
import { VECTORS_IN_PROTOCOL } from "../../binary-arrays.ts";
import { DatabaseAwayError } from "../../database-away.ts";
import { asServiceError, isContention, timedOut } from "../database-errors.ts";
import {
  CLOSE_LIMIT_MS,
  type Connection,
  type Engine,
  type EngineHealth,
  type QueryOptions,
  type TransactionConnection,
  type TransactionOptions,
} from "../engine.ts";
import { isReading } from "../engine-for-caller.ts";
import { TIMELINE } from "../pinned-settings.ts";
import { runTransaction } from "../run-transaction.ts";
import { BranchLogins, CONNECTIONS_PER_BRANCH } from "./branch-logins.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { DatabaseWatch } from "./database-watch.ts";
import { rememberStart, ServerSession } from "./server-session.ts";
import { CONNECT_TIMEOUT_MS, clientConfig, placeOf, resetStatements, sessionSettings, sessionStatements } from "./session-settings.ts";
import { describeStartError, requireSessions, requireUsable } from "./start-checks.ts";
import { terminateBackend, untilEnded } from "./terminate-backend.ts";

export interface ServerEngineOptions {
  readonly databaseUrl: string;
  readonly statementTimeoutMs: number;
  /** Maximum number of our own connections, besides the one that listens. */
  readonly poolSize?: number | undefined;
  /** Maximum number of connections as the roles of branches, for SQL over HTTP. */
  readonly sqlPoolSize?: number | undefined;
}

const DEFAULT_POOL_SIZE = 10;
const DEFAULT_SQL_POOL_SIZE = 8;
/**
 * Of transactions that conflict one always continues, so each round completes one: many attempts are rare,
 * and short.
 */
const MAX_ATTEMPTS = 24;
const MAX_PAUSE_MS = 200;
const TIMEOUT_GRACE_MS = 2_000;
/** The caller of users' statements that nobody is named for. */
const SERVICE = "";
const ALL_BUSY = "All database connections that you may use are busy. Nothing was changed: try again.";

interface UnitLimits {
  readonly timeoutMs: number;
  readonly caller: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** The signal also ends work in flight. */
  readonly isAbandonable: boolean;
}

/**
 * Identifies the database that a connection reaches: it changes with a promotion, a restore, or another
 * address.
 */
interface Life {
  readonly system: string;
  readonly timeline: number;
}

/** The result of sessionStatements. */
interface FirstAnswer {
  readonly isStandby: boolean;
  readonly system: string;
  readonly timeline: number | null;
  readonly pid: number;
  readonly state: string;
}

export class ServerEngine implements Engine {
  readonly vectors = VECTORS_IN_PROTOCOL;
  readonly callers = null;
  readonly isExclusive = false;
  readonly timelineSql = TIMELINE;
  readonly #config: pg.ClientConfig;
  readonly #pool: ConnectionPool;
  readonly #turns: FairTurns;
  readonly #sqlTurns: FairTurns;
  readonly #logins: BranchLogins;
  readonly #watch: DatabaseWatch;
  readonly #settings: ReturnType<typeof sessionSettings>;
  readonly #statementTimeoutMs: number;
  readonly #active = new Set<ServerSession>();
  #guard: (connection: Connection) => Promise<void> = () => Promise.resolve();
  #life: Life | null = null;
  #closing: Promise<void> | null = null;

  private constructor(options: ServerEngineOptions) {
    const config = clientConfig(options.databaseUrl);
    this.#config = config;
    this.#statementTimeoutMs = options.statementTimeoutMs;
    this.#settings = sessionSettings(options.statementTimeoutMs);
    const { poolSize = DEFAULT_POOL_SIZE, sqlPoolSize = DEFAULT_SQL_POOL_SIZE } = options;
    const limits = { waitMs: CONNECT_TIMEOUT_MS, busy: () => ALL_BUSY };
    this.#turns = new FairTurns({ ...limits, places: poolSize });
    this.#sqlTurns = new FairTurns({ ...limits, places: sqlPoolSize, placesPerGroup: CONNECTIONS_PER_BRANCH });
    this.#pool = new ConnectionPool({ ...config, max: poolSize }, (client) => this.#prepare(client));
    this.#logins = new BranchLogins({
      config,
      owner: this,
      maxConnections: sqlPoolSize,
      prepare: (client) => this.#enter(client),
    });
    this.#watch = new DatabaseWatch({
      open: async () => {
        const client = new pg.Client(config);
        client.on("error", () => {});
        await client.connect();
        try {
          await this.#prepare(client);
        } catch (error) {
          await client.end().catch(() => {});
          throw error;
        }
        return client;
      },
      onAway: (reason) => this.#disconnect(unavailable(reason)),
    });
  }

  /**
   * @throws {LodestoneError} UNAVAILABLE with the reason: not reached, not let in, too old, a standby, or
   *   behind a pooler that lends connections.
   */
  static async open(options: ServerEngineOptions): Promise<ServerEngine> {
    const engine = new ServerEngine(options);
    try {
      const listening = await engine.#watch.start();
      await requireUsable(listening);
      const other = await engine.#pool.connect();
      try {
        await requireSessions(listening, other);
      } finally {
        other.release();
      }
    } catch (error) {
      await engine.close();
      throw describeStartError(error, placeOf(options.databaseUrl), clientConfig(options.databaseUrl).user!);
    }
    return engine;
  }

  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<QueryResult<Row>> {
    const isAbandonable = isReading(text);
    const limits = { timeoutMs: this.#statementTimeoutMs, caller: options?.budget?.caller, signal: options?.signal, isAbandonable };
    return this.#unit(this.#pool, limits, (session, withinTime) =>
      withinTime(() => session.query<Row>(text, values, { ...options, isCommitted: !isAbandonable })),
    );
  }

  async transaction<Result>(
    work: (connection: TransactionConnection) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    const { signal, timeoutMs = this.#statementTimeoutMs } = options;
    const isAbandonable = options.abandonable ?? options.readOnly === true;
    const limits = { timeoutMs, caller: options.budget?.caller, signal, isAbandonable };
    const settings = [`statement_timeout = ${Math.ceil(timeoutMs)}`];
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#unit(options.jail?.roleName ?? this.#pool, limits, (session, withinTime) =>
          runTransaction(session, work, options, { body: withinTime, commit: (run) => run() }, settings),
        );
      } catch (error) {
        if (!isContention(error)) throw error;
        if (attempt === MAX_ATTEMPTS) throw contended(error);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(5 * 2 ** attempt, MAX_PAUSE_MS)));
      }
    }
  }

  listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    return this.#watch.listen(channel, listener);
  }

  guardConnections(guard: (connection: Connection) => Promise<void>): void {
    this.#guard = guard;
  }

  backup(_directory: string): Promise<void> {
    return Promise.reject(
      new LodestoneError("INVALID", "The records are on a PostgreSQL server: back them up with pg_dump or pg_basebackup."),
    );
  }

  /** Asks nothing: the watch knows. */
  health(): EngineHealth {
    return { outage: this.#watch.isReached ? null : "The database cannot be reached at the moment.", writeRefusal: null };
  }

  get shared(): this {
    return this;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#watch.close();
    const timer = setTimeout(() => this.#disconnect(unavailable(undefined)), CLOSE_LIMIT_MS);
    await this.#logins.close();
    await this.#pool.close();
    clearTimeout(timer);
  }

  /** @param except  the connection that reported the reason. */
  #disconnect(reason: LodestoneError, except?: pg.ClientBase): void {
    for (const session of this.#active) session.end(reason);
    this.#pool.disconnect(except);
    this.#logins.disconnect(except);
  }

  async #prepare(client: pg.ClientBase): Promise<void> {
    await this.#enter(client);
    await this.#guard(client as unknown as Connection);
  }

  /** Sets up the session, and accepts it if it reaches a primary of the latest known life of the database. */
  async #enter(client: pg.ClientBase): Promise<void> {
    const results = (await client.query(sessionStatements(this.#settings))) as unknown as QueryResult<FirstAnswer>[];
    const { isStandby, system, timeline, pid, state } = results.at(-1)!.rows[0]!;
    rememberStart(client, { processId: pid, state });
    if (isStandby || timeline === null)
      throw new LodestoneError("UNAVAILABLE", "The database is a standby, which takes no writes; Lodestone needs the primary.");
    const known = this.#life;
    if (known?.system === system && timeline < known.timeline)
      throw new LodestoneError("UNAVAILABLE", "The database is a former primary: another one was promoted after it.");
    if (known !== null && known.system === system && known.timeline === timeline) return;
    this.#life = { system, timeline };
    // A connection to another life must not be mixed with this one.
    if (known !== null) {
      this.#disconnect(unavailable(undefined), client);
      this.#watch.disconnect(client);
    }
  }

  /** @param where  our own pool, or the role of a branch: then a connection logged in as that role. */
  async #unit<Result>(
    where: ConnectionPool | string,
    limits: UnitLimits,
    work: (session: ServerSession, withinTime: <Answer>(run: () => Promise<Answer>) => Promise<Answer>) => Promise<Result>,
  ): Promise<Result> {
    const { caller, signal } = limits;
    if (typeof where === "string")
      return this.#sqlTurns.run(caller ?? SERVICE, signal, (keepUntil) => this.#unitAtOnce(where, limits, work, keepUntil), {
        group: where,
      });
    // The service's own work waits for no caller's turn.
    if (caller === undefined) return this.#unitAtOnce(where, limits, work);
    return this.#turns.run(caller, signal, () => this.#unitAtOnce(where, limits, work));
  }

  async #unitAtOnce<Result>(
    where: ConnectionPool | string,
    { timeoutMs, signal, isAbandonable }: UnitLimits,
    work: (session: ServerSession, withinTime: <Answer>(run: () => Promise<Answer>) => Promise<Answer>) => Promise<Result>,
    keepUntil: (isOver: Promise<void>) => void = () => {},
  ): Promise<Result> {
    if (this.#closing !== null) throw new LodestoneError("UNAVAILABLE", "The database is closed.");
    signal?.throwIfAborted();
    // Nobody waits for a database that is known to be away.
    if (this.#watch.isAway) throw new DatabaseAwayError();
    let session: ServerSession;
    try {
      session = new ServerSession(typeof where === "string" ? await this.#logins.connect(where) : await where.connect());
    } catch (error) {
      throw error instanceof LodestoneError ? error : new DatabaseAwayError(error);
    }
    // The server's own statement_timeout comes first and ends one statement. This timer ends the whole unit,
    // even when the server does not answer. Users' statements do not outlive the response that says they were
    // ended.
    let ending: Promise<void> | undefined;
    const end = async (reason: Error): Promise<void> => {
      session.invalidate(reason);
      const { processId } = session;
      if (typeof where === "string" && processId !== undefined && !(await terminateBackend(this.#config, processId, where))) {
        // The answer says that the statement was ended. Its caller's place stays taken until that is true.
        keepUntil(untilEnded(this, { processId, roleName: where }, () => this.#closing !== null));
      }
      session.end(reason);
    };
    const withinTime = async <Answer>(run: () => Promise<Answer>): Promise<Answer> => {
      const endOnce = (reason: Error): void => {
        ending ??= end(reason);
      };
      const timer = setTimeout(() => endOnce(timedOut(timeoutMs)), timeoutMs + TIMEOUT_GRACE_MS);
      const onAbort = (): void => endOnce(signal!.reason);
      if (isAbandonable) signal?.addEventListener("abort", onAbort, { once: true });
      try {
        return await run();
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      }
    };
    this.#active.add(session);
    try {
      // The caller may have left while waiting for a connection.
      signal?.throwIfAborted();
      return await work(session, withinTime);
    } catch (error) {
      if (signal?.aborted === true && (session.failure ?? error) === signal.reason) throw signal.reason;
      throw this.#translate(error, timeoutMs, session.failure !== null);
    } finally {
      await ending;
      // Users' SQL leaves nothing behind for the next statement of its branch.
      if (typeof where === "string" && session.failure === null)
        await session.discard(resetStatements(this.#settings), unavailable(undefined));
      this.#active.delete(session);
      session.release();
    }
  }

  #translate(error: unknown, timeoutMs: number, isBroken: boolean): unknown {
    if (error instanceof LodestoneError) return error;
    const code = (error as { code?: string }).code ?? "";
    if (code === "57014") return timedOut(timeoutMs, error);
    // Class 08: connection; 57P01-03: the server shuts down or starts; 53300: too many connections.
    if (isBroken || /^(08|57P0|53300)/.test(code) || (error as Error).message === "Connection terminated unexpectedly")
      return unavailable(error);
    return asServiceError(error);
  }
}

const contended = (cause: unknown): LodestoneError =>
  new LodestoneError("OVERLOADED", "Other clients keep changing the same records. Nothing was changed: try again.", {
    cause,
    retryAfterSeconds: 1,
  });

const unavailable = (cause: unknown): LodestoneError =>
  new LodestoneError("UNAVAILABLE", "The database cannot be reached at the moment. The request may not have been applied: try again.", {
    cause,
  });
