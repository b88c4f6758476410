/**
 * Preloaded into a server (`node --import`) by bench/slices.mjs: the CPU time of its main thread between two
 * passages of the event loop, from the scheduler of Linux. Unlike wall-clock time it does not depend on
 * what else the machine does. SIGUSR2 writes the longest since the last one, in milliseconds, to the file that
 * LODESTONE_SLICES names.
 */
import { openSync, readSync, writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const file = process.env.LODESTONE_SLICES;
if (isMainThread && file !== undefined) {
  const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`, "r");
  const buffer = Buffer.alloc(100);
  const cpuMs = () => Number(buffer.toString("latin1", 0, readSync(schedstat, buffer, 0, 100, 0)).split(" ")[0]) / 1e6;
  let last = cpuMs();
  let longest = 0;
  setInterval(() => {
    longest = Math.max(longest, cpuMs() - last);
    last = cpuMs();
  }, 1).unref();
  process.on("SIGUSR2", () => {
    writeFileSync(file, String(longest));
    longest = 0;
    last = cpuMs();
  });
}
