/**
 * A pool of connections to a server. Each is prepared before its first use. When none is free callers wait
 * instead of failing. When the database is gone, all connections are broken off at once.
 *
 * Invariants: nobody is given a connection that `prepare` has not passed; callers that wait when the database
 * goes away are told at that moment; if the server has no free connection (max_connections), the pool becomes
 * smaller for a while, and its callers wait for each other.
 */
import pg from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { DatabaseAwayError } from "../../database-away.ts";
import { handleLongTexts } from "../protocol-connection.ts";
import { destroyConnection } from "./database-watch.ts";
import { CONNECT_TIMEOUT_MS } from "./session-settings.ts";

const NO_CONNECTION_LEFT = "53300";
const FIRST_PAUSE_MS = 20;
const LAST_PAUSE_MS = 500;
/** How long the pool stays at the number of connections that it could get. */
const SMALL_FOR_MS = 10_000;

class PooledClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    handleLongTexts(this);
  }
}

export class ConnectionPool {
  readonly #pool: pg.Pool;
  readonly #size: number;
  readonly #clients = new Set<pg.ClientBase>();
  readonly #waiting = new Set<(reason: Error) => void>();
  #growTimer: NodeJS.Timeout | undefined;
  /** Calls of connect() that wait for what must be over before. */
  #waitingForRoom = 0;

  /**
   * @param prepare  run on each new connection; if it rejects, the connection is closed and the caller that
   *   asked for it gets the reason.
   */
  constructor(config: pg.PoolConfig & { readonly max: number }, prepare: (client: pg.ClientBase) => Promise<void>) {
    this.#size = config.max;
    this.#pool = new pg.Pool({
      ...config,
      Client: PooledClient,
      onConnect: async (client: pg.ClientBase) => {
        this.#clients.add(client);
        client.once("end", () => this.#clients.delete(client));
        await prepare(client);
      },
    });
    // The pool drops an idle connection that breaks (server restart); without a listener the error would end
    // the process.
    this.#pool.on("error", () => {});
  }

  /** Connections: in use, idle, and those that will be opened for who waits. */
  get total(): number {
    return this.#pool.totalCount + Math.max(0, this.#wanted - this.#pool.idleCount);
  }

  /** Connections that nobody uses or waits for. */
  get spare(): number {
    return Math.max(0, this.#pool.idleCount - this.#wanted);
  }

  /** Has no connection, not even one that is ending. */
  get isEmpty(): boolean {
    return this.total === 0 && this.#clients.size === 0;
  }

  get #wanted(): number {
    return this.#pool.waitingCount + this.#waitingForRoom;
  }

  /**
   * @param after  what must be over before a connection is opened.
   * @throws the error of connecting or preparing; {LodestoneError} OVERLOADED after ten seconds without a
   *   free connection.
   */
  async connect(after: Iterable<Promise<void>> = []): Promise<pg.PoolClient> {
    this.#waitingForRoom++;
    try {
      await Promise.all(after);
    } finally {
      this.#waitingForRoom--;
    }
    return this.#connectPatiently();
  }

  /** Ends a spare connection. Resolves when the server has ended it: it counts until then. */
  async endSpare(): Promise<void> {
    // When it has broken, and the attempt to open another as well, there is nothing to end.
    const client = await this.#pool.connect().catch(() => undefined);
    if (client === undefined) return;
    const ended = new Promise<void>((resolve) => client.once("end", resolve));
    client.release(true);
    await ended;
  }

  async #connectPatiently(): Promise<pg.PoolClient> {
    const deadline = performance.now() + CONNECT_TIMEOUT_MS;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
      try {
        return await this.#connectOnce();
      } catch (error) {
        // pg-pool has no error code for its own limit.
        if ((error as Error).message === "timeout exceeded when trying to connect") throw overloaded(error);
        if ((error as { code?: string }).code !== NO_CONNECTION_LEFT) throw error;
        if (performance.now() > deadline) throw overloaded(error);
        this.#stay();
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (1 - Math.random() / 2)));
    }
  }

  /**
   * Breaks off all connections, used and idle. What runs on them rejects, and so does everybody who waits for
   * one.
   */
  disconnect(except?: pg.ClientBase): void {
    for (const reject of this.#waiting) reject(new DatabaseAwayError());
    for (const client of this.#clients) if (client !== except) destroyConnection(client);
  }

  async close(): Promise<void> {
    clearTimeout(this.#growTimer);
    await this.#pool.end();
  }

  async #connectOnce(): Promise<pg.PoolClient> {
    const connecting = this.#pool.connect();
    let giveUp: (reason: Error) => void = () => {};
    const given = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    this.#waiting.add(giveUp);
    try {
      return await Promise.race([connecting, given]);
    } catch (error) {
      connecting.then(
        (client) => client.release(),
        () => {},
      );
      throw error;
    } finally {
      this.#waiting.delete(giveUp);
    }
  }

  /** Keeps the pool at the connections that are open: further callers wait for these. */
  #stay(): void {
    this.#pool.options.max = Math.max(1, this.#pool.totalCount);
    this.#growTimer ??= setTimeout(() => {
      this.#growTimer = undefined;
      this.#pool.options.max = this.#size;
    }, SMALL_FOR_MS).unref();
  }
}

const overloaded = (cause: unknown): LodestoneError =>
  new LodestoneError("OVERLOADED", "All connections to the database are busy. Nothing was changed: try again.", {
    cause,
    retryAfterSeconds: 1,
  });
