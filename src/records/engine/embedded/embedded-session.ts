/**
 * One life of the embedded PostgreSQL: a worker thread and the `pg` client that speaks to it. It is never
 * repaired. When the worker dies, traps, or is ended because a statement ignored its interruption, the
 * session has failed for good, and the engine opens another one on the same directory.
 */

import { readFile } from "node:fs/promises";
import { setFlagsFromString } from "node:v8";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import pg, { type QueryResult } from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { TEST_ENVIRONMENT } from "../../../files/fault-points.ts";
import type { SliceOptions } from "../../../threads/event-loop.ts";
import { VECTORS_IN_MEMORY } from "../../binary-arrays.ts";
import { runBounded } from "../bounded-query.ts";
import { asServiceError } from "../database-errors.ts";
import type { BoundedQuery, BoundedResult, QueryOptions, TransactionConnection } from "../engine.ts";
import { handleLongTexts } from "../protocol-connection.ts";
import { SessionReadings } from "../reading.ts";
import { querySession, querySessionUndecoded, type UndecodedResult } from "../session-query.ts";
import { startDatabaseThread } from "./database-threads.ts";
import { SyncFlags } from "./deferred-sync.ts";
import { Interrupter } from "./interrupter.ts";
import { PreparedStatements } from "./prepared-statements.ts";
import { withSharedMemory } from "./shared-memory.ts";
import { wireTo } from "./wire.ts";
import type { FromWorker, ToWorker, WorkerInput } from "./worker-messages.ts";

const STACK_DEPTH_EXCEEDED = "54001";
/** 1 GiB. */
export const DEFAULT_MEMORY_BYTES = 2 ** 30;
const PROBE_LIMIT_MS = 5_000;
/**
 * PostgreSQL checks the depth of its own stack. The thread's stack must be larger, or deep expressions break
 * the session instead of failing.
 */
const RESOURCE_LIMITS = { stackSizeMb: 64 };

export interface SessionEvents {
  onNotification(channel: string, payload: string): void;
  /** Called once, when the session has failed or was killed; not after `close`. */
  onEnd(): void;
}

export class EmbeddedSession implements TransactionConnection {
  readonly vectors = VECTORS_IN_MEMORY;
  readonly #worker: Worker;
  readonly #client: pg.Client;
  readonly #events: SessionEvents;
  readonly #exited: Promise<void>;
  readonly #readings: SessionReadings;
  readonly #prepared: PreparedStatements;
  readonly #syncFlags: SyncFlags;
  #failure: Error | null = null;
  readonly #interrupter: Interrupter;
  /** Why no statement may run; null while they may. */
  #interruption: Error | null = null;
  /** Aborts with the interruption. */
  #interrupted = new AbortController();
  #ending = false;
  #isInDoubt = false;
  #memoryBytes = 0;
  #writtenBytes = 0;

