/**
 * The embedded engine. There is one PostgreSQL session, so units of work (a statement, a transaction) run one
 * at a time. Units of one caller run in the order they came; callers take turns.
 *
 * Invariants: at most one unit is on the session; a unit that exceeded its time limit or lost its session
 * never reports success; the units behind it run on the session that is opened next, on the same directory.
 */
import type { QueryResult } from "pg";
import { LodestoneError } from "../../../errors.ts";
import { quoteIdentifier } from "../../identifiers.ts";
import { timedOut } from "../database-errors.ts";
import { CLOSE_LIMIT_MS, type Engine, type QueryOptions, type TransactionConnection, type TransactionOptions } from "../engine.ts";
import { isReading } from "../engine-for-caller.ts";
import { runTransaction } from "../run-transaction.ts";
import { backupTo } from "./backup.ts";
import { removeTemporaryFiles, walBytesOf } from "./data-directory.ts";
import { DEFAULT_MEMORY_BYTES, EmbeddedSession } from "./embedded-session.ts";
import { confinedRoleOid, leaveJail, sessionState, verifyJail } from "./jail.ts";
import { Maintenance, type MaintenanceHost } from "./maintenance.ts";
import { type OpenDirectory, openDataDirectory } from "./open-directory.ts";
import { type Turn, withTimeLimit } from "./time-limit.ts";
import { MAKES_WAY, queueUnit, type Unit, type UnitOptions, type Work } from "./unit.ts";
import { TURN_MS, UnitQueue } from "./unit-queue.ts";

export interface EmbeddedEngineOptions {
  readonly dataDir: string;
  readonly statementTimeoutMs: number;
  /** Applies to transactions in a jail. */
  readonly sqlTimeoutMs: number;
  readonly templateDir?: string;
  /** Limit of PostgreSQL's linear memory; default 1 GiB. */
  readonly maxMemoryBytes?: number | undefined;
}

/**
 * A commit is not cancelled by the time limit, since its outcome would be unknown, but it may not hang for
 * ever either.
 */
const COMMIT_LIMIT_MS = 60_000;
/** After this many bytes sent to PostgreSQL, its WAL is checked before the next tick. */
const MAINTENANCE_AFTER_BYTES = 32 * 1024 * 1024;
const MAX_ROLE_OIDS = 10_000;
const REOPEN_PAUSE_MS = 1_000;
/** Share of its memory above which a session is replaced. */
const RENEW_ABOVE_SHARE = 5 / 8;

export class EmbeddedEngine implements Engine {
  readonly kind = "embedded";
  readonly #directory: OpenDirectory;
  readonly #statementTimeoutMs: number;
  readonly #sqlTimeoutMs: number;
  readonly #maxMemoryBytes: number;
  readonly #queue = new UnitQueue<Unit>();
  readonly #listeners = new Map<string, Set<(payload: string) => void>>();
  #session: EmbeddedSession | null = null;
  /** The unit that runs. */
  readonly #turn: Turn = { cut: null };
  #unitStartedAt = 0;
  #draining: Promise<void> | null = null;
  #restTimer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | null = null;
  #lost: LodestoneError | null = null;
  #wasOpen = false;
  #unopenable: { readonly error: LodestoneError; readonly until: number } | null = null;
  #isJailVerified = false;
  /** As it was before any user's statement. */
  #sessionState = "";
  readonly #roleOids = new Map<string, number>();
  #unitsRun = 0;
  #backups = 0;
  readonly #maintenance: Maintenance;

  private constructor(directory: OpenDirectory, options: EmbeddedEngineOptions) {
    this.#directory = directory;
    this.#statementTimeoutMs = options.statementTimeoutMs;
    this.#sqlTimeoutMs = options.sqlTimeoutMs;
    this.#maxMemoryBytes = options.maxMemoryBytes ?? DEFAULT_MEMORY_BYTES;
    this.#maintenance = new Maintenance(this.#maintenanceHost());
  }

