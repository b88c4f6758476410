/**
 * Ctrl-C for commands that can stop in an orderly way: the first completes the work in flight, the second ends
 * the process at once.
 */

export const INTERRUPTED_EXIT_CODE = 130;

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
