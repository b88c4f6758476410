/**
 * The worker thread that runs PostgreSQL. PGlite gets whole units of the frontend protocol, so nothing
 * interleaves.
 *
 * Invariant: everything is synchronous, so each message is handled to its end before the next one. A `jail`
 * switch therefore takes effect exactly between the units sent before it and those sent after it.
 */
import { readlinkSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { PGlite } from "@electric-sql/pglite";
import { descriptorLimits } from "../../../budget/process-limits.ts";
import { holdPoint } from "../../../files/fault-points.ts";
import { DeferredSync, SyncFlags } from "./deferred-sync.ts";
import { DurableNodeFS } from "./durable-node-fs.ts";
import { Reply, type ReplyPort } from "./reply.ts";
import { withSharedMemory } from "./shared-memory.ts";
import {
  type FromWorker,
  type InterruptFlags,
  interruptStatement,
  MAX_UNREAD_BYTES,
  type ToWorker,
  type WorkerInput,
} from "./worker-messages.ts";

const input = workerData as WorkerInput;
const port = parentPort!;
const unread = new Int32Array(input.unread);
const allowance = new Int32Array(input.allowance);

/**
 * Exit status of PostgreSQL's own error exit from the main loop; every other exception leaves it in an
 * unknown state.
 */
const MAIN_LONGJMP_STATUS = 100;
const OWNER_OID = 10; // the bootstrap superuser
const SECURITY_LOCAL_USERID_CHANGE = 1;
const SYNC = 0x53;
const QUERY = 0x51;
const TERMINATE = 0x58;
const PAGE_BYTES = 65_536;

/**
 * PGlite's own parameters without -F (which disables fsync), plus what a small, durable, single-session
 * server needs.
 */
const startParams = [
  ...PGlite.defaultStartParams.filter((parameter) => parameter !== "-F"),
  ...[
    "wal_sync_method=fsync",
    "shared_buffers=16MB",
    `max_files_per_process=${descriptorLimits().databaseFiles}`,
    "log_startup_progress_interval=0",
    "max_wal_size=256MB",
    "temp_file_limit=2GB",
    "timezone=UTC",
    "datestyle=ISO, MDY",
    "track_counts=on",
    "min_wal_size=32MB",
  ].flatMap((setting) => ["-c", setting]),
];

// Beyond it a statement fails with "out of memory" and the session continues. PGlite itself would allow 2
// GiB.
useSharedMemory(Math.floor(input.maxMemoryBytes / PAGE_BYTES));

/** What PostgreSQL said before it stopped; "" while it runs. */
let lastWords = "";

const deferredSync = new DeferredSync(new SyncFlags(input.syncFlags), (error) => stopForGood(`syncing the log: ${String(error)}`));

const openPostgres = (): Promise<PGlite> =>
  PGlite.create({
    fs: new DurableNodeFS(input.pgDataDirectory, deferredSync),
    startParams,
    pgliteWasmModule: input.postgres,
    onStderr: (line: string) => {
      // What PostgreSQL says before it stops is the only explanation there is.
      if (/\b(?:PANIC|FATAL):/.test(line)) lastWords = line.replace(/^.*?\b(PANIC|FATAL):\s*/, "");
      return false;
    },
  }).catch((error: unknown) => {
    throw new Error(lastWords === "" ? String(error) : lastWords);
  });

interface PostgresModule {
  _PostgresMainLoopOnce(): void;
  _SetUserIdAndSecContext(userOid: number, context: number): void;
  _IsTransactionBlock(): number;
  /** Addresses of PostgreSQL's own flags. */
  readonly _QueryCancelPending: number;
  readonly _InterruptPending: number;
  HEAPU8: Uint8Array;
}

const post = (message: FromWorker, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer);

await serve();

async function serve(): Promise<void> {
  holdPoint("session-opening");
  const db = await openPostgres();
  const module = db.Module as unknown as PostgresModule;
  watchForTraps(module);
  const interrupts = interruptFlags(module);
  input.interruptsTo.postMessage(interrupts);
  const replyPort: ReplyPort = {
    allowance: () => Atomics.load(allowance, 0),
    refused: (refusedBytes) => {
      post({ refusedBytes });
      interruptStatement(interrupts);
    },
    post: (bytes) => {
      Atomics.add(unread, 0, bytes.length);
      post(bytes, [bytes.buffer]);
      for (let held = Atomics.load(unread, 0); held > MAX_UNREAD_BYTES; held = Atomics.load(unread, 0)) Atomics.wait(unread, 0, held);
    },
  };
  const run = (unit: Uint8Array): void => {
    const reply = new Reply(replyPort);
    void db.execProtocolRawStream(unit, { syncToFs: false, onRawData: (bytes) => reply.append(bytes) });
    reply.send();
    if (module.HEAPU8.length === memoryBytes) return;
    memoryBytes = module.HEAPU8.length;
    post({ memoryBytes });
  };
  let memoryBytes = 0;
  let pending: Uint8Array = new Uint8Array(0);
  let started = false; // the start-up packet has no type byte
  port.on("message", (message: ToWorker) => {
    if (message === "close") {
      holdPoint("session-closing");
      db.close().then(
        () => post("closed"),
        (error) => post({ fatal: `closing: ${String(error)}` }),
      );
    } else if (message === "sync") {
      deferredSync.settle();
      post("synced");
    } else if (!(message instanceof Uint8Array)) {
      if (module._IsTransactionBlock() !== 0) post({ fatal: "the session's user cannot be switched inside a transaction" });
      else if (message.jail === null) module._SetUserIdAndSecContext(OWNER_OID, 0);
      else module._SetUserIdAndSecContext(message.jail, SECURITY_LOCAL_USERID_CHANGE);
    } else {
      pending = pending.length === 0 ? message : Buffer.concat([pending, message]);
      const view = new DataView(pending.buffer, pending.byteOffset, pending.byteLength);
      if (!started) {
        const length = pending.length >= 4 ? view.getInt32(0) : Number.POSITIVE_INFINITY;
        if (pending.length < length) return;
        const reply = new Reply(replyPort);
        reply.append(db.execProtocolRawSync(pending.slice(0, length)));
        reply.send();
        pending = pending.subarray(length);
        started = true;
        return;
      }
      let at = 0;
      let end = 0; // only whole units up to Sync or Query are run
      while (pending.length - at >= 5) {
        const length = view.getInt32(at + 1) + 1;
        if (pending.length - at < length) break;
        const type = pending[at];
        at += length;
        if (type === SYNC || type === QUERY || type === TERMINATE) end = at;
      }
      if (end === 0) return;
      const unit = pending.slice(0, end);
      pending = pending.slice(end);
      if (unit[0] !== TERMINATE) run(unit);
    }
  });
  post("ready");
}

/**
 * The flags are static data of PostgreSQL: they stay at the same address while the thread lives, in the part
 * of its memory that exists from the beginning.
 */
function interruptFlags({ HEAPU8, _QueryCancelPending, _InterruptPending }: PostgresModule): InterruptFlags {
  return {
    memory: new Int32Array(HEAPU8.buffer),
    queryCancelPending: _QueryCancelPending >> 2,
    interruptPending: _InterruptPending >> 2,
    threadPath: threadPath(),
  };
}

function threadPath(): string | null {
  try {
    return `/proc/${readlinkSync("/proc/thread-self")}`;
  } catch {
    return null; // not Linux
  }
}

/** Not even the rest of this unit may run. Waits here until the main thread ends this worker. */
function stopForGood(fatal: string): void {
  post({ fatal });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/**
 * PGlite swallows every exception of the main loop and continues, which is safe only after PostgreSQL's own
 * error exit.
 */
function watchForTraps(module: PostgresModule): void {
  const original = module._PostgresMainLoopOnce.bind(module);
  module._PostgresMainLoopOnce = () => {
    try {
      original();
    } catch (error) {
      if ((error as { status?: number }).status !== MAIN_LONGJMP_STATUS) {
        stopForGood(lastWords === "" ? String(error) : lastWords);
      }
      throw error;
    }
  };
}

/**
 * PGlite has no option for this. WebAssembly allows a lower maximum than the one that the module declares.
 * The libraries that PostgreSQL loads, from its own file system, must also be marked for shared memory.
 */
function useSharedMemory(maximumPages: number): void {
  const { Memory, Module } = WebAssembly;
  WebAssembly.Memory = class extends Memory {
    constructor(descriptor: WebAssembly.MemoryDescriptor) {
      super({ ...descriptor, maximum: Math.min(descriptor.maximum ?? maximumPages, maximumPages), shared: true });
    }
  };
  WebAssembly.Module = new Proxy(Module, { construct: (target, [bytes]: [Int8Array]) => new target(withSharedMemory(bytes)) });
}
