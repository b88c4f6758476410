/**
 * At most one database thread per directory in this process. PostgreSQL itself lets a second one in, and
 * committed rows are lost; the lock of the data directory keeps out other processes only. A directory is taken
 * when its thread is made and free again when the thread has exited, which a call of `terminate` does not mean:
 * a thread in a system call that hangs does not end before the call does.
 */
import { realpathSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { LodestoneError } from "../../../errors/lodestone-error.ts";

/** By the directory's real path. */
const threads = new Map<string, Worker>();

/**
 * Makes the thread.
 * @throws {LodestoneError} UNAVAILABLE: the directory's earlier thread has not exited.
 */
export function startDatabaseThread(pgDataDirectory: string, start: () => Worker): Worker {
  const path = realpathSync(pgDataDirectory);
  if (threads.has(path)) {
    throw new LodestoneError("UNAVAILABLE", "Another thread of this process still has the database open. Two would destroy data.");
  }
  const worker = start();
  threads.set(path, worker);
  worker.once("exit", () => threads.delete(path));
  return worker;
}

/**
 * Ends all database threads, before the process exits: its exit would wait for a thread that hangs.
 * @returns false when one still runs after `limitMs`.
 */
export async function endDatabaseThreads(limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([Promise.all([...threads.values()].map((worker) => worker.terminate())), late]);
  clearTimeout(timer);
  return threads.size === 0;
}
