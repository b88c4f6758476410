/**
 * Starts the worker of a shard: a thread of Node (Bun, Deno), or a Web Worker. Its program is inside the library, so that no bundler has to find a file; a page
 * whose Content-Security-Policy forbids that gives the address of the same file (init's `workerUrl`).
 */
import { LodestoneError } from "../errors.ts";
import { nodeModule } from "./node-modules.ts";
import type { ShardReply } from "./shard-messages.ts";
import { SHARD_WORKER_SOURCE } from "./shard-worker-source.js";
import { requestedInit } from "./wasm-module.ts";

/** What both kinds of worker are reduced to. */
export interface Transport {
  post(message: unknown, transfer: ArrayBuffer[]): void;
  /** Keeps the process alive, or does not. */
  hold(isBusy: boolean): void;
  terminate(): Promise<void>;
}

export interface TransportEvents {
  receive(reply: ShardReply): void;
  /** The worker is gone. */
  crash(why: string): void;
}

/** @throws {LodestoneError} UNAVAILABLE, saying what this runtime lacks. */
export async function startTransport(events: TransportEvents): Promise<Transport> {
  const threads = nodeModule("node:worker_threads");
  const hasWebWorker = typeof Worker === "function";
  // A page that is given Node's modules as well (Electron) still runs its workers as a page does; one without workers (jsdom) is run by Node.
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
      // A process that has nothing else to do would end before the thread has, and leave whoever awaits this unanswered.
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

/** Its program says so: what is posted before a worker listens is kept by the browser, but an error would go unheard. */
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
