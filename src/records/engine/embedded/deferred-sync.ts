/**
 * Group commit, in the database's thread: the fsync of the log that ends a commit is put off while the main thread allows it
 * (unit-loop.ts), and done once for several commits.
 *
 * Nobody is answered while one is pending; that is the main thread's part. This one's is the rule of every write-ahead log: PostgreSQL
 * believes that its log is on disk, and may change other files that rely on it. So before anything else in the directory is
 * written, renamed, removed, cut or synced, the pending sync is done. Only a file that grows by empty pages may do so before.
 */
import { fsyncSync } from "node:fs";
import { crashPoint } from "../../../files/fault-points.ts";

/** Two int32 that both threads see. */
export class SyncFlags {
  readonly buffer: SharedArrayBuffer;
  readonly #flags: Int32Array;

  constructor(buffer = new SharedArrayBuffer(8)) {
    this.buffer = buffer;
    this.#flags = new Int32Array(buffer);
  }

  /** Whether a sync may be put off. Set between two statements. */
  get mayDefer(): boolean {
    return Atomics.load(this.#flags, 0) === 1;
  }

  set mayDefer(may: boolean) {
    Atomics.store(this.#flags, 0, may ? 1 : 0);
  }

  /** Whether one was, and has not been done yet. */
  get isPending(): boolean {
    return Atomics.load(this.#flags, 1) === 1;
  }

  set isPending(is: boolean) {
    Atomics.store(this.#flags, 1, is ? 1 : 0);
  }
}

export class DeferredSync {
  readonly #flags: SyncFlags;
  readonly #onFailure: (error: unknown) => void;
  /** Of the file of the log that is to be synced. */
  #descriptor: number | undefined;

  /** @param onFailure  what was committed may not be on disk, and a second try may say that it is: nothing may run any more. */
  constructor(flags: SyncFlags, onFailure: (error: unknown) => void) {
    this.#flags = flags;
    this.#onFailure = onFailure;
  }

  /** @returns whether the sync of this file of the log was put off. */
  defers(descriptor: number): boolean {
    if (!this.#flags.mayDefer) return false;
    if (this.#descriptor !== descriptor) this.settle();
    this.#descriptor = descriptor;
    this.#flags.isPending = true;
    crashPoint("sync-deferred");
    return true;
  }

  get isPending(): boolean {
    return this.#descriptor !== undefined;
  }

  isPendingFor(descriptor: number | undefined): boolean {
    return this.#descriptor !== undefined && this.#descriptor === descriptor;
  }

  /** Does what was put off. */
  settle(): void {
    if (this.#descriptor === undefined) return;
    try {
      crashPoint("before-sync");
      fsyncSync(this.#descriptor);
      crashPoint("after-sync");
    } catch (error) {
      if (!isWithoutSync(error)) {
        this.#onFailure(error);
        throw error;
      }
    }
    this.#descriptor = undefined;
    this.#flags.isPending = false;
  }
}

/** EINVAL, EPERM (Windows directories): the file system has no fsync for this kind of file. */
export function isWithoutSync(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "EINVAL" || code === "EPERM" || code === "EISDIR";
}
