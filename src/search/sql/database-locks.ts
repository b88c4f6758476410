/**
 * Locks between the servers that share one search database: one of them reads a branch, and the others wait
 * for it. They are session-level advisory locks of PostgreSQL on a connection of their own. A server that
 * ends or loses this connection loses its locks. Errors of that database are given their codes here.
 */
import pg from "pg";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { Semaphore } from "../../threads/semaphore.ts";
import { SearchDatabaseAwayError } from "../search-engine.ts";

/** What is locked: the first key of the lock. */
export const LOCKED = { branch: 0x10de_0001, generation: 0x10de_0002 } as const;

export interface HeldLock {
  /** False once its session has ended: another server may hold the lock by then. */
  isHeld(): boolean;
  release(): Promise<void>;
}

interface LockSession {
  readonly client: pg.Client;
  isOpen: boolean;
}

export class DatabaseLocks {
  readonly #config: pg.ClientConfig;
  #session: Promise<LockSession> | undefined;
  /** Statements run one after the other. */
  readonly #mutex = new Semaphore(1);
  #isClosed = false;

  constructor(config: pg.ClientConfig) {
    this.#config = config;
  }

  /** @returns null when another server holds it. */
  async tryLock(kind: number, what: number): Promise<HeldLock | null> {
    const session = await this.#connected();
    const values = [kind, what | 0];
    const [row] = await this.#query<{ locked: boolean }>(session, "SELECT pg_catalog.pg_try_advisory_lock($1, $2) AS locked", values);
    if (row?.locked !== true) return null;
    return {
      isHeld: () => session.isOpen,
      release: async () => {
        await this.#query(session, "SELECT pg_catalog.pg_advisory_unlock($1, $2)", values).catch(() => {}); // gone with its session
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const session = await this.#session?.catch(() => undefined);
    this.#session = undefined;
    await session?.client.end().catch(() => {});
  }

  async #query<Row extends pg.QueryResultRow>(session: LockSession, text: string, values: readonly unknown[]): Promise<Row[]> {
    try {
      return (await this.#mutex.run(() => session.client.query<Row>(text, [...values]))).rows;
    } catch (error) {
      throw asSearchError(error);
    }
  }

  #connected(): Promise<LockSession> {
    this.#session ??= this.#connect();
    return this.#session;
  }

  async #connect(): Promise<LockSession> {
    if (this.#isClosed) throw asSearchError(new Error("The search database is closed."));
    const session = { client: new pg.Client(this.#config), isOpen: true };
    const forget = (): void => {
      session.isOpen = false;
      this.#session = undefined;
    };
    session.client.on("error", forget).on("end", forget);
    try {
      await session.client.connect();
    } catch (error) {
      forget();
      throw asSearchError(error);
    }
    return session;
  }
}

/**
 * A lost connection becomes UNAVAILABLE, and a time limit TIMEOUT. Other errors of the database are returned
 * unchanged.
 */
export function asSearchError(error: unknown): unknown {
  if (error instanceof LodestoneError) return error;
  if (!(error instanceof pg.DatabaseError)) return new SearchDatabaseAwayError(error);
  const code = error.code ?? "";
  if (code === "57014") {
    return new LodestoneError(
      "TIMEOUT",
      "The search ran past its time limit and was ended. Ask for fewer rows, or raise --statement-timeout.",
      {
        cause: error,
      },
    );
  }
  // A connection that broke, a server that shuts down or starts up, no free connection, a primary that became
  // a standby.
  if (code.startsWith("08") || code.startsWith("57P") || code === "53300" || code === "25006") return new SearchDatabaseAwayError(error);
  return error;
}
