/**
 * The server engine: a pool of connections to a PostgreSQL that somebody runs (15 or later).
 *
 * Invariants: a connection goes back to the pool only outside a transaction and without a broken protocol state; an error of an idle connection
 * (a server that restarts) never reaches the process; the URL's password appears in no message.
 */
import pg, { type QueryResult } from "pg";
import { LodestoneError } from "../../../errors.ts";
import { quoteIdentifier } from "../../identifiers.ts";
import { asServiceError } from "../database-errors.ts";
import { CLOSE_LIMIT_MS, type Engine, type QueryOptions, type TransactionConnection, type TransactionOptions } from "../engine.ts";
import { isReading } from "../engine-for-caller.ts";
import { runTransaction } from "../run-transaction.ts";
import { BranchLogins } from "./branch-logins.ts";
import { ServerSession } from "./server-session.ts";

export interface ServerEngineOptions {
  readonly databaseUrl: string;
  readonly statementTimeoutMs: number;
  readonly poolSize?: number;
}

const MINIMUM_MAJOR = 15;
const DEFAULT_POOL_SIZE = 10;
const CONNECT_TIMEOUT_MS = 10_000;
const RETRYABLE = new Set(["40001", "40P01"]); // serialization failure, deadlock
/** Of those that meet at the same records one always goes on, so that each round ends a transaction: many tries are rare, and short. */
const MAX_ATTEMPTS = 24;
const MAX_PAUSE_MS = 200;
const LISTEN_RETRY_MS = 1_000;
const TIMEOUT_GRACE_MS = 2_000;

interface UnitLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** The signal ends what runs, too. */
  readonly isAbandonable: boolean;
}

export class ServerEngine implements Engine {
  readonly kind = "server";
  readonly #config: pg.PoolConfig;
  readonly #pool: pg.Pool;
  readonly #logins: BranchLogins;
  readonly #statementTimeoutMs: number;
  readonly #listeners = new Map<string, Set<(payload: string) => void>>();
  readonly #active = new Set<ServerSession>();
  #listening: Promise<pg.Client> | null = null;
  #closing: Promise<void> | null = null;

  private constructor(config: pg.PoolConfig, statementTimeoutMs: number) {
    const pool = new pg.Pool(config);
    this.#config = config;
    this.#pool = pool;
    this.#logins = new BranchLogins(config, this);
    this.#statementTimeoutMs = statementTimeoutMs;
    // An idle connection that breaks (server restart) is dropped by the pool; without a listener it would end the process.
    pool.on("error", () => {});
  }

