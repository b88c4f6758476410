/**
 * The server engine: a pool of connections to a PostgreSQL that somebody runs (15 or later).
 *
 * Invariants: a connection goes back to the pool only outside a transaction and without a broken protocol state; an error of an idle connection
 * (a server that restarts) never reaches the process; the URL's password appears in no message.
 */
import pg, { type PoolClient, type QueryResult } from "pg";
import { LodestoneError } from "../../../errors.ts";
import { quoteIdentifier } from "../../identifiers.ts";
import type { Connection, Engine, QueryOptions, TransactionOptions } from "../engine.ts";
import { PARSED_TYPES, RAW_TYPES } from "../pg-types.ts";
import { runTransaction } from "../transaction.ts";

export interface ServerEngineOptions {
  readonly databaseUrl: string;
  readonly statementTimeoutMs: number;
  readonly poolSize?: number;
}

const MINIMUM_MAJOR = 15;
const CONNECT_TIMEOUT_MS = 10_000;
const RETRYABLE = new Set(["40001", "40P01"]); // serialization failure, deadlock
const MAX_ATTEMPTS = 4;
const LISTEN_RETRY_MS = 1_000;

export class ServerEngine implements Engine {
  readonly kind = "server";
  readonly #pool: pg.Pool;
  readonly #statementTimeoutMs: number;
  readonly #listeners = new Map<string, Set<(payload: string) => void>>();
  #listening: Promise<pg.Client> | null = null;
  #closing: Promise<void> | null = null;

  private constructor(pool: pg.Pool, statementTimeoutMs: number) {
    this.#pool = pool;
    this.#statementTimeoutMs = statementTimeoutMs;
    // An idle connection that breaks (server restart) is dropped by the pool; without a listener it would end the process.
    pool.on("error", () => {});
  }

  static async open(options: ServerEngineOptions): Promise<ServerEngine> {
    let config: pg.PoolConfig;
    try {
      new URL(options.databaseUrl);
      config = { connectionString: options.databaseUrl };
    } catch {
      throw new LodestoneError("INVALID", "The database URL is not a URL; expected postgres://user:password@host:port/database.");
    }
    const pool = new pg.Pool({
      ...config,
      max: options.poolSize ?? 10,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: "lodestone",
      options: "-c TimeZone=UTC -c DateStyle=ISO -c extra_float_digits=1 -c client_encoding=UTF8",
    });
    const engine = new ServerEngine(pool, options.statementTimeoutMs);
    try {
      const { rows } = await engine.query<{ version: number }>("SELECT current_setting('server_version_num')::int4 AS version");
      const version = rows[0]!.version;
      if (version < MINIMUM_MAJOR * 10_000) {
        throw new LodestoneError(
          "UNAVAILABLE",
          `The database is PostgreSQL ${Math.floor(version / 10_000)}; Lodestone needs PostgreSQL ${MINIMUM_MAJOR} or later.`,
        );
      }
    } catch (error) {
      await pool.end();
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
    return this.#withClient(this.#statementTimeoutMs, (session) => session.query<Row>(text, values, options));
  }

  async transaction<Result>(work: (connection: Connection) => Promise<Result>, options: TransactionOptions = {}): Promise<Result> {
    const timeoutMs = options.timeoutMs ?? this.#statementTimeoutMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#withClient(timeoutMs, (session) =>
          runTransaction(session, work, options, { body: (run) => run(), commit: (run) => run() }),
        );
      } catch (error) {
        const isRetryable = RETRYABLE.has((error as { code?: string }).code ?? "");
        if (!isRetryable || attempt === MAX_ATTEMPTS) throw error;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * 2 ** attempt));
      }
    }
  }

  async listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    const isNew = !this.#listeners.has(channel);
    listeners.add(listener);
    this.#listeners.set(channel, listeners);
    this.#listening ??= this.#openListener();
    const client = await this.#listening;
    if (isNew) await client.query(`LISTEN ${quoteIdentifier(channel)}`);
    return async () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      if (this.#closing === null) await (await this.#listening)?.query(`UNLISTEN ${quoteIdentifier(channel)}`).catch(() => {});
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const listening = await this.#listening?.catch(() => null);
    await listening?.end().catch(() => {});
    await this.#pool.end();
  }

  async #withClient<Result>(timeoutMs: number, work: (session: Connection) => Promise<Result>): Promise<Result> {
    if (this.#closing !== null) throw new LodestoneError("UNAVAILABLE", "The database is closed.");
    let client: PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      throw unavailable(error);
    }
    let broken: Error | undefined;
    const onError = (error: Error): void => {
      broken = error;
    };
    client.on("error", onError);
    try {
      return await work(sessionOf(client, timeoutMs));
    } catch (error) {
      throw this.#translate(error, timeoutMs, broken !== undefined);
    } finally {
      client.off("error", onError);
      client.release(broken ?? false);
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
    return error;
  }

  async #openListener(): Promise<pg.Client> {
    const client = new pg.Client({ ...this.#pool.options } as pg.ClientConfig);
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

function sessionOf(client: PoolClient, timeoutMs: number): Connection {
  let limited = false;
  return {
    async query<Row extends object>(text: string, values?: readonly unknown[], options: QueryOptions = {}): Promise<QueryResult<Row>> {
      if (!limited) {
        limited = true;
        await client.query(`SET statement_timeout = ${Math.ceil(timeoutMs)}`);
      }
      return await client.query<Row>({
        text,
        ...(values === undefined ? {} : { values: values as unknown[] }),
        types: options.raw === true ? RAW_TYPES : PARSED_TYPES,
        ...(options.rowMode === "array" ? { rowMode: "array" } : {}),
      } as pg.QueryConfig);
    },
  };
}

const unavailable = (cause: unknown): LodestoneError =>
  new LodestoneError("UNAVAILABLE", "The database cannot be reached at the moment. The request may not have been applied: try again.", {
    cause,
  });

/** Host and database only: a URL may hold a password. */
function placeOf(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  return `${url.host || "the local socket"}${url.pathname}`;
}