  static async open(options: EmbeddedEngineOptions): Promise<EmbeddedEngine> {
    let engine: EmbeddedEngine | undefined;
    const directory = await openDataDirectory(options, () => {
      if (engine !== undefined) engine.#onLockLost();
    });
    engine = new EmbeddedEngine(directory, options);
    try {
      await engine.#openSession();
    } catch (error) {
      directory.lock.release();
      throw error;
    }
    return engine;
  }

  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<QueryResult<Row>> {
    const signal = options?.signal;
    const isAbandonable = isReading(text);
    const unit = (session: EmbeddedSession, turn: Turn) =>
      withTimeLimit(session, { limitMs: this.#statementTimeoutMs, abandoned: isAbandonable ? signal : undefined, turn }, () =>
        session.query<Row>(text, values, { ...options, isCommitted: !isAbandonable }),
      );
    return this.#enqueue(unit, { signal, budget: options?.budget });
  }

  transaction<Result>(work: (connection: TransactionConnection) => Promise<Result>, options: TransactionOptions = {}): Promise<Result> {
    const { signal, urgent: isUrgent } = options;
    const timeoutMs = options.timeoutMs ?? (options.jail === undefined ? this.#statementTimeoutMs : this.#sqlTimeoutMs);
    const ending = (options.abandonable ?? options.readOnly === true) ? signal : undefined;
    const unit = async (session: EmbeddedSession, turn: Turn): Promise<Result> => {
      const roleOid = options.jail === undefined ? null : await this.#jailFor(session, options.jail.roleName);
      if (roleOid !== null) session.jail(roleOid);
      try {
        return await runTransaction(session, work, options, {
          body: (run) => withTimeLimit(session, { limitMs: timeoutMs, abandoned: ending, turn }, run),
          commit: (run) => withTimeLimit(session, { limitMs: COMMIT_LIMIT_MS }, run),
        });
      } finally {
        if (roleOid !== null && session.failure === null) await leaveJail(session, this.#listeners.keys(), this.#sessionState);
      }
    };
    return this.#enqueue(unit, { isUrgent, signal, budget: options.budget });
  }

  async listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    const isNew = !this.#listeners.has(channel);
    listeners.add(listener);
    this.#listeners.set(channel, listeners);
    if (isNew) await this.query(`LISTEN ${quoteIdentifier(channel)}`);
    return async () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      if (this.#closing === null) await this.query(`UNLISTEN ${quoteIdentifier(channel)}`);
    };
  }

  async backup(directory: string): Promise<void> {
    if (this.#backups > 0) throw new LodestoneError("CONFLICT", "A backup is already in progress.");
    await this.#maintenance.finished();
    await backupTo(
      {
        unit: (work) => this.#enqueue((session) => work(session)),
        hold: (isHeld) => {
          this.#backups += isHeld ? 1 : -1;
        },
      },
      this.#directory.dataDir,
      directory,
    );
  }

  guardConnections(): void {}

  walBytes(): Promise<number> {
    return walBytesOf(this.#directory.dataDir);
  }

  get shared(): this {
    return this;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const timer = setTimeout(() => {
      this.#lost = new LodestoneError("UNAVAILABLE", "The database was closed before the statement ran; nothing was changed.");
      void this.#session?.kill(this.#lost);
    }, CLOSE_LIMIT_MS);
    clearTimeout(this.#restTimer);
    this.#queue.hurry();
    this.#draining ??= this.#drain();
    await this.#maintenance.stop();
    await this.#draining;
    clearTimeout(timer);
    await this.#session?.close();
    this.#session = null;
    this.#directory.lock.release();
  }

  #enqueue<Result>(work: Work<Result>, options?: UnitOptions): Promise<Result> {
    const refusal = this.#lost ?? (this.#closing === null ? null : new LodestoneError("UNAVAILABLE", "The database is closed."));
    if (refusal !== null) return Promise.reject(refusal);
    const counted: Work<Result> = (session, turn) => work(session, turn).finally(() => this.#unitsRun++);
    return this.#push(counted, options);
  }

  #push<Result>(work: Work<Result>, options?: UnitOptions): Promise<Result> {
    const result = queueUnit(this.#queue, work, options);
    this.#draining ??= this.#drain();
    this.#makeWay();
    return result;
  }

  /**
   * Cuts short the unit that runs when it is the others' turn. The unit waits for another turn, or, if it has
   * had as long as SQL over HTTP may take, is ended for good.
   */
  #makeWay(): void {
    if (this.#turn.cut === null) return;
    if (this.#queue.mustMakeWay) this.#turn.cut(MAKES_WAY);
    else if (performance.now() - this.#unitStartedAt >= this.#sqlTimeoutMs && this.#queue.othersWait)
      this.#turn.cut(timedOut(this.#sqlTimeoutMs));
  }

  /**
   * Maintenance queues like everybody else but has no time limit: a vacuum that is cut off was for nothing.
   */
  #maintenanceHost(): MaintenanceHost {
    const engine = this;
    return {
      get waiting() {
        return engine.#queue.size;
      },
      get unitsRun() {
        return engine.#unitsRun;
      },
      get isHeld() {
        return engine.#backups > 0;
      },
      query: (text, values, options) => engine.#push((session) => session.query(text, values, options)),
    };
  }

  async #jailFor(session: EmbeddedSession, roleName: string): Promise<number> {
    if (!this.#isJailVerified) {
      await verifyJail(session);
      for (const channel of this.#listeners.keys()) await session.query(`LISTEN ${quoteIdentifier(channel)}`);
      this.#isJailVerified = true;
    }
    // Role names are random and never reused, so an oid found once stays right.
    let oid = this.#roleOids.get(roleName);
    if (oid === undefined) {
      oid = await confinedRoleOid(session, roleName);
      if (this.#roleOids.size >= MAX_ROLE_OIDS) this.#roleOids.clear();
      this.#roleOids.set(roleName, oid);
    }
    return oid;
  }

  async #drain(): Promise<void> {
    await null; // so that #draining is set before the first unit may finish
    for (let unit = this.#queue.shift(); unit !== undefined; unit = this.#queue.shift()) {
      if (this.#lost !== null) {
        unit.refuse(this.#lost);
        continue;
      }
      const unavailable = await this.#requireSession();
      if (unavailable !== null) {
        unit.refuse(unavailable);
        continue;
      }
      const session = this.#session!;
      const startedAt = performance.now();
      this.#unitStartedAt = startedAt;
      const turnTimer = setTimeout(() => this.#makeWay(), TURN_MS + 1);
      const longTurnTimer = setTimeout(() => this.#makeWay(), this.#sqlTimeoutMs + 1);
      await unit.run(session, this.#turn);
      clearTimeout(turnTimer);
      clearTimeout(longTurnTimer);
      this.#queue.charge(unit, performance.now() - startedAt);
      await this.#lookAfter(session);
    }
    this.#draining = null;
    if (this.#queue.size > 0) this.#goOnAfterRest();
  }

  /** Continues after the rest: every waiting unit belongs to a caller who rests. */
  #goOnAfterRest(): void {
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => {
      this.#draining ??= this.#drain();
    }, this.#queue.restMs);
  }

  /**
   * Opens a session if there is none. If the directory cannot be opened (the disk is full), not every request
   * tries again.
   */
  async #requireSession(): Promise<LodestoneError | null> {
    if (this.#session !== null && this.#session.failure === null) return null;
    if (this.#unopenable !== null && performance.now() < this.#unopenable.until) return this.#unopenable.error;
    try {
      await this.#openSession();
      this.#unopenable = null;
      return null;
    } catch (error) {
      const reason = error instanceof LodestoneError ? error.message : String((error as Error).message);
      const unavailable = new LodestoneError(
        "UNAVAILABLE",
        `The database cannot be opened at the moment: ${reason}. Nothing was changed.`,
        {
          cause: error,
          retryAfterSeconds: 1,
        },
      );
      this.#unopenable = { error: unavailable, until: performance.now() + REOPEN_PAUSE_MS };
      return unavailable;
    }
  }

  /**
   * Between units: a checkpoint when much was written, and a new thread when memory has grown (WebAssembly
   * never gives memory back).
   */
  async #lookAfter(session: EmbeddedSession): Promise<void> {
    if (session.isInDoubt && session.failure === null) await session.probe();
    if (session.failure !== null && this.#closing === null && this.#lost === null) await this.#requireSession(); // so that the next need not wait
    if (session.failure !== null) return;
    if (session.takeWrittenBytes(MAINTENANCE_AFTER_BYTES)) this.#maintenance.look();
    if (session.memoryBytes < RENEW_ABOVE_SHARE * this.#maxMemoryBytes || this.#backups > 0) return;
    await session.close();
    this.#session = null;
  }

  async #openSession(): Promise<void> {
    // The thread of a failed session must be gone before another one may touch the directory.
    const isReopening = this.#wasOpen;
    await this.#session?.kill(this.#session.failure!);
    this.#session = null;
    removeTemporaryFiles(this.#directory.dataDir);
    const session = await EmbeddedSession.open(this.#directory.pgDataDirectory, this.#maxMemoryBytes, {
      onNotification: (channel, payload) => this.#notify(channel, payload),
      onFailure: () => {},
    });
    for (const channel of this.#listeners.keys()) await session.query(`LISTEN ${quoteIdentifier(channel)}`);
    this.#sessionState = await sessionState(session);
    this.#session = session;
    this.#wasOpen = true;
    // Notifications sent while there was no session are lost: each listener looks for itself.
    if (isReopening) for (const channel of this.#listeners.keys()) this.#notify(channel, "");
  }

  #notify(channel: string, payload: string): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener(payload);
  }

  #onLockLost(): void {
    this.#lost = new LodestoneError(
      "UNAVAILABLE",
      `Another process took over the data directory ${this.#directory.dataDir}: this one has stopped using it. Restart it.`,
    );
    void this.#session?.kill(this.#lost);
  }
}
