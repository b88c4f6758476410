/** What travels between the engine and the worker thread that runs PostgreSQL: messages, and interruptions. */
import type { MessagePort } from "node:worker_threads";

export interface WorkerInput {
  /** PostgreSQL, compiled. */
  readonly postgres: WebAssembly.Module;
  readonly pgDataDirectory: string;
  /** One int32: bytes sent to the main thread and not consumed there yet. */
  readonly unread: SharedArrayBuffer;
  /** One int32: bytes that may be sent from now on; set again before each statement. */
  readonly allowance: SharedArrayBuffer;
  /** Of SyncFlags. */
  readonly syncFlags: SharedArrayBuffer;
  /** Gets the InterruptFlags, before "ready" is sent. Its other end is in the interrupting thread. */
  readonly interruptsTo: MessagePort;
  /** Limit of PostgreSQL's linear memory. */
  readonly maxMemoryBytes: number;
}

/** PostgreSQL's own flags, which it checks between rows and pages. */
export interface InterruptFlags {
  /** PostgreSQL's memory, as int32s. */
  readonly memory: Int32Array;
  /** Indexes into `memory`. */
  readonly queryCancelPending: number;
  readonly interruptPending: number;
  /** The folder of the thread that runs PostgreSQL in /proc; null where there is none. */
  readonly threadPath: string | null;
}

export type ToWorker =
  /** Frontend protocol bytes. */
  | Uint8Array
  /**
   * Switches the session's user, outside a transaction: to the role (SQL cannot undo it), or with null back
   * to the owner.
   */
  | { readonly jail: number | null }
  /** Do the sync that was put off; answered with "synced". */
  | "sync"
  | "close";

export type FromWorker =
  /** Backend protocol bytes. */
  | Uint8Array
  | "ready"
  /** Size of PostgreSQL's linear memory, sent when it has grown. */
  | { readonly memoryBytes: number }
  /**
   * A row exceeded the allowance; with it the statement would have sent this many bytes. That row and those
   * after it are not sent, and the statement is cancelled.
   */
  | { readonly refusedBytes: number }
  /**
   * PostgreSQL is in an unknown state (WASM trap, PANIC, exit): the worker must be ended and the directory
   * opened again.
   */
  | { readonly fatal: string }
  | "synced"
  | "closed";

/**
 * Beyond this many unconsumed bytes the worker waits: a slow reader slows PostgreSQL down instead of filling
 * memory.
 */
export const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/**
 * Asks the statement that PostgreSQL is computing to end with an error, as a signal would on a server.
 *
 * May be called from any thread. PostgreSQL sees the request at the next row or page. A request that comes
 * while nothing is computed is forgotten when the next statement is read.
 */
export function interruptStatement({ memory, queryCancelPending, interruptPending }: InterruptFlags): void {
  Atomics.store(memory, queryCancelPending, 1);
  Atomics.store(memory, interruptPending, 1);
}

/** In memory of their own, which can be transferred. */
export function joinedBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
