/**
 * The owner's side of one worker: requests are sent in order, and each gets a promise. The same for
 * worker_threads and Web Workers.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { PendingCalls, rebuildError } from "../threads/worker-calls.ts";
import type { AbortSignalLike } from "./abort-signal.ts";
import { nodeModule } from "./node-modules.ts";
import type { ShardReply, ShardRequest, ShardResults } from "./shard-messages.ts";
import { SHARD_WORKER_SOURCE } from "./shard-worker-source.js";
import { requestedInit } from "./wasm-module.ts";

/** How a request is made. */
export interface Asked {
  /** Rejects at once with its reason. A request that has not been sent is dropped. */
  signal?: AbortSignalLike | undefined;
  /** Of whom the worker is held for; see `hold`. */
  turn?: object | undefined;
}

interface Waiting {
  turn: object | undefined;
  /** undefined: the worker is held from here on. */
  sent: { number: number; request: ShardRequest; transfer: ArrayBuffer[] } | undefined;
}

/**
 * Limit of unanswered requests in a worker: enough to keep it busy. The rest waits here, where it can still
 * be cancelled.
 */
const MAX_SENT = 4;

export class ShardClient {
  readonly #pending = new PendingCalls();
  #transport: Transport | undefined;
  /** In call order. */
  readonly #waiting: Waiting[] = [];
  #sent = 0;
  /** For whom the worker is held. */
  #turn: object | undefined;
  #failure: Error | undefined;

  /** @throws {LodestoneError} UNAVAILABLE where workers do not exist. */
  static async start(): Promise<ShardClient> {
    const client = new ShardClient();
    client.#transport = await startTransport({ receive: (reply) => client.#receive(reply), crash: (why) => client.#crash(why) });
    return client;
  }

  /**
   * @param transfer  buffers that are transferred, not copied.
   */
  call<T extends ShardRequest["type"]>(
    request: Extract<ShardRequest, { type: T }>,
    transfer: ArrayBuffer[] = [],
    { signal, turn }: Asked = {},
  ): Promise<ShardResults[T]> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { number, answer } = this.#pending.begin<ShardResults[T]>();
    const held = turn === undefined ? -1 : this.#waiting.map((waiting) => waiting.turn).lastIndexOf(turn);
    // Behind the others of its turn; before all if that has come.
    const place = held !== -1 ? held + 1 : turn === undefined ? this.#waiting.length : 0;
    this.#waiting.splice(place, 0, { turn, sent: { number, request, transfer } });
    this.#send();
    if (signal === undefined) return answer;
    const onAbort = () => this.#giveUp(number, signal.reason);
    signal.addEventListener("abort", onAbort);
    return answer.finally(() => signal.removeEventListener("abort", onAbort));
  }

  /**
   * Keeps the worker's state for a caller that asks several times: when all requests made so far have been sent, only
   * those of this turn are, until `release`. The rest waits.
   */
  hold(turn: object): void {
    this.#waiting.push({ turn, sent: undefined });
    this.#send();
  }

  release(turn: object): void {
    if (this.#turn === turn) this.#turn = undefined;
    // After a failure elsewhere its turn may not have come here.
    for (const waiting of this.#waiting) if (waiting.turn === turn) waiting.turn = undefined;
    this.#send();
  }

  /** Ends the worker. Pending requests are rejected. */
  async stop(): Promise<void> {
    this.#fail(new TypeError("The index was freed; create another one."));
    await this.#transport?.terminate();
  }

  #send(): void {
    while (this.#sent < MAX_SENT && this.#waiting.length > 0) {
      if (this.#turn !== undefined && this.#waiting[0]!.turn !== this.#turn) return;
      const { turn, sent } = this.#waiting.shift()!;
      this.#turn = turn;
      if (sent === undefined) continue;
      const { number, request, transfer } = sent;
      this.#sent++;
      this.#transport?.hold(true);
      this.#transport?.post({ number, request }, transfer);
    }
  }

  #giveUp(number: number, reason: unknown): void {
    const place = this.#waiting.findIndex(({ sent }) => sent?.number === number);
    if (place !== -1) this.#waiting.splice(place, 1);
    this.#pending.reject(number, reason);
  }

  #receive({ number, value, error }: ShardReply): void {
    this.#sent--;
    this.#send();
    // Not after it was stopped: the process must stay alive until the awaited end of the worker, even if late
    // replies arrive first.
    if (this.#sent === 0 && this.#failure === undefined) this.#transport?.hold(false);
    if (error === undefined) this.#pending.resolve(number, value);
    else this.#pending.reject(number, rebuildError(error));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#pending.rejectAll(this.#failure);
    this.#waiting.length = 0;
  }

  #crash(why: string): void {
    this.#fail(new LodestoneError("UNAVAILABLE", `A worker of the index ended (${why}); its rows are gone. Create the index again.`));
  }
}

