/**
 * Runs three servers on one PostgreSQL with a synchronous standby, behind nginx, through faults, and checks
 * the history of all clients.
 *
 * Usage: npm run soak:cluster -- [--minutes 60 --clients 24 --outage 60 --seed 1 --parts --replicas 50
 * --pages 5]
 * With --parts the servers hold search parts; with --replicas and --pages the clients read so many replicas, too, in this process
 * and in Chromium. Needs PostgreSQL 15 or later and nginx on this machine. Exit code 1 on any fault.
 */
import { clusterRun } from "../test/cluster/cluster-run.ts";
import { pathOf } from "../test/support/finders.ts";
import { readOptions } from "./read-options.mjs";

const values = readOptions(import.meta.url, {
  minutes: { type: "string", default: "60" },
  clients: { type: "string", default: "24" },
  outage: { type: "string", default: "60" },
  seed: { type: "string", default: "1" },
  parts: { type: "boolean", default: false },
  replicas: { type: "string", default: "0" },
  pages: { type: "string", default: "0" },
});
const [programs, pages] = [Number(values.replicas), Number(values.pages)];
const report = await clusterRun({
  postgresBin: pathOf("postgresql"),
  nginxBin: pathOf("nginx"),
  rounds: Number.POSITIVE_INFINITY,
  minutes: Number(values.minutes),
  outageSeconds: Number(values.outage),
  calmOperations: 2_000,
  clients: Number(values.clients),
  seed: Number(values.seed),
  parts: values.parts,
  ...(programs + pages > 0 && { replicas: { programs, pages, ...(pages > 0 && { chromium: pathOf("chromium") }) } }),
  onEvent: (line) => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`),
});
const { faults, unexpected, events: _events, ...numbers } = report;
console.log(JSON.stringify({ ...numbers, faults: faults.length }, null, 2));
for (const { kind, key, message } of faults.slice(0, 20)) console.log(`FAULT ${kind} (${key}): ${message}`);
for (const message of unexpected.slice(0, 20)) console.log(`UNEXPECTED ${message}`);
process.exitCode = faults.length + unexpected.length > 0 ? 1 : 0;
