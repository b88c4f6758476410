/**
 * How long a test may take: a generous limit, because no test depends on the speed of the machine. It only ends what hangs.
 * LODESTONE_TEST_PATIENCE multiplies it.
 */
import { setTimeout as sleep } from "node:timers/promises";

export const LIMIT_MS = 600_000 * Number(process.env.LODESTONE_TEST_PATIENCE ?? 1);
/** How long pages and polls wait for one thing: less, so that the failure says for what, not only that the test took too long. */
export const WAIT_MS = LIMIT_MS / 2;

/** Asks until it is so. An error of `isSo` ends it at once. @param what  for the message, after "in vain:". */
export async function until(what: string | (() => string), isSo: () => boolean | Promise<boolean>, everyMs = 20): Promise<void> {
  const endMs = performance.now() + LIMIT_MS;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`waited ${LIMIT_MS / 1000} s in vain: ${typeof what === "string" ? what : what()}`);
    await sleep(everyMs);
  }
}

/** The promise's value. @throws what `describe` says if it takes longer than the limit. */
export async function within<Value>(promise: Promise<Value>, describe: () => string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${LIMIT_MS / 1000} s in vain: ${describe()}`)), LIMIT_MS);
  });
  try {
    return await Promise.race([promise, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}
