/**
 * The embedded engine. There is one PostgreSQL session, so units of work (a statement, a transaction) run one
 * at a time. Units of one caller run in the order they came; callers take turns.
 *
 * Invariants: at most one unit is on the session; a unit that exceeded its time limit or lost its session
 * never reports success; the units behind it run on the session that is opened next, on the same directory.
 */

import type { QueryResult } from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { VECTORS_IN_MEMORY } from "../../binary-arrays.ts";
import { quoteIdentifier } from "../../identifiers.ts";
import {
  CLOSE_LIMIT_MS,
  type Engine,
  type EngineHealth,
  type QueryOptions,
  type TransactionConnection,
  type TransactionOptions,
} from "../engine.ts";
import { isReading } from "../engine-for-caller.ts";
import { decodeTexts, hasLongText, withEncodedTexts } from "../long-texts.ts";
import { runTransaction } from "../run-transaction.ts";
import { backupTo } from "./backup.ts";
import { type OpenDirectory, openDataDirectory, removeTemporaryFiles, walBytesOf, wasShutDown } from "./data-directory.ts";
import { DiskReserve, type DiskReserveOptions, makeRoom } from "./disk-reserve.ts";
import { DEFAULT_MEMORY_BYTES, EmbeddedSession } from "./embedded-session.ts";
import { confinedRoleOid, leaveJail, sessionState, verifyJail } from "./jail.ts";
import { Maintenance, type MaintenanceHost, type MaintenanceOptions } from "./maintenance.ts";
import { SessionLife, type SessionLifeOptions, type SessionOpener } from "./session-life.ts";
import { COMMIT_LIMIT_MS, type Turn, withTimeLimit } from "./time-limit.ts";
import type { UnitOptions, Work } from "./unit.ts";
import { UnitLoop } from "./unit-loop.ts";

export interface EmbeddedEngineOptions extends SessionLifeOptions, MaintenanceOptions, DiskReserveOptions {
  readonly dataDir: string;
  readonly statementTimeoutMs: number;
  /** Applies to transactions in a jail. */
  readonly sqlTimeoutMs: number;
  /** Gets words for each step of the opening when it begins. */
  readonly onStep?: ((words: string) => void) | undefined;
  /** Limit of PostgreSQL's linear memory; default 1 GiB. */
  readonly maxMemoryBytes?: number | undefined;
}

/** After this many bytes sent to PostgreSQL, its WAL is checked before the next tick. */
const MAINTENANCE_AFTER_BYTES = 32 * 1024 * 1024;
const MAX_ROLE_OIDS = 10_000;
/** Characters and bytes of the parameters of a statement that takes some milliseconds. */
const SHORT_VALUES_LENGTH = 2 ** 18;
/** Share of its memory above which a session is replaced. */
const RENEW_ABOVE_SHARE = 5 / 8;

async function recoveryInWords(dataDir: string): Promise<string> {
  return `recovering the database, which was not shut down, from up to ${Math.ceil((await walBytesOf(dataDir)) / 2 ** 20)} MiB of its log`;
}

export class EmbeddedEngine implements Engine {
  readonly vectors = VECTORS_IN_MEMORY;
  readonly isExclusive = true;
  readonly timelineSql = "(SELECT timeline_id FROM pg_control_checkpoint())";
  readonly #directory: OpenDirectory;
  readonly #statementTimeoutMs: number;
  readonly #sqlTimeoutMs: number;
  readonly #maxMemoryBytes: number;
  readonly #listeners = new Map<string, Set<(payload: string) => void>>();
  readonly #life: SessionLife<EmbeddedSession>;
  readonly #units: UnitLoop;
  readonly #disk: DiskReserve;
  readonly #maintenance: Maintenance;
  #isJailVerified = false;
  /** As it was before any user's statement. */
  #sessionState = "";
  readonly #roleOids = new Map<string, number>();
  #unitsRun = 0;
  #backups = 0;

