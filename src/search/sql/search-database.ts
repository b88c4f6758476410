/**
 * The other PostgreSQL, with pgvector, that `--search-url` names: its connections, its transactions, and the
 * schema that it needs.
 *
 * Invariants: a session keeps nothing between two transactions (settings are SET LOCAL), except for the locks
 * of builds, which have their own connection. No user text is ever part of a statement: names are made of
 * numbers (table-layout.ts), and values are bound.
 */
import type { QueryResultRow } from "pg";
import pg from "pg";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { foldFunctionSql } from "../../filter/fold.ts";
import { ConnectionPool } from "../../records/engine/server/connection-pool.ts";
import { clientConfig, placeOf } from "../../records/engine/server/session-settings.ts";
import { describeStartError } from "../../records/engine/server/start-checks.ts";
import { quoteIdentifier } from "../../records/identifiers.ts";
import { Semaphore } from "../../threads/semaphore.ts";
import { SearchDatabaseAwayError } from "../search-engine.ts";
import { asSearchError, DatabaseLocks } from "./database-locks.ts";

/** The schema that holds everything. */
export const SCHEMA = "lodestone_search";
/** The version of the layout. Tables of an older version are dropped, and made again from the records. */
const FORMAT = 1;
const FORMAT_LOCK = 0x10de_5706;

const CONNECT_TIMEOUT_MS = 3_000;
/** After a connection has failed, all requests fail at once for this long. Then one may try again. */
const AWAY_MS = 250;
/** The time limit of a statement that writes: one batch, or an index over a whole column. */
const WRITE_TIMEOUT_MS = 600_000;
/** A connection that is silent for this long after the database's own time limit is taken for dead. */
const SILENCE_MS = 5_000;
/** The first version that has l1_distance. */
const LEAST_PGVECTOR = [0, 5] as const;
const LEAST_POSTGRESQL = 150_000;

export interface SearchDatabaseOptions {
  /**
   * The most connections, besides one that holds locks. At least 2 are used. Half of them are only for
   * searches.
   */
  readonly connections: number;
  /** The time limit of one statement of a search. */
  readonly statementTimeoutMs: number;
}

/** Runs statements of a transaction. int8 values come as text. */
export interface Statements {
  query<Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

export interface OpenTransaction extends Statements {
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

interface Found {
  readonly schema: string;
  readonly oid: number;
  readonly isDistributed: boolean;
}

export class SearchDatabase {
  readonly #pool: ConnectionPool;
  readonly #writers: Semaphore;
  readonly #options: SearchDatabaseOptions;
  readonly #found: Found;
  readonly locks: DatabaseLocks;
  #awayUntil = 0;

  private constructor(pool: ConnectionPool, locks: DatabaseLocks, found: Found, options: SearchDatabaseOptions) {
    this.#pool = pool;
    this.#found = found;
    this.#options = options;
    this.locks = locks;
    this.#writers = new Semaphore(Math.max(1, options.connections - this.searchesAtOnce));
  }

  /** @throws {LodestoneError} UNAVAILABLE or INVALID, with what to do, when the database cannot be used. */
  static async open(url: string, options: SearchDatabaseOptions): Promise<SearchDatabase> {
    const config: pg.ClientConfig = {
      ...clientConfig(url),
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: "lodestone search",
      keepAlive: true,
    };
    const client = new pg.Client(config);
    client.on("error", () => {});
    let found: Found;
    try {
      await client.connect();
      found = await prepare(client);
    } catch (error) {
      throw describeStartError(error, `--search-url (${placeOf(url)})`, String(config.user));
    } finally {
      await client.end().catch(() => {});
    }
    const pool = new ConnectionPool({ ...config, max: Math.max(2, options.connections) }, async () => {});
    return new SearchDatabase(pool, new DatabaseLocks(config), found, options);
  }

  /** The schema that has pgvector, quoted. */
  get vectorSchema(): string {
    return this.#found.schema;
  }

  get vectorOid(): number {
    return this.#found.oid;
  }

  /** Citus spreads the tables over its nodes. */
  get isDistributed(): boolean {
    return this.#found.isDistributed;
  }

