/**
 * One connection that listens (LISTEN) and knows whether the database can be reached. When it is lost, it is
 * reopened by a small number of attempts, with backoff and jitter. Meanwhile every other caller is
 * told at once that the database is away, instead of trying for itself.
 *
 * Invariants: at most ATTEMPTS_AT_ONCE attempts run, and a new one starts at most every BACKOFF_MS; `isAway`
 * is false while the connection is open; after a reconnect every listener is called with "", because it may
 * have missed something.
 */
import type { Duplex } from "node:stream";
import type pg from "pg";
import { Semaphore } from "../../../threads/semaphore.ts";
import { quoteIdentifier } from "../../identifiers.ts";
import { connectionOf } from "../protocol-connection.ts";

const ATTEMPTS_AT_ONCE = 3;
/**
 * Between the starts of attempts; the last value repeats. Each is shortened by up to a half, so that servers
 * do not fall into step.
 */
const BACKOFF_MS = [100, 200, 400, 500];
/** After this long without a connection or a refusal, waiting callers are told. */
const SILENCE_MS = 1_000;
const HEALTH_CHECK_EVERY_MS = 2_000;
/** Long enough for a database that is only busy. */
const HEALTH_CHECK_LIMIT_MS = 5_000;

export interface WatchOptions {
  /** Opens and prepares a connection; rejects within seconds if it cannot. */
  readonly open: () => Promise<pg.Client>;
  /** The database cannot be reached: do not wait for connections that seem to be open. */
  readonly onAway: (reason: unknown) => void;
}

export class DatabaseWatch {
  readonly #options: WatchOptions;
  readonly #listeners = new Map<string, Set<(payload: string) => void>>();
  #client: pg.Client | null = null;
  #isAway = false;
  /** It answers, but has no connection left for this one. */
  #isFull = false;
  #isClosed = false;
  #attempts = 0;
  #healthTimer: NodeJS.Timeout | undefined;
  /** Statements of the connection run one after the other. */
  readonly #mutex = new Semaphore(1);
  /** Ends the current pause of the reconnecting loop. */
  #endPause = (): void => {};

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** False also in the moments until it is known whether the database is away, or only this connection was lost. */
  get isReached(): boolean {
    return this.#client !== null || (this.#isFull && !this.#isAway);
  }

  /** Opens the first connection. Rejects with the database's own error. */
  async start(): Promise<pg.Client> {
    const client = await this.#options.open();
    await this.#adopt(client);
    return client;
  }

  /** Resolves once the server listens or is away; in the latter case it will listen once it is back. */
  async listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    let listeners = this.#listeners.get(channel);
    const isNew = listeners === undefined;
    listeners ??= new Set();
    listeners.add(listener);
    this.#listeners.set(channel, listeners);
    if (isNew) await this.#run(`LISTEN ${quoteIdentifier(channel)}`);
    return async () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      if (!this.#isClosed) await this.#run(`UNLISTEN ${quoteIdentifier(channel)}`);
    };
  }

  /**
   * Breaks the connection off, so that it is opened again.
   * @param except  the connection is kept if it is this one. Nothing happens either when none is open.
   */
  disconnect(except: pg.ClientBase): void {
    if (this.#client !== null && this.#client !== except) destroyConnection(this.#client);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#healthTimer);
    this.#endPause();
    const client = this.#client;
    this.#client = null;
    if (client === null) return;
    const late = setTimeout(() => destroyConnection(client), SILENCE_MS);
    await client.end().catch(() => {});
    clearTimeout(late);
  }

  /** Does not reject: a broken connection is reopened, and then listens to everything it should. */
  async #run(statement: string): Promise<void> {
    const client = this.#client;
    await this.#mutex.run(() => client?.query(statement).catch(() => {}));
  }

  async #adopt(client: pg.Client): Promise<void> {
    client.on("notification", ({ channel, payload }) => this.#notify(channel, payload ?? ""));
    for (const channel of this.#listeners.keys()) await client.query(`LISTEN ${quoteIdentifier(channel)}`);
    if (this.#isClosed || this.#client !== null) {
      destroyConnection(client);
      return;
    }
    this.#client = client;
    this.#isAway = false;
    client.once("end", () => this.#lost(client));
    clearInterval(this.#healthTimer);
    this.#healthTimer = setInterval(() => void this.#checkHealth(client), HEALTH_CHECK_EVERY_MS).unref();
    this.#endPause();
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client || this.#isClosed) return;
    this.#client = null;
    this.#isFull = false;
    clearInterval(this.#healthTimer);
    void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    const silence = setTimeout(() => this.#setAway(new Error("no answer")), SILENCE_MS).unref();
    for (let n = 0; this.#client === null && !this.#isClosed; n++) {
      if (this.#attempts < ATTEMPTS_AT_ONCE) void this.#attempt();
      const pauseMs = BACKOFF_MS[Math.min(n, BACKOFF_MS.length - 1)]! * (1 - Math.random() / 2);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs).unref();
        this.#endPause = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    clearTimeout(silence);
    if (!this.#isClosed) for (const channel of this.#listeners.keys()) this.#notify(channel, "");
  }

  async #attempt(): Promise<void> {
    this.#attempts++;
    try {
      await this.#adopt(await this.#options.open());
    } catch (error) {
      // A full server is not away: callers that have a connection continue.
      this.#isFull = (error as { code?: string }).code === "53300";
      if (!this.#isFull) this.#setAway(error);
    } finally {
      this.#attempts--;
    }
  }

  #setAway(reason: unknown): void {
    if (this.#isAway || this.#isClosed || this.#client !== null) return;
    this.#isAway = true;
    this.#options.onAway(reason);
  }

  /** Checks the connection, which can be dead without any sign of it. */
  async #checkHealth(client: pg.Client): Promise<void> {
    let isAnswered = false;
    const timer = setTimeout(() => {
      // If this process itself had stalled, the reply has arrived and only has to be read.
      setImmediate(() => setImmediate(() => isAnswered || destroyConnection(client)));
    }, HEALTH_CHECK_LIMIT_MS);
    await this.#run("SELECT 1");
    isAnswered = true;
    clearTimeout(timer);
  }

  #notify(channel: string, payload: string): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener(payload);
  }
}

/** Breaks a connection off; what is in flight on it rejects. */
export function destroyConnection(client: pg.ClientBase): void {
  streamOf(client).destroy();
}

/** The socket, or the TLS stream over it. */
export function streamOf(client: pg.ClientBase): Duplex {
  return connectionOf(client).stream;
}