// Starts the worker of a shard: a thread in Node (Bun, Deno), or a Web Worker. Its program is inside the
// library, so bundlers need not find a file. A page whose Content-Security-Policy forbids that sets the URL
// of the same file (init's `workerUrl`).

/** The common interface of both kinds of worker. */
export interface Transport {
  post(message: unknown, transfer: ArrayBuffer[]): void;
  /** Sets whether the worker keeps the process alive. */
  hold(isBusy: boolean): void;
  terminate(): Promise<void>;
}

export interface TransportEvents {
  receive(reply: ShardReply): void;
  /** Called when the worker has ended. */
  crash(why: string): void;
}

/** @throws {LodestoneError} UNAVAILABLE, naming what this runtime lacks. */
async function startTransport(events: TransportEvents): Promise<Transport> {
  const threads = nodeModule("node:worker_threads");
  const hasWebWorker = typeof Worker === "function";
  // A page that also has Node's modules (Electron) runs its workers as a page does. One without workers
  // (jsdom) uses Node's.
  const isPage = typeof document !== "undefined" && hasWebWorker;
  if (threads !== undefined && !isPage) return startThread(threads, events);
  if (hasWebWorker) return startWebWorker(events);
  throw unavailable("this runtime has neither Worker nor node:worker_threads");
}

function startThread({ Worker }: typeof import("node:worker_threads"), events: TransportEvents): Transport {
  let worker: InstanceType<typeof Worker>;
  try {
    worker = new Worker(SHARD_WORKER_SOURCE, { eval: true });
  } catch (error) {
    throw unavailable(`node:worker_threads starts none here (${messageOf(error)})`, error);
  }
  worker.unref();
  worker.on("message", events.receive);
  worker.on("error", (error) => events.crash(String(error)));
  worker.on("exit", (code) => events.crash(`exit code ${code}`));
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    hold: (isBusy) => (isBusy ? worker.ref() : worker.unref()),
    terminate: async () => {
      // Otherwise a process with nothing else to do would end before the thread has, and this promise would
      // never settle.
      worker.ref();
      await worker.terminate();
    },
  };
}

async function startWebWorker(events: TransportEvents): Promise<Transport> {
  const { workerUrl } = requestedInit();
  const inside = workerUrl === undefined ? URL.createObjectURL(new Blob([SHARD_WORKER_SOURCE], { type: "text/javascript" })) : undefined;
  let worker: Worker | undefined;
  try {
    worker = new Worker(inside ?? String(workerUrl), { type: "module" });
    await hasStarted(worker);
  } catch (error) {
    worker?.terminate();
    const why = messageOf(error) || "the browser does not say why";
    throw unavailable(
      inside === undefined
        ? `a worker did not start from ${String(workerUrl)} (${why}); init's workerUrl has to be the address of lodestone/shard-worker.js, on the page's own origin and allowed by the page's Content-Security-Policy (worker-src)`
        : `a worker did not start (${why}); the page's Content-Security-Policy has to allow "worker-src blob:", or "worker-src 'self'" with lodestone/shard-worker.js served by you and init({ workerUrl })`,
      error,
    );
  } finally {
    if (inside !== undefined) URL.revokeObjectURL(inside);
  }
  const started = worker;
  started.addEventListener("message", (event: MessageEvent<ShardReply>) => events.receive(event.data));
  started.addEventListener("error", (event) => events.crash(event.message));
  return {
    post: (message, transfer) => started.postMessage(message, transfer),
    hold: () => {},
    terminate: async () => started.terminate(),
  };
}

/**
 * The program reports that it runs. The browser keeps messages posted before a worker listens, but nobody
 * would hear of an error.
 */
function hasStarted(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.addEventListener("message", () => resolve(), { once: true });
    worker.addEventListener("error", (event) => reject(new Error(event.message ?? "")), { once: true });
  });
}

function unavailable(why: string, cause?: unknown): LodestoneError {
  return new LodestoneError("UNAVAILABLE", `ParallelVectorIndex needs workers, and ${why}. VectorIndex needs none.`, { cause });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
