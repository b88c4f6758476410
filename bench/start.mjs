/**
 * How long is a server unavailable when it is restarted? Fills a table, waits for its snapshot, stops the
 * server, and starts it twice: from the snapshot, and without it, from the records alone. Prints rows per
 * second, the time until /readyz is 200, the CPU time that took and the peak of the process's memory (Linux).
 *
 * Usage: npm run build && npm run bench:start [-- --rows 1000000 --dimension 128 --database-url postgres://…
 * --keep]. The database of a --database-url gets a branch bench:main, which is dropped at the end; with --keep
 * it stays, and the next run with --keep (also of bench:parts) uses its records.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startProgress } from "../dist/cli/progress.js";
import { describeMachine } from "./machine.mjs";
import { readOptions } from "./read-options.mjs";
import { DATABASE, start, tablePath } from "./served.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "1000000" },
  dimension: { type: "string", default: "128" },
  keep: { type: "boolean", default: false },
  "database-url": { type: "string" },
});
const rows = Number(options.rows);
const dimension = Number(options.dimension);
/** Rows inserted by one statement: well within the time limit of SQL over HTTP on the embedded database. */
const STATEMENT_ROWS = Math.max(1, Math.min(20_000, Math.floor(1_000_000 / dimension)));

const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-start-"));
const args = options["database-url"] === undefined ? [] : ["--database-url", options["database-url"]];
let server;
try {
  server = await start({ directory, args });
  await untilReady();
  let filledMs;
  if (!options.keep || (await server.send("GET", "/readyz")).rows !== rows) {
    await server.send("PUT", DATABASE, {});
    await server.send("PUT", tablePath("t"), { columns: [{ name: "v", type: "vector", vector: { dimension } }] });
    filledMs = await fill();
    await untilReady();
  }
  const { cpu, cores, node } = describeMachine();
  console.log(`${cpu}, ${cores} cores, Node ${node}`);
  const result = {
    rows,
    dimension,
    engine: options["database-url"] === undefined ? "embedded" : "server",
    ...(filledMs === undefined ? {} : { "rows/s stored": Math.round(rows / (filledMs / 1000)) }),
  };
  // The first snapshot is begun within seconds after everything was read.
  while (!hasSnapshot()) await sleep(200);
  const stopMs = await timed(() => server.stop());
  result["stop s"] = seconds(stopMs);
  await started("from the snapshot", result);
  await server.stop();
  rmSync(join(directory, "search"), { recursive: true, force: true });
  await started("from the records", result);
  if (!options.keep) await server.send("DELETE", DATABASE);
  for (const [name, value] of Object.entries(result)) console.log(`${name.padEnd(28)} ${value}`);
} finally {
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
}

/** @returns ms until all rows were stored and searchable. */
async function fill() {
  const progress = startProgress(rows, 0);
  const ms = await timed(async () => {
    for (let first = 0; first < rows; first += STATEMENT_ROWS) {
      const last = Math.min(rows, first + STATEMENT_ROWS) - 1;
      // The condition on n makes each row's array its own.
      await server.send("POST", `${DATABASE}/sql`, {
        statement: `INSERT INTO "t" (id, v) SELECT 'r' || n, ARRAY(SELECT random() - 0.5 FROM generate_series(1, $1::int) AS i WHERE i + n > n) FROM generate_series($2::int, $3::int) AS n`,
        params: [dimension, first, last],
      });
      progress.update(last + 1, last + 1);
    }
  });
  progress.stop();
  return ms;
}

async function started(how, result) {
  const ms = await timed(async () => {
    server = await start({ directory, args });
    await untilReady();
  });
  const cpuMs = cpuMsOf(server.pid);
  const query = Array.from({ length: dimension }, (_, i) => Math.sin(i + 1));
  const { totalCount } = await server.send("POST", `${tablePath("t")}/vectorSearch`, { column: "v", queryVector: query, size: 10 });
  if (totalCount !== rows) throw new Error(`${totalCount} of ${rows} rows were found when it was started ${how}.`);
  result[`ready ${how}, s`] = seconds(ms);
  const peak = /VmHWM:\s+(\d+) kB/.exec(readProcess(server.pid, "status"))?.[1];
  if (cpuMs !== undefined) result[`CPU ${how}, s`] = seconds(cpuMs);
  if (peak !== undefined) result[`peak ${how}, MB`] = Math.round(Number(peak) / 1024);
}

async function untilReady() {
  const isReady = () =>
    server.send("GET", "/readyz").then(
      () => true,
      () => false,
    );
  while (!(await isReady())) await sleep(50);
}

function hasSnapshot() {
  const folder = join(directory, "search");
  return existsSync(folder) && readdirSync(folder).some((file) => file.endsWith(".snapshot"));
}

async function timed(work) {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** User and system time of all its threads; a tick is 10 ms (Linux). */
function cpuMsOf(pid) {
  // utime and stime are fields 14 and 15; the second is a name in parentheses, which may hold spaces.
  const fields = readProcess(pid, "stat")
    .replace(/^.*\) /, "")
    .split(" ");
  return fields.length < 13 ? undefined : (Number(fields[11]) + Number(fields[12])) * 10;
}

function readProcess(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

function seconds(ms) {
  return Number((ms / 1000).toFixed(1));
}