  static async open(options: ServerEngineOptions): Promise<ServerEngine> {
    const engine = new ServerEngine(poolConfig(options), options.statementTimeoutMs);
    try {
      const { rows } = await engine.query<{ version: number; encoding: string }>(
        "SELECT current_setting('server_version_num')::int4 AS version, current_setting('server_encoding') AS encoding",
      );
      const { version, encoding } = rows[0]!;
      if (encoding !== "UTF8") throw new LodestoneError("UNAVAILABLE", `The database has the encoding ${encoding}; Lodestone needs UTF8.`);
      if (version < MINIMUM_MAJOR * 10_000) {
        throw new LodestoneError(
          "UNAVAILABLE",
          `The database is PostgreSQL ${Math.floor(version / 10_000)}; Lodestone needs PostgreSQL ${MINIMUM_MAJOR} or later.`,
        );
      }
    } catch (error) {
      await engine.close();
      if (error instanceof LodestoneError) throw error;
      throw new LodestoneError(
        "UNAVAILABLE",
        `The database at ${placeOf(options.databaseUrl)} refused: ${String((error as Error).message)}`,
        { cause: error },
      );
    }
    return engine;
  }

  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<QueryResult<Row>> {
    const limits = { timeoutMs: this.#statementTimeoutMs, signal: options?.signal, isAbandonable: isReading(text) };
    return this.#unit(this.#pool, limits, (session, withinTime) => withinTime(() => session.query<Row>(text, values, options)));
  }

  async transaction<Result>(
    work: (connection: TransactionConnection) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    const { signal, timeoutMs = this.#statementTimeoutMs } = options;
    const limits = { timeoutMs, signal, isAbandonable: options.abandonable ?? options.readOnly === true };
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#unit(options.jail?.roleName ?? this.#pool, limits, (session, withinTime) =>
          runTransaction(session, work, options, { body: withinTime, commit: (run) => run() }, [
            `statement_timeout = ${Math.ceil(timeoutMs)}`,
          ]),
        );
      } catch (error) {
        if (!RETRYABLE.has((error as { code?: string }).code ?? "")) throw error;
        if (attempt === MAX_ATTEMPTS) throw contended(error);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(5 * 2 ** attempt, MAX_PAUSE_MS)));
      }
    }
  }

  async listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    const isNew = !this.#listeners.has(channel);
    listeners.add(listener);
    this.#listeners.set(channel, listeners);
    this.#listening ??= this.#openListener();
    let client: pg.Client;
    try {
      client = await this.#listening;
    } catch (error) {
      this.#listening = null;
      if (isNew) this.#listeners.delete(channel);
      throw unavailable(error);
    }
    if (isNew) await client.query(`LISTEN ${quoteIdentifier(channel)}`);
    return async () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      if (this.#closing === null) await (await this.#listening)?.query(`UNLISTEN ${quoteIdentifier(channel)}`).catch(() => {});
    };
  }

  backup(_directory: string): Promise<void> {
    return Promise.reject(
      new LodestoneError("INVALID", "The records are on a PostgreSQL server: back them up with pg_dump or pg_basebackup."),
    );
  }

  walBytes(): Promise<null> {
    return Promise.resolve(null);
  }

  get shared(): this {
    return this;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const listening = await this.#listening?.catch(() => null);
    await listening?.end().catch(() => {});
    const timer = setTimeout(() => {
      for (const session of this.#active) session.end(unavailable(undefined));
    }, CLOSE_LIMIT_MS);
    await this.#logins.close();
    await this.#pool.end();
    clearTimeout(timer);
  }

  /** @param where  our own pool, or the role of a branch: then a connection logged in as that role. */
  async #unit<Result>(
    where: pg.Pool | string,
    { timeoutMs, signal, isAbandonable }: UnitLimits,
    work: (session: ServerSession, withinTime: <Answer>(run: () => Promise<Answer>) => Promise<Answer>) => Promise<Result>,
  ): Promise<Result> {
    if (this.#closing !== null) throw new LodestoneError("UNAVAILABLE", "The database is closed.");
    signal?.throwIfAborted();
    let session: ServerSession;
    try {
      session = typeof where === "string" ? await this.#logins.session(where) : new ServerSession(await where.connect());
    } catch (error) {
      throw error instanceof LodestoneError ? error : isPoolExhausted(error) ? overloaded(error) : unavailable(error);
    }
    // The server's own statement_timeout comes first and ends one statement; this ends the whole, also when the server does not answer.
    const withinTime = async <Answer>(run: () => Promise<Answer>): Promise<Answer> => {
      const timer = setTimeout(() => session.end(timedOut(timeoutMs)), timeoutMs + TIMEOUT_GRACE_MS);
      const onAbort = (): void => session.end(signal!.reason);
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
      // Its caller may have gone while it waited for a connection.
      signal?.throwIfAborted();
      return await work(session, withinTime);
    } catch (error) {
      if (signal?.aborted === true && (session.failure ?? error) === signal.reason) throw signal.reason;
      throw this.#translate(error, timeoutMs, session.failure !== null);
    } finally {
      // Users' SQL leaves nothing behind for the next one of its branch.
      if (typeof where === "string" && session.failure === null)
        await session.query("DISCARD ALL").catch(() => session.end(unavailable(undefined)));
      this.#active.delete(session);
      session.release();
    }
  }

  #translate(error: unknown, timeoutMs: number, isBroken: boolean): unknown {
    if (error instanceof LodestoneError) return error;
    const code = (error as { code?: string }).code ?? "";
    if (code === "57014") {
      return new LodestoneError("TIMEOUT", `The statement ran longer than ${timeoutMs / 1000} seconds; it was cancelled and rolled back.`, {
        cause: error,
      });
    }
    // Class 08: connection; 57P01-03: the server shuts down or starts; 53300: too many connections.
    if (isBroken || /^(08|57P0|53300)/.test(code) || (error as Error).message === "Connection terminated unexpectedly")
      return unavailable(error);
    return asServiceError(error);
  }

  async #openListener(): Promise<pg.Client> {
    const client = new pg.Client(this.#config);
    client.on("notification", ({ channel, payload }) => this.#notify(channel, payload ?? ""));
    client.on("error", () => {});
    client.on("end", () => this.#reopenListener());
    await client.connect();
    return client;
  }

  #reopenListener(): void {
    if (this.#closing !== null) return;
    this.#listening = (async () => {
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, LISTEN_RETRY_MS).unref());
        if (this.#closing !== null) throw new LodestoneError("UNAVAILABLE", "The database is closed.");
        try {
          const client = await this.#openListener();
          for (const channel of this.#listeners.keys()) await client.query(`LISTEN ${quoteIdentifier(channel)}`);
          for (const channel of this.#listeners.keys()) this.#notify(channel, "");
          return client;
        } catch {
          // The server is still away: try again.
        }
      }
    })();
    this.#listening.catch(() => {});
  }

  #notify(channel: string, payload: string): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener(payload);
  }
}