  private constructor({ worker, unread, allowance, flagsPort, syncFlags }: StartedWorker, events: SessionEvents) {
    this.#worker = worker;
    this.#syncFlags = syncFlags;
    this.#interrupter = new Interrupter(flagsPort, (error) => this.#fail(`the interrupting thread failed: ${String(error)}`));
    this.#events = events;
    const allow = (bytes: number): void => void Atomics.store(allowance, 0, bytes);
    this.#readings = new SessionReadings(allow);
    const onRead = (bytes: Uint8Array): void => {
      const reading = this.#readings.current;
      if (reading !== null && !reading.received(bytes)) allow(0);
    };
    this.#exited = new Promise((resolve) => worker.once("exit", () => resolve()));
    this.#client = new pg.Client({
      stream: () => wireTo(worker, unread, (bytes) => this.#count(bytes), onRead),
      user: "postgres",
      database: "postgres",
      password: "unused",
    });
    this.#prepared = new PreparedStatements(this.#client);
    handleLongTexts(this.#client);
    this.#client.on("notification", ({ channel, payload }) => events.onNotification(channel, payload ?? ""));
    this.#client.on("error", (error) => this.#fail(`the database connection broke: ${error.message}`));
    worker.on("message", (message: FromWorker) => {
      if (typeof message === "object" && "memoryBytes" in message) this.#memoryBytes = message.memoryBytes;
      if (typeof message === "object" && "refusedBytes" in message) this.#readings.current?.refuse(message.refusedBytes);
      if (typeof message === "object" && "fatal" in message) this.#fail(`PostgreSQL stopped: ${message.fatal}`);
    });
    worker.on("error", (error) => this.#fail(`the database thread failed: ${String(error)}`));
    worker.on("exit", () => this.#fail("the database thread ended"));
  }

  /**
   * Only for SessionLife, which sees to it that there is one at a time.
   *
   * @param signal  kills the session when it aborts, now or later.
   * @throws when the session cannot be opened, once its thread has exited.
   */
  static async open(pgDataDirectory: string, maxMemoryBytes: number, events: SessionEvents, signal: AbortSignal): Promise<EmbeddedSession> {
    const started = await startWorker(pgDataDirectory, maxMemoryBytes);
    const session = new EmbeddedSession(started, events);
    const ready = messageOf(started.worker, (message) => message === "ready");
    const kill = (): void => void session.kill(signal.reason as Error);
    if (signal.aborted) kill();
    else signal.addEventListener("abort", kill, { once: true });
    try {
      const connected = Promise.all([ready, session.#interrupter.ready]).then(() => session.#client.connect());
      await Promise.race([connected, session.#rejectOnExit()]);
    } catch (error) {
      await session.kill(error as Error);
      throw signal.aborted ? signal.reason : error;
    }
    return session;
  }

  get failure(): Error | null {
    return this.#failure;
  }

  /** Size of PostgreSQL's linear memory, which only grows. */
  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  /** Whether more than `limit` bytes were sent since it last said so. */
  hasWritten(limit: number): boolean {
    if (this.#writtenBytes <= limit) return false;
    this.#writtenBytes = 0;
    return true;
  }

  /** A statement went too deep into the stack: the session must prove that it is still sound. */
  get isInDoubt(): boolean {
    return this.#isInDoubt;
  }

  /** Ends the session unless it answers a simple question correctly. */
  async probe(): Promise<void> {
    this.#isInDoubt = false;
    const timer = setTimeout(() => this.#fail("it did not answer after an error of stack depth"), PROBE_LIMIT_MS);
    const answer = await this.query<{ n: number }>("SELECT 1 AS n").catch(() => null);
    clearTimeout(timer);
    if (answer?.rows[0]?.n !== 1) this.#fail("it answered wrongly after an error of stack depth");
  }

  query<Row extends object>(text: string, values?: readonly unknown[], options: QueryOptions = {}): Promise<QueryResult<Row>> {
    const slices = this.slices;
    return this.#run(() =>
      querySession(this.#client, this.#readings, text, values, options, { name: this.#nameOf(text, options), slices }),
    );
  }

  /** `query` without what needs no session; see session-query.ts. */
  queryUndecoded<Row extends object>(text: string, values?: readonly unknown[], options: QueryOptions = {}): Promise<UndecodedResult<Row>> {
    return this.#run(() => querySessionUndecoded(this.#client, this.#readings, text, values, options, this.#nameOf(text, options)));
  }

  /** Whether commits from now on may leave their log unsynced. Only between two units. */
  set mayDeferSync(may: boolean) {
    this.#syncFlags.mayDefer = may;
  }

  /** Whether a commit may be lost if the machine stops now. */
  get isUnsynced(): boolean {
    return this.#syncFlags.isPending;
  }

  /** Only between two units. @throws what the session failed with: nobody knows then what is on disk. */
  async sync(): Promise<void> {
    const synced = messageOf(this.#worker, (message) => message === "synced");
    this.#send("sync");
    await Promise.race([synced, this.#exited]);
    if (this.isUnsynced) throw this.#failure ?? new Error("The log was not synced.");
  }

  /** Forgets all prepared statements when there are many. Only between two units. */
  async makeRoomForPrepared(): Promise<void> {
    if (!this.#prepared.isFull) return;
    await this.query("DEALLOCATE ALL");
    this.#prepared.forget();
  }

  /** A DEALLOCATE ALL has run. */
  forgetPrepared(): void {
    this.#prepared.forget();
  }

  queryBounded(query: BoundedQuery): Promise<BoundedResult> {
    return this.#run(() => this.#readings.run(query.budget, false, () => runBounded(this.#client, query, this.slices)));
  }

  /**
   * Switches the session's user, before any query that is sent after this call. Only outside a transaction.
   */
  jail(roleOid: number | null): void {
    this.#send({ jail: roleOid });
  }

  /**
   * Makes the current statement fail at PostgreSQL's next check, and every further one until `resume`, with
   * `reason`. Does not affect a commit.
   */
  interrupt(reason: Error): void {
    if (this.#interruption !== null) return;
    this.#interruption = reason;
    this.#interrupter.interrupt();
    this.#interrupted.abort(reason);
  }

  /** From now on `deafMs` and `computedMs` count, until `resume`. */
  watch(): void {
    if (this.#interruption === null) this.#interrupter.watch();
  }

  /**
   * For how long PostgreSQL has computed since it last looked whether it was interrupted: milliseconds of its
   * thread on a processor, where the system tells. 0 unless the session is watched or interrupted.
   */
  get deafMs(): number {
    return this.#interrupter.deafMs;
  }

  /** For how long PostgreSQL has computed since the session is watched or interrupted: milliseconds as for `deafMs`. */
  get computedMs(): number {
    return this.#interrupter.computedMs;
  }

  /** Accepts statements again. */
  resume(): void {
    this.#interruption = null;
    if (this.#interrupted.signal.aborted) this.#interrupted = new AbortController();
    this.#interrupter.resume();
  }

  /**
   * Ends the thread at once, whatever it runs. What is in flight rejects with `reason`. When this resolves, the
   * thread's memory is free.
   */
  async kill(reason: Error): Promise<void> {
    const isGoing = this.#failure === null;
    this.#failure ??= reason;
    this.#ending = true;
    const exited = this.#endThreads();
    if (isGoing) this.#events.onEnd();
    await exited;
    this.#client.connection.stream.destroy();
  }

  /** Lets PostgreSQL shut down in order (it writes a checkpoint). */
  async close(): Promise<void> {
    this.#ending = true;
    this.#failure ??= new LodestoneError("UNAVAILABLE", "The database is closed.");
    const closed = messageOf(this.#worker, (message) => message === "closed" || (typeof message === "object" && "fatal" in message));
    this.#send("close");
    await Promise.race([closed, this.#exited]);
    await this.#endThreads();
    this.#client.connection.stream.destroy();
  }

  /** Nobody else has the session meanwhile. */
  get slices(): SliceOptions {
    return { signal: this.#interrupted.signal, isHolding: true };
  }

  #nameOf(text: string, { isRepeated }: QueryOptions): string | undefined {
    return isRepeated === true ? this.#prepared.nameOf(text) : undefined;
  }

  async #run<Result>(run: () => Promise<Result>): Promise<Result> {
    const refusal = this.#failure ?? this.#interruption;
    if (refusal !== null) throw refusal;
    try {
      return await run();
    } catch (error) {
      if ((error as { code?: string }).code === STACK_DEPTH_EXCEEDED) this.#isInDoubt = true;
      throw this.#failure ?? asServiceError(error);
    }
  }

  #count(bytes: number): void {
    this.#writtenBytes += bytes;
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #fail(reason: string): void {
    if (this.#ending || this.#failure !== null) return;
    this.#failure = new LodestoneError(
      "UNAVAILABLE",
      "The database had to be restarted. The request may not have been applied: try again.",
      {
        cause: new Error(reason),
      },
    );
    void this.#endThreads().then(() => this.#client.connection.stream.destroy());
    this.#events.onEnd();
  }

  async #endThreads(): Promise<void> {
    await Promise.all([this.#worker.terminate(), this.#interrupter.end()]);
  }

  #rejectOnExit(): Promise<never> {
    return new Promise((_resolve, reject) => {
      this.#worker.once("error", reject);
      this.#worker.once("exit", () => {
        const { cause = this.#failure } = this.#failure ?? {};
        reject(new LodestoneError("UNAVAILABLE", `The embedded database did not start: ${(cause as Error).message}`));
      });
    });
  }
}

interface StartedWorker {
  readonly worker: Worker;
  /** Receives the InterruptFlags. Whoever reads it holds PostgreSQL's memory: never the main thread. */
  readonly flagsPort: MessagePort;
  readonly unread: Int32Array;
  readonly allowance: Int32Array;
  readonly syncFlags: SyncFlags;
}

async function startWorker(pgDataDirectory: string, maxMemoryBytes: number): Promise<StartedWorker> {
  const [unread, allowance] = [new SharedArrayBuffer(4), new SharedArrayBuffer(4)];
  const postgres = await compiledPostgres();
  const { port1: flagsPort, port2: interruptsTo } = new MessageChannel();
  const syncFlags = new SyncFlags();
  const input: WorkerInput = { pgDataDirectory, syncFlags: syncFlags.buffer, unread, allowance, interruptsTo, maxMemoryBytes, postgres };
  // PGlite and Emscripten read process.argv and PostgreSQL's environment variables; the thread gets none of
  // ours.
  const start = (): Worker =>
    new Worker(new URL("./database-worker.js", import.meta.url), {
      workerData: input,
      transferList: [interruptsTo],
      resourceLimits: RESOURCE_LIMITS,
      argv: [],
      env: TEST_ENVIRONMENT,
    });
  const worker = startDatabaseThread(pgDataDirectory, start);
  worker.setMaxListeners(30);
  return { worker, flagsPort, unread: new Int32Array(unread), allowance: new Int32Array(allowance), syncFlags };
}

function messageOf(worker: Worker, isIt: (message: FromWorker) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const listen = (message: FromWorker): void => {
      if (!isIt(message)) return;
      worker.off("message", listen);
      resolve();
    };
    worker.on("message", listen);
  });
}

// PostgreSQL's WebAssembly, compiled once per process. A thread that is reopened (after a statement ran too
// long) reuses the machine code; compiling 9 MB again would take most of the time of reopening.

/**
 * V8 compiles a function again, with optimisations, when it has executed about this many bytes of code. Its own
 * value (1.8 million in Node 20) is made for small functions. PostgreSQL's parser and interpreter of expressions are
 * the opposite: a start alone would optimise them, which takes longer than all that they do in it, and hundreds of
 * megabytes. With this value they are optimised once they have run for about a second.
 */
const POSTGRES_TIERING_BUDGET = 1_000_000_000;
/** What newer versions of V8 have for all modules. */
const TIERING_BUDGET = 13_000_000;

let compiled: Promise<WebAssembly.Module> | null = null;

function compiledPostgres(): Promise<WebAssembly.Module> {
  compiled ??= compile();
  compiled.catch(() => {
    compiled = null;
  });
  return compiled;
}

async function compile(): Promise<WebAssembly.Module> {
  const bytes = await readFile(new URL("pglite.wasm", import.meta.resolve("@electric-sql/pglite")));
  // A module keeps the value that it was compiled under.
  setTieringBudget(POSTGRES_TIERING_BUDGET);
  try {
    return await WebAssembly.compile(withSharedMemory(bytes));
  } finally {
    setTieringBudget(TIERING_BUDGET);
  }
}

function setTieringBudget(executedBytes: number): void {
  setFlagsFromString(`--wasm-tiering-budget=${executedBytes}`);
}
