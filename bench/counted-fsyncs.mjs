/**
 * Preloaded into a server, and so into each of its threads (`node --import`): every fsync of the embedded engine, which calls
 * `fsyncSync`, is counted and takes longer, as on a slow disk. The thread waits, as it would for the disk.
 */
import fs, { appendFileSync, statSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/** Arguments of node. @param file  gets a byte for each fsync. @param ms  how much longer each takes. */
export function countingFsyncs(file, ms) {
  const own = new URL(import.meta.url);
  // Not by the environment: the database's thread has none.
  own.search = new URLSearchParams({ file, ms }).toString();
  return ["--import", own.href];
}

export const fsyncsIn = (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

const asked = new URL(import.meta.url).searchParams;
const file = asked.get("file");
if (file !== null) {
  const ms = Number(asked.get("ms"));
  const never = new Int32Array(new SharedArrayBuffer(4));
  const { fsyncSync } = fs;
  fs.fsyncSync = (descriptor) => {
    fsyncSync(descriptor);
    if (ms > 0) Atomics.wait(never, 0, 0, ms);
    appendFileSync(file, ".");
  };
  syncBuiltinESMExports();
}