  get searchesAtOnce(): number {
    return Math.max(1, Math.ceil(this.#options.connections / 2));
  }

  /**
   * Runs statements that all see one state. Citus has no snapshot across its nodes. There, commits wait for
   * running searches, and searches wait for commits (see `commitLock`).
   *
   * @param lock  a number for what is read.
   * @throws {LodestoneError} UNAVAILABLE, TIMEOUT, OVERLOADED; otherwise the database's own error.
   */
  async read<Result>(lock: number, work: (statements: Statements) => Promise<Result>): Promise<Result> {
    const timeoutMs = this.#options.statementTimeoutMs;
    const begin = this.isDistributed
      ? `BEGIN READ ONLY; ${settings(timeoutMs)}; SELECT pg_catalog.pg_advisory_xact_lock_shared(${FORMAT_LOCK + 1}, ${lock | 0})`
      : `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${settings(timeoutMs)}`;
    return committed(await this.#begin(begin, timeoutMs, () => {}), work);
  }

  async write<Result>(work: (statements: Statements) => Promise<Result>): Promise<Result> {
    return committed(await this.begin(), work);
  }

  /**
   * Begins a transaction that writes. Only a few can be open at once, and the caller has to end it.
   *
   * @param lock  a number for what it writes, if searches must not see it half changed.
   */
  async begin(lock?: number): Promise<OpenTransaction> {
    await this.#writers.take();
    const commitLock = this.isDistributed ? lock : undefined;
    return this.#begin(`BEGIN; ${settings(WRITE_TIMEOUT_MS)}`, WRITE_TIMEOUT_MS, () => this.#writers.give(), commitLock);
  }

  async close(): Promise<void> {
    await this.locks.close();
    await this.#pool.close();
  }

  async #begin(statement: string, timeoutMs: number, onEnd: () => void, commitLock?: number): Promise<OpenTransaction> {
    const client = await this.#connect().catch((error: unknown) => {
      onEnd();
      throw error;
    });
    let isBroken = false;
    let isEnded = false;
    const onError = (): void => {
      isBroken = true;
    };
    client.on("error", onError);
    const end = (): void => {
      if (isEnded) return;
      isEnded = true;
      client.off("error", onError);
      client.release(isBroken);
      onEnd();
    };
    const query = async <Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]> => {
      const config = { text, ...(values && { values: [...values] }), query_timeout: timeoutMs + SILENCE_MS };
      try {
        return (await client.query<Row>(config)).rows;
      } catch (error) {
        if (!(error instanceof pg.DatabaseError)) isBroken = true;
        throw asSearchError(error);
      }
    };
    const commit = async (): Promise<void> => {
      const lock = `(${FORMAT_LOCK + 1}, ${(commitLock ?? 0) | 0})`;
      // A lock of the session, not of the transaction: it is held until every node has committed.
      if (commitLock !== undefined) await query(`SELECT pg_catalog.pg_advisory_lock${lock}`);
      try {
        await query("COMMIT");
      } catch (error) {
        isBroken = true;
        throw error;
      }
      if (commitLock !== undefined) await query(`SELECT pg_catalog.pg_advisory_unlock${lock}`);
      end();
    };
    const rollback = async (): Promise<void> => {
      if (isEnded) return;
      if (!isBroken) await query("ROLLBACK").catch(onError);
      end();
    };
    try {
      await query(statement);
    } catch (error) {
      isBroken = true;
      end();
      throw error;
    }
    return { query, commit, rollback };
  }

