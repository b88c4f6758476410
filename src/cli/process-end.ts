/** How commands end: when they are interrupted, and whatever still hangs. */
import { endDatabaseThreads } from "../records/engine/embedded/database-threads.ts";

export const INTERRUPTED_EXIT_CODE = 130;

/** Ctrl-C, orderly: the first completes the work in flight, the second ends the process at once. */
export function onInterrupt(message: string): { readonly signal: AbortSignal; readonly dispose: () => void } {
  const controller = new AbortController();
  const listener = () => {
    if (controller.signal.aborted) process.exit(INTERRUPTED_EXIT_CODE);
    process.stderr.write(`\n${message}\n`);
    controller.abort();
  };
  process.on("SIGINT", listener).on("SIGTERM", listener);
  return { signal: controller.signal, dispose: () => process.off("SIGINT", listener).off("SIGTERM", listener) };
}

const THREADS_LIMIT_MS = 2_000;

/**
 * Ends the process. `process.exit` waits for its threads; one whose system call does not return (a disk that is away)
 * would hold it for ever, so then the kernel ends the process.
 */
export async function endProcess(code: 0 | 1): Promise<never> {
  if (!(await endDatabaseThreads(THREADS_LIMIT_MS))) process.kill(process.pid, "SIGKILL");
  return process.exit(code);
}
