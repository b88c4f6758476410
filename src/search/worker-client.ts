/** The main thread's side of the search worker: sends calls, and starts a new worker when one dies. */
import { type TransferListItem, Worker } from "node:worker_threads";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { PendingCalls, rebuildError } from "../threads/worker-calls.ts";
import type { EngineEvents, SearchEngine } from "./search-engine.ts";
import type { CallMessage, EngineCalls, Method, ReplyMessage, WorkerOptions } from "./search-messages.ts";

/** Delay before a crashed worker is replaced. It doubles up to the maximum while crashes continue. */
const FIRST_RESTART_MS = 100;
const LAST_RESTART_MS = 10_000;

/** Fewer searches wait until all requests that have arrived have been read: waking the thread costs more than that. */
const LEAST_AT_ONCE = 4;

const MIB = 2 ** 20;
/**
 * Working memory of the thread besides its indexes: answers of a hundred queries, a snapshot being read, a
 * batch of changes.
 */
const WORK_MEMORY_MIB = 512;
/** Arrays and maps that grow exist twice for a moment. */
const GROWTH = 1.5;

/**
 * Record texts are on the thread's own heap. V8's default limit (2 or 4 GiB) may be below the memory limit of
 * the indexes. Reaching it would end the thread, and the next one would read the same texts and end as well.
 * So the heap limit is set above the index limit, and the largest branch gives way first (index-room.ts).
 * Node's --max-old-space-size takes precedence.
 */
export function startSearchWorker(workerData: WorkerOptions = {}): Worker {
  const { maxIndexBytes } = workerData;
  const resourceLimits =
    maxIndexBytes === undefined ? {} : { maxOldGenerationSizeMb: Math.ceil((GROWTH * maxIndexBytes) / MIB) + WORK_MEMORY_MIB };
  return new Worker(new URL("./search-worker.js", import.meta.url), { name: "lodestone-search", workerData, resourceLimits });
}

export class WorkerClient implements SearchEngine {
  #worker: Worker | undefined;
  /** Searches that go to the worker in one message: waking a thread takes longer than many a search. */
  #searches: CallMessage[] = [];
  readonly #pending = new PendingCalls();
  readonly #events: EngineEvents;
  #isClosed = false;
  #restartMs = FIRST_RESTART_MS;
  #restartTimer: NodeJS.Timeout | undefined;
  readonly #startWorker: () => Worker;

  constructor(events: EngineEvents, startWorker: () => Worker) {
    this.#startWorker = startWorker;
    this.#events = events;
    this.#start();
  }

  /**
   * @throws {LodestoneError} UNAVAILABLE when the worker is gone; otherwise whatever the call itself rejects
   *   with.
   */
  call<M extends Method>(
    method: M,
    argument: Parameters<EngineCalls[M]>[0],
    transfer: readonly TransferListItem[] = [],
  ): Promise<ReturnType<EngineCalls[M]>> {
    const worker = this.#worker;
    if (worker === undefined) return Promise.reject(unavailable(this.#isClosed ? "is closed" : "is starting again after a fault"));
    const { number, answer } = this.#pending.begin<ReturnType<EngineCalls[M]>>();
    const message: CallMessage = { number, method, argument };
    if (method === "search") {
      // Until the requests that have arrived meanwhile have been read.
      if (this.#searches.length === 0) setImmediate(() => this.#sendSearches());
      this.#searches.push(message);
      // Pipelining: half of all go at once. Otherwise callers who wait for their answers make the two threads take turns.
      const waiting = this.#searches.length;
      if (waiting >= LEAST_AT_ONCE && 2 * waiting >= this.#pending.size) this.#sendSearches();
    } else {
      this.#sendSearches();
      this.#post(worker, [message], transfer);
    }
    return answer;
  }

  #sendSearches(): void {
    const messages = this.#searches;
    this.#searches = [];
    if (this.#worker !== undefined && messages.length > 0) this.#post(this.#worker, messages);
  }

  #post(worker: Worker, messages: readonly CallMessage[], transfer: readonly TransferListItem[] = []): void {
    try {
      worker.postMessage(messages, transfer);
    } catch (error) {
      // An argument cannot be cloned: only its call fails.
      if (messages.length === 1) this.#pending.reject(messages[0]!.number, error);
      else for (const message of messages) this.#post(worker, [message]);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#restartTimer);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#rejectAll("is closed");
    await worker?.terminate();
  }

  #start(): void {
    const worker = this.#startWorker();
    this.#worker = worker;
    worker.on("message", (replies: readonly ReplyMessage[]) => {
      for (const reply of replies) this.#receive(reply);
    });
    worker.on("error", (error) => this.#crashed(worker, error instanceof Error ? error : new Error(String(error))));
    worker.on("exit", (code) => this.#crashed(worker, new Error(`The search worker ended with code ${code}.`)));
  }

  #receive(reply: ReplyMessage): void {
    this.#restartMs = FIRST_RESTART_MS;
    if ("result" in reply) this.#pending.resolve(reply.number, reply.result);
    else this.#pending.reject(reply.number, rebuildError(reply.error));
  }

  #crashed(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#rejectAll("failed and is starting again");
    this.#events.onLost(error);
    this.#restartTimer = setTimeout(() => {
      if (this.#isClosed) return;
      this.#start();
      this.#events.onRestart();
    }, this.#restartMs);
    this.#restartMs = Math.min(2 * this.#restartMs, LAST_RESTART_MS);
  }

  #rejectAll(what: string): void {
    this.#searches = [];
    this.#pending.rejectAll(unavailable(what));
  }
}

function unavailable(what: string): LodestoneError {
  return new LodestoneError("UNAVAILABLE", `The search store ${what}; try again in a moment.`, { retryAfterSeconds: 1 });
}