  async #connect(): Promise<pg.PoolClient> {
    if (performance.now() < this.#awayUntil) throw new SearchDatabaseAwayError();
    try {
      return await this.#pool.connect();
    } catch (error) {
      const known = asSearchError(error);
      if (known instanceof SearchDatabaseAwayError) this.#awayUntil = performance.now() + AWAY_MS;
      throw known;
    }
  }
}

/** Does the work and commits. Rolls back when either fails. */
async function committed<Result>(transaction: OpenTransaction, work: (statements: Statements) => Promise<Result>): Promise<Result> {
  try {
    const result = await work(transaction);
    await transaction.commit();
    return result;
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}

function settings(timeoutMs: number): string {
  // JIT compilation would take longer than most of these statements.
  return `SET LOCAL search_path = pg_catalog; SET LOCAL jit = off; SET LOCAL statement_timeout = ${Math.ceil(timeoutMs)}; SET LOCAL extra_float_digits = 1`;
}

/** Creates what is missing. Several servers may do so at once. */
async function prepare(client: pg.Client): Promise<Found> {
  const { rows: versions } = await client.query<{ version: number; encoding: string }>(
    "SELECT current_setting('server_version_num')::int4 AS version, current_setting('server_encoding') AS encoding",
  );
  const { version, encoding } = versions[0]!;
  if (version < LEAST_POSTGRESQL) throw unusable(`is PostgreSQL ${Math.floor(version / 10_000)}; 15 or later is needed`);
  if (encoding !== "UTF8")
    throw unusable(`has the encoding ${encoding}; it must be UTF8 (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)`);
  await client.query("BEGIN");
  await client.query("SELECT pg_advisory_xact_lock($1)", [FORMAT_LOCK]);
  const found = await findExtensions(client);
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`);
  await client.query(`CREATE TABLE IF NOT EXISTS ${SCHEMA}.format (version int4 NOT NULL)`);
  const { rows: formats } = await client.query<{ version: number }>(`SELECT version FROM ${SCHEMA}.format`);
  if ((formats[0]?.version ?? FORMAT) > FORMAT)
    throw unusable("was written by a later version of Lodestone; use that one, or another database");
  if (formats[0] !== undefined && formats[0].version < FORMAT) {
    await client.query(`DROP SCHEMA ${SCHEMA} CASCADE; CREATE SCHEMA ${SCHEMA}; CREATE TABLE ${SCHEMA}.format (version int4 NOT NULL)`);
  }
  if (formats[0]?.version !== FORMAT) await client.query(`INSERT INTO ${SCHEMA}.format VALUES (${FORMAT})`);
  await client.query(`CREATE SEQUENCE IF NOT EXISTS ${SCHEMA}.generations`);
  // One row per branch: its tables, and their position in the change feed. Both change in one transaction.
  await client.query(`CREATE TABLE IF NOT EXISTS ${SCHEMA}.branches (
    key text COLLATE "C" PRIMARY KEY, generation int8 NOT NULL, revision int8 NOT NULL, incarnation text NOT NULL, version int8 NOT NULL,
    position text NOT NULL, tables jsonb NOT NULL, counts jsonb NOT NULL)`);
  const { rows: functions } = await client.query(
    `SELECT 1 FROM pg_proc WHERE proname = 'fold' AND pronamespace = '${SCHEMA}'::regnamespace`,
  );
  if (functions.length === 0) await client.query(foldFunctionSql(SCHEMA));
  await client.query("COMMIT");
  return found;
}

async function findExtensions(client: pg.Client): Promise<Found> {
  const find = () =>
    client.query<{ name: string; version: string; schema: string }>(
      `SELECT extname AS name, extversion AS version, nspname AS schema FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
       WHERE extname IN ('vector', 'citus')`,
    );
  let { rows } = await find();
  if (!rows.some(({ name }) => name === "vector")) {
    await client.query("SAVEPOINT before_extension");
    try {
      await client.query("CREATE EXTENSION vector");
    } catch (error) {
      throw unusable(
        `has no pgvector, and it cannot be made (${(error as Error).message}): install it, then CREATE EXTENSION vector as a superuser`,
      );
    }
    ({ rows } = await find());
  }
  const vector = rows.find(({ name }) => name === "vector")!;
  const [major = 0, minor = 0] = vector.version.split(".").map(Number);
  if (major < LEAST_PGVECTOR[0] || (major === LEAST_PGVECTOR[0] && minor < LEAST_PGVECTOR[1]))
    throw unusable(`has pgvector ${vector.version}; ${LEAST_PGVECTOR.join(".")} or later is needed (ALTER EXTENSION vector UPDATE)`);
  const schema = quoteIdentifier(vector.schema);
  const { rows: types } = await client.query<{ oid: number }>(
    "SELECT t.oid FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE typname = 'vector' AND nspname = $1",
    [vector.schema],
  );
  return { schema, oid: types[0]!.oid, isDistributed: rows.some(({ name }) => name === "citus") };
}

function unusable(what: string): LodestoneError {
  return new LodestoneError("INVALID", `The database of --search-url ${what}.`);
}
