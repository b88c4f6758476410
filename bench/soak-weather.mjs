/**
 * `npm run soak:weather -- [--minutes 60 --clients 16 --seed 1 --bad 10 --event "full disk" --embedded-only, --postgresql-only]`: two servers, one on the
 * embedded database and one on PostgreSQL, in slow weather: a tenth of a processor, a slow and a failing disk, a full disk, no
 * descriptors, little memory, kills at random moments and during starts, an outage of the database. Every answer is checked, and
 * the records and indexes are audited. Exit code 1 on anything lost or wrong, an end of a process that nobody asked for, or one
 * that was asked for and did not come.
 *
 * Needs root (a small file system, a memory control group; without them what is left out is said), strace and PostgreSQL.
 */
import { weatherRun } from "../test/reliability/weather-run.ts";
import { pathOf } from "../test/support/finders.ts";
import { readOptions } from "./read-options.mjs";

const values = readOptions(import.meta.url, {
  minutes: { type: "string", default: "60" },
  clients: { type: "string", default: "16" },
  seed: { type: "string", default: "1" },
  bad: { type: "string", default: "10" },
  event: { type: "string", multiple: true },
  "embedded-only": { type: "boolean", default: false },
  "postgresql-only": { type: "boolean", default: false },
});
const engines = [
  ...(values["postgresql-only"] ? [] : [{ name: "embedded" }]),
  ...(values["embedded-only"] ? [] : [{ name: "postgresql", postgresBin: pathOf("postgresql") }]),
];
const runOn = async ({ name, postgresBin }) => {
  const { faults, unexpected, ...numbers } = await weatherRun({
    postgresBin,
    strace: pathOf("strace"),
    rounds: Number.POSITIVE_INFINITY,
    minutes: Number(values.minutes),
    badSeconds: Number(values.bad),
    calmOperations: 1_000,
    // While the server runs a tenth of the time.
    lagLimitMs: 120_000,
    clients: Number(values.clients),
    seed: Number(values.seed),
    ...(values.event === undefined ? {} : { events: values.event }),
    onEvent: (line) => console.log(`${new Date().toISOString().slice(11, 19)} ${name}: ${line}`),
  });
  console.log(JSON.stringify({ engine: name, ...numbers, faults: faults.length, unexpected: unexpected.length }, null, 2));
  for (const { kind, key, message } of faults.slice(0, 20)) console.log(`FAULT ${name} ${kind} (${key}): ${message}`);
  for (const message of unexpected.slice(0, 20)) console.log(`UNEXPECTED ${name} ${message}`);
  return faults.length + unexpected.length;
};
// One that breaks off must not hide what the other found.
const ends = await Promise.allSettled(engines.map(runOn));
for (const end of ends) if (end.status === "rejected") console.log(end.reason);
process.exitCode = ends.every((end) => end.status === "fulfilled" && end.value === 0) ? 0 : 1;