const timedOut = (timeoutMs: number, cause?: unknown): LodestoneError =>
  new LodestoneError("TIMEOUT", `The statement ran longer than ${timeoutMs / 1000} seconds; it was cancelled and rolled back.`, { cause });

/** pg-pool has no code for it. */
const isPoolExhausted = (error: unknown): boolean => (error as Error).message === "timeout exceeded when trying to connect";

const overloaded = (cause: unknown): LodestoneError =>
  new LodestoneError("OVERLOADED", "All connections to the database are busy. Nothing was changed: try again.", {
    cause,
    retryAfterSeconds: 1,
  });

const contended = (cause: unknown): LodestoneError =>
  new LodestoneError("OVERLOADED", "Other clients keep changing the same records. Nothing was changed: try again.", {
    cause,
    retryAfterSeconds: 1,
  });

const unavailable = (cause: unknown): LodestoneError =>
  new LodestoneError("UNAVAILABLE", "The database cannot be reached at the moment. The request may not have been applied: try again.", {
    cause,
  });

/**
 * The URL's parts, so that logins as other roles can share them. Session settings that the rest relies on, over whatever the database's or role's defaults are:
 * standard_conforming_strings is what makes our reading of a statement and the server's the same.
 */
function poolConfig(options: ServerEngineOptions): pg.PoolConfig {
  try {
    new URL(options.databaseUrl);
  } catch {
    throw new LodestoneError("INVALID", "The database URL is not a URL; expected postgres://user:password@host:port/database.");
  }
  const { host, port, database, user, password, ssl } = new pg.Client({ connectionString: options.databaseUrl });
  const settings = [
    "TimeZone=UTC",
    "DateStyle=ISO",
    "IntervalStyle=postgres",
    "extra_float_digits=1",
    // Triggers then leave the waking of the change feed's followers to this process; see feed/wake-ups.ts.
    "lodestone.writer=service",
    "client_encoding=UTF8",
    "standard_conforming_strings=on",
    "bytea_output=hex",
    "client_connection_check_interval=1000",
    `statement_timeout=${Math.ceil(options.statementTimeoutMs)}`,
  ];
  return {
    host,
    port,
    database: database!,
    user: user!,
    password: password!,
    ssl: ssl as boolean,
    max: options.poolSize ?? DEFAULT_POOL_SIZE,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: "lodestone",
    options: settings.map((setting) => `-c ${setting}`).join(" "),
  };
}

/** Host and database only: a URL may hold a password. */
function placeOf(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  return `${url.host || "the local socket"}${url.pathname}`;
}
