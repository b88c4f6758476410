/**
 * The end of the process, whatever still hangs. `process.exit` waits for the process's threads; one whose system call
 * does not return (a disk that is away) would hold it for ever, so then the kernel ends the process.
 */
import { endDatabaseThreads } from "../records/engine/embedded/database-threads.ts";

const THREADS_LIMIT_MS = 2_000;

export async function endProcess(code: 0 | 1): Promise<never> {
  if (!(await endDatabaseThreads(THREADS_LIMIT_MS))) process.kill(process.pid, "SIGKILL");
  return process.exit(code);
}
