/**
 * Preloaded into a server, and so into each of its threads (`node --import`): every fsync of the embedded engine, which calls
 * `fsyncSync`, is counted and takes longer, as on a slow disk. The thread waits, as it would for the disk.
 */
import fs, { appendFileSync, fsyncSync, statSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";

const { BENCH_FSYNC_COUNT: countedIn, BENCH_FSYNC_MS: extraMs } = process.env;

/** Arguments of node, and variables of its environment. @param file  gets a byte for each fsync. @param ms  how much longer each takes. */
export const countingFsyncs = (file, ms) => ({
  nodeArgs: ["--import", fileURLToPath(import.meta.url)],
  env: { BENCH_FSYNC_COUNT: file, BENCH_FSYNC_MS: String(ms) },
});

export const fsyncsIn = (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

if (countedIn !== undefined) {
  const never = new Int32Array(new SharedArrayBuffer(4));
  fs.fsyncSync = (descriptor) => {
    fsyncSync(descriptor);
    if (Number(extraMs) > 0) Atomics.wait(never, 0, 0, Number(extraMs));
    appendFileSync(countedIn, ".");
  };
  syncBuiltinESMExports();
}
