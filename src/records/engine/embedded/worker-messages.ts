/** What travels between the engine and the worker thread that runs PostgreSQL. */

import type { CompiledModules } from "./compiled-modules.ts";

export interface WorkerInput {
  readonly modules: CompiledModules;
  readonly pgDataDirectory: string;
  /**
   * "create": make a new data directory at `pgDataDirectory`, fsync it, and exit. "serve": open it and run
   * protocol messages.
   */
  readonly mode: "create" | "serve";
  /** One int32: bytes sent to the main thread and not consumed there yet. */
  readonly unread: SharedArrayBuffer;
  /** One int32: bytes that may be sent from now on; set again before each statement. */
  readonly allowance: SharedArrayBuffer;
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
}

export type ToWorker =
  /** Frontend protocol bytes. */
  | Uint8Array
  /**
   * Switches the session's user, outside a transaction: to the role (SQL cannot undo it), or with null back
   * to the owner.
   */
  | { readonly jail: number | null }
  | "close";

export type FromWorker =
  /** Backend protocol bytes. */
  | Uint8Array
  /** How a statement is interrupted from outside; sent before "ready". */
  | { readonly interrupts: InterruptFlags }
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
  | "closed";

/**
 * Beyond this many unconsumed bytes the worker waits: a slow reader slows PostgreSQL down instead of filling
 * memory.
 */
export const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
