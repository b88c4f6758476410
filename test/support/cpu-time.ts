/**
 * A setup file of vitest under LODESTONE_TEST_COST=1, on Linux: the CPU seconds of a test file in its process, and in the processes that
 * it started and that have ended, for `cost-reporter.ts`. Not what shared servers do for it. The clock says little on a machine that
 * does other things too.
 */
import { readFileSync } from "node:fs";
import { afterAll } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    cpuSeconds?: number;
  }
}

/** The kernel's unit in /proc, wherever Node runs. */
const TICKS_PER_SECOND = 100;

function cpuSeconds(): number {
  // The name, in parentheses, may contain spaces. After it: utime, stime, cutime and cstime are the fields 14 to 17 of the line.
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
}

// A process of its own has worked for this file alone.
const before = process.env.LODESTONE_TESTS === "quick" ? cpuSeconds() : 0;

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the pattern.
afterAll(({}, file) => {
  file.meta.cpuSeconds = cpuSeconds() - before;
});