  private constructor(directory: OpenDirectory, options: EmbeddedEngineOptions) {
    this.#directory = directory;
    this.#statementTimeoutMs = options.statementTimeoutMs;
    this.#sqlTimeoutMs = options.sqlTimeoutMs;
    this.#maxMemoryBytes = options.maxMemoryBytes ?? DEFAULT_MEMORY_BYTES;
    this.#disk = new DiskReserve(directory.dataDir, options);
    // Work waits for a session that is opened again as long as for a statement of others.
    this.#life = new SessionLife(this.#opener(), { ...options, replacePatienceMs: options.replacePatienceMs ?? options.sqlTimeoutMs });
    this.#units = new UnitLoop(
      {
        session: () => this.#life.session(),
        writeRefusal: () => this.#disk.look(),
        lookAfter: (session) => this.#lookAfter(session),
      },
      options.sqlTimeoutMs,
    );
    this.#maintenance = new Maintenance(this.#maintenanceHost(), options);
  }

  static async open(options: EmbeddedEngineOptions): Promise<EmbeddedEngine> {
    const lockLost = new AbortController();
    const directory = await openDataDirectory(options, () => lockLost.abort());
    options.onStep?.(wasShutDown(directory.pgDataDirectory) ? "opening the database" : await recoveryInWords(directory.dataDir));
    const engine = new EmbeddedEngine(directory, options);
    if (lockLost.signal.aborted) engine.#onLockLost();
    else lockLost.signal.addEventListener("abort", () => engine.#onLockLost(), { once: true });
    try {
      await engine.#life.session();
    } catch (error) {
      await engine.close();
      throw error;
    }
    engine.#maintenance.start();
    engine.#disk.start();
    return engine;
  }

  async query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    options?: QueryOptions,
  ): Promise<QueryResult<Row>> {
    const signal = options?.signal;
    const isAbandonable = isReading(text);
    const abandoned = isAbandonable ? signal : undefined;
    const isShort = options?.isRepeated === true && areShort(values ?? []);
    // Long texts are encoded and decoded in slices, beside everybody's: nobody waits for the session meanwhile.
    const bound = values !== undefined && hasLongText(values) ? await withEncodedTexts(values, { signal }) : values;
    const unit = (session: EmbeddedSession, turn: Turn) =>
      withTimeLimit(session, { limitMs: this.#statementTimeoutMs, abandoned, turn }, () =>
        session.queryUndecoded<Row>(text, bound, { ...options, isCommitted: !isAbandonable }),
      );
    const unitOptions = { signal, budget: options?.budget, writes: !isAbandonable && options?.isUpkeep !== true, isShort };
    const { result, isUndecoded } = await this.#enqueue(unit, unitOptions);
    if (isUndecoded) await decodeTexts(result.rows, { signal: abandoned });
    return result;
  }

  transaction<Result>(work: (connection: TransactionConnection) => Promise<Result>, options: TransactionOptions = {}): Promise<Result> {
    const { signal, urgent: isUrgent } = options;
    const timeoutMs = options.timeoutMs ?? (options.jail === undefined ? this.#statementTimeoutMs : this.#sqlTimeoutMs);
    const leavesNothing = options.abandonable ?? options.readOnly === true;
    const ending = leavesNothing ? signal : undefined;
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
    return this.#enqueue(unit, { isUrgent, signal, budget: options.budget, writes: !leavesNothing && options.isUpkeep !== true });
  }

  async listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    const isNew = !this.#listeners.has(channel);
    listeners.add(listener);
    this.#listeners.set(channel, listeners);
    if (isNew) await this.query(`LISTEN ${quoteIdentifier(channel)}`, [], { isUpkeep: true });
    return async () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(channel) !== listeners) return;
      this.#listeners.delete(channel);
      if (this.#life.refusal === null) await this.query(`UNLISTEN ${quoteIdentifier(channel)}`, [], { isUpkeep: true });
    };
  }

  async backup(directory: string, signal?: AbortSignal): Promise<void> {
    if (this.#backups > 0) throw new LodestoneError("CONFLICT", "A backup is already in progress.");
    const refusal = this.#disk.look();
    if (refusal !== null) throw refusal;
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
      signal,
    );
  }

  guardConnections(): void {}

  walBytes(): Promise<number> {
    return walBytesOf(this.#directory.dataDir);
  }

  health(): EngineHealth {
    return { outage: this.#life.outage, writeRefusal: this.#disk.refusal?.message ?? null };
  }

  get callers(): number {
    return this.#units.callers;
  }

  get shared(): this {
    return this;
  }

  async close(): Promise<void> {
    const finish = async (): Promise<void> => {
      await Promise.all([this.#units.finish(), this.#maintenance.stop(), this.#disk.stop()]);
    };
    await this.#life.close(finish, CLOSE_LIMIT_MS);
    this.#directory.lock.release();
  }

  #enqueue<Result>(work: Work<Result>, options?: UnitOptions): Promise<Result> {
    const { refusal } = this.#life;
    if (refusal !== null) return Promise.reject(refusal);
    const counted: Work<Result> = (session, turn) => work(session, turn).finally(() => this.#unitsRun++);
    return this.#units.push(counted, options);
  }

  /**
   * Maintenance queues like everybody else but has no time limit: a vacuum that is cut off was for nothing.
   */
  #maintenanceHost(): MaintenanceHost {
    const engine = this;
    return {
      get waiting() {
        return engine.#units.waiting;
      },
      get unitsRun() {
        return engine.#unitsRun;
      },
      get isHeld() {
        return engine.#backups > 0;
      },
      query: (text, values, options) =>
        engine.#units.push((session) => session.query(text, values, options), { writes: !isReading(text) && options?.isUpkeep !== true }),
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

  /**
   * Between units: a checkpoint when much was written, and a new thread when memory has grown (WebAssembly
   * never gives memory back).
   */
  async #lookAfter(session: EmbeddedSession): Promise<void> {
    if (session.isInDoubt && session.failure === null) await session.probe();
    if (session.failure !== null) return;
    await session.makeRoomForPrepared();
    if (session.hasWritten(MAINTENANCE_AFTER_BYTES)) this.#maintenance.look();
    if (session.memoryBytes >= RENEW_ABOVE_SHARE * this.#maxMemoryBytes && this.#backups === 0) this.#life.renew();
  }

  #opener(): SessionOpener<EmbeddedSession> {
    return {
      open: async (signal, onEnd) => {
        makeRoom(this.#directory.dataDir);
        removeTemporaryFiles(this.#directory.dataDir);
        const onNotification = (channel: string, payload: string): void => this.#notify(channel, payload);
        const events = { onNotification, onEnd };
        const session = await EmbeddedSession.open(this.#directory.pgDataDirectory, this.#maxMemoryBytes, events, signal);
        try {
          for (const channel of this.#listeners.keys()) await session.query(`LISTEN ${quoteIdentifier(channel)}`);
          this.#sessionState = await sessionState(session);
        } catch (error) {
          await session.kill(error as Error);
          throw error;
        }
        return session;
      },
      // Notifications sent while there was no session are lost: each listener looks for itself.
      onReplaced: () => {
        for (const channel of this.#listeners.keys()) this.#notify(channel, "");
      },
    };
  }

  #notify(channel: string, payload: string): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener(payload);
  }

  #onLockLost(): void {
    const sentence = "Another process took over the data directory: this one has stopped using it. Restart it.";
    this.#life.lose(new LodestoneError("UNAVAILABLE", sentence));
  }
}

function areShort(values: readonly unknown[]): boolean {
  let length = 0;
  const count = (value: unknown): void => {
    length += typeof value === "string" || value instanceof Uint8Array ? value.length : 8;
  };
  for (const value of values) {
    if (Array.isArray(value)) value.forEach(count);
    else count(value);
  }
  return length <= SHORT_VALUES_LENGTH;
}
