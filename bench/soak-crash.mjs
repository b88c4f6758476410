/**
 * `npm run soak:crash -- --kills 200 --seed 1 --clients 16`: kills a real server again and again while
 * clients work, and checks everything they saw. Exit code 1 when anything acknowledged was lost, reappeared,
 * went backwards or was half done.
 */
import { crashRun } from "../test/reliability/crash-run.ts";
import { readOptions } from "./read-options.mjs";

const values = readOptions(import.meta.url, {
  kills: { type: "string", default: "200" },
  seed: { type: "string", default: "1" },
  clients: { type: "string", default: "16" },
});
const startedMs = performance.now();
const report = await crashRun({
  kills: Number(values.kills),
  seed: Number(values.seed),
  clients: Number(values.clients),
  onCycle: (line) => console.log(line),
});
const { faults, unexpected, ...numbers } = report;
const seconds = Math.round((performance.now() - startedMs) / 1000);
console.log(JSON.stringify({ ...numbers, faults: faults.length, unexpected: unexpected.length, seconds }, null, 2));
for (const { kind, key, message } of faults.slice(0, 20)) console.log(`FAULT ${kind} (${key}): ${message}`);
for (const message of unexpected.slice(0, 20)) console.log(`UNEXPECTED ${message}`);
process.exitCode = faults.length + unexpected.length > 0 || report.kills < Number(values.kills) ? 1 : 0;
