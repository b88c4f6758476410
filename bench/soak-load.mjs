/**
 * `npm run soak:load -- --minutes 10 --clients 64 [--database-url postgres://…]`: a mixed load on a real
 * server, checked afterwards. Meanwhile it prints the server's memory, its longest event-loop pause and the
 * lag of searches. Exit code 1 on any fault, any 5xx, or a pause above 200 ms.
 */
import { loadRun } from "../test/reliability/load-run.ts";
import { startServer } from "../test/support/server.ts";
import { readOptions } from "./read-options.mjs";

const PAUSE_LIMIT_MS = 200;

const values = readOptions(import.meta.url, {
  minutes: { type: "string", default: "10" },
  clients: { type: "string", default: "64" },
  seed: { type: "string", default: "1" },
  "database-url": { type: "string" },
});
const databaseUrl = values["database-url"];
const server = await startServer({
  env: { LODESTONE_LOG_LEVEL: "warn", LODESTONE_STATEMENT_TIMEOUT: undefined },
  ...(databaseUrl === undefined ? {} : { databaseUrl }),
});
try {
  const report = await loadRun({
    server,
    clients: Number(values.clients),
    duration: { seconds: Number(values.minutes) * 60 },
    lagLimitMs: 5_000,
    seed: Number(values.seed),
    sampleEveryMs: 10_000,
    onSample: ({ seconds, operations, residentMegabytes, eventLoopPauseMs, lagP99Ms }) =>
      console.log(
        `${seconds} s: ${operations} operations, ${residentMegabytes} MB, longest pause ${eventLoopPauseMs} ms, lag p99 ${lagP99Ms} ms`,
      ),
  });
  const { samples, faults, unexpected, ...numbers } = report;
  const longestPauseMs = Math.max(...samples.map((sample) => sample.eventLoopPauseMs));
  // The first fifth is growth to the working size. What still grows after that grows without end.
  const settled = samples.slice(Math.floor(samples.length / 5));
  const memory = { settledMegabytes: settled[0]?.residentMegabytes, endMegabytes: settled.at(-1)?.residentMegabytes };
  console.log(
    JSON.stringify({ ...numbers, longestPauseMs, ...memory, lagP99Ms: settled.at(-1)?.lagP99Ms, faults: faults.length }, null, 2),
  );
  for (const { kind, key, message } of faults.slice(0, 20)) console.log(`FAULT ${kind} (${key}): ${message}`);
  for (const message of unexpected.slice(0, 20)) console.log(`UNEXPECTED ${message}`);
  process.exitCode = faults.length + unexpected.length > 0 || longestPauseMs > PAUSE_LIMIT_MS ? 1 : 0;
} finally {
  await server.stop();
}
