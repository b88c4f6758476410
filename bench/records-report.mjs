/** What the benches of the record store print: medians with their spread, and on what they were measured. */
import { cpus } from "node:os";

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** @param rows `[name, milliseconds[]]` */
export function report(title, rows) {
  console.log(`${title} — Node ${process.version}, ${cpus()[0]?.model ?? "unknown CPU"}`);
  for (const [name, ms] of rows) {
    const text = [median(ms), Math.min(...ms), Math.max(...ms)].map((value) => value.toFixed(2)).join(" / ");
    console.log(`  ${name.padEnd(44)} ${text} ms (median / best / worst of ${ms.length})`);
  }
}
