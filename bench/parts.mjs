/**
 * What do search parts cost, and are their answers right? One server that holds everything, and servers that
 * hold a part each, run on one PostgreSQL. First all answers are compared bit for bit (three similarities,
 * filters, pages, several queries at once). Then the bench measures memory of the index, the largest resident
 * set, CPU time and time of a search, and what the servers needed to read the records at their start.
 *
 * Usage: npm run build && npm run bench:parts -- --database-url postgres://… [--rows 100000 --dimension 128
 * --parts 2,4 --answers 240 --timed 100 --keep]. The database gets a branch bench:main, which is dropped at the
 * end; with --keep it stays, and the next run with --keep uses its records.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../test/support/ports.ts";
import { describeMachine, loadNow } from "./machine.mjs";
import { cpuSecondsOf, statusMb } from "./process.mjs";
import { readOptions } from "./read-options.mjs";
import { DATABASE, start, tablePath } from "./served.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "100000" },
  dimension: { type: "string", default: "128" },
  parts: { type: "string", default: "2,4" },
  answers: { type: "string", default: "240" },
  timed: { type: "string", default: "100" },
  keep: { type: "boolean", default: false },
  "database-url": { type: "string" },
});
const [rows, dimension, answers, timed] = ["rows", "dimension", "answers", "timed"].map((name) => Number(options[name]));
if (options["database-url"] === undefined) throw new Error("--database-url: the PostgreSQL server that all servers share.");

const SIMILARITIES = ["cosineSimilarity", "l1", "l2"];
const FILTERS = [undefined, { n: { $lt: 10 } }, { $not: { n: 3 } }, { n: { $ge: 990 } }];
const STATEMENT_ROWS = Math.max(1, Math.floor(1_000_000 / dimension));

const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-parts-"));
const secret = join(directory, "secret");
writeFileSync(secret, "only-for-this-bench-and-of-thirty-two-characters", { mode: 0o600 });
const running = new Set();
let folders = 0;

try {
  const { cpu, cores, node } = describeMachine();
  console.log(`${cpu}, ${cores} cores, Node ${node}, load ${loadNow().toFixed(0)}; ${rows} rows x ${dimension}`);
  const whole = await serve([]);
  if (!options.keep || !(await isFilled(whole))) {
    await whole.send("PUT", DATABASE, {});
    await whole.send("PUT", tablePath("t"), {
      columns: [
        { name: "v", type: "vector", vector: { dimension } },
        { name: "n", type: "int" },
      ],
    });
    const storedMs = await msOf(() => fill(whole));
    console.log(`stored: ${Math.round(rows / (storedMs / 1000))} rows a second`);
  }
  await untilWhole([whole], rows);
  // Its whole life if the records were there, and it has read them.
  console.log(`ready after ${Math.round(performance.now() / 1000)} s, with ${(cpuMsOf(whole.pid) / 1000).toFixed(1)} s of CPU`);
  report("one server", await measure([whole]));
  for (const count of options.parts.split(",").filter(Boolean).map(Number)) {
    const ports = await Promise.all(Array.from({ length: count }, freePort));
    const peers = ports.map((port) => `http://127.0.0.1:${port}`).join(",");
    const parts = await Promise.all(
      ports.map((port, part) =>
        serve(["--port", String(port), "--search-part", `${part}/${count}`, "--search-peers", peers, "--search-secret-file", secret]),
      ),
    );
    const readMs = await msOf(() => untilWhole(parts, rows));
    const readCpuMs = parts.reduce((sum, { pid }) => sum + 1000 * cpuSecondsOf(pid), 0);
    const equal = await compare(whole, parts);
    report(`${count} parts`, await measure(parts));
    console.log(`  all read their part in ${(readMs / 1000).toFixed(1)} s, with ${(readCpuMs / 1000).toFixed(1)} s of CPU together`);
    console.log(`  ${equal} of ${answers} answers equal in every bit`);
    await Promise.all(parts.map(stop));
    if (equal !== answers) process.exitCode = 1;
  }
  if (!options.keep) await whole.send("DELETE", DATABASE);
} finally {
  await Promise.all([...running].map(stop));
  rmSync(directory, { recursive: true, force: true });
}

async function serve(args) {
  const folder = join(directory, String(folders++));
  const server = await start({
    directory: folder,
    args: ["--database-url", options["database-url"], "--database-connections", "6", ...args],
  });
  running.add(server);
  return server;
}

async function stop(server) {
  running.delete(server);
  await server.stop();
}

async function isFilled({ send }) {
  const state = () => send("GET", "/readyz").catch(() => undefined);
  let ready = await state();
  for (; ready === undefined; ready = await state()) await sleep(100);
  return ready.rows === rows;
}

async function fill({ send }) {
  for (let first = 0; first < rows; first += STATEMENT_ROWS) {
    const last = Math.min(rows, first + STATEMENT_ROWS) - 1;
    // The condition on n makes each row's array its own. There are few values, so that scores are often
    // equal.
    await send("POST", `${DATABASE}/sql`, {
      statement: `INSERT INTO "t" (id, n, v) SELECT 'r' || n, n % 1000, ARRAY(SELECT floor(random() * 256) - 128 FROM generate_series(1, $1::int) AS i WHERE i + n > n)
        FROM generate_series($2::int, $3::int) AS n`,
      params: [dimension, first, last],
    });
  }
}

/** Waits until all servers are ready and together hold that many rows. */
async function untilWhole(servers, expected) {
  for (;;) {
    const states = await Promise.all(servers.map(({ send }) => send("GET", "/readyz").catch(() => undefined)));
    if (states.every((state) => state !== undefined) && states.reduce((sum, state) => sum + state.rows, 0) === expected) return;
    await sleep(100);
  }
}

async function compare(whole, servers) {
  let equal = 0;
  for (let n = 0; n < answers; n++) {
    const body = requestOf(n);
    const [expected, got] = await Promise.all([whole, servers[n % servers.length]].map((server) => search(server, body)));
    if (JSON.stringify(expected) === JSON.stringify(got)) equal++;
  }
  return equal;
}

function requestOf(n) {
  const base = { column: "v", similarityFunction: SIMILARITIES[n % 3], filter: FILTERS[Math.floor(n / 3) % FILTERS.length] };
  if (n % 5 === 4) return { ...base, size: 20, queryVectors: [queryOf(n), queryOf(n + 1), queryOf(n + 2)] };
  return { ...base, queryVector: queryOf(n), size: n % 2 === 0 ? 10 : 300, offset: n % 7 };
}

function queryOf(n) {
  return Array.from({ length: dimension }, (_, i) => Math.round(127 * Math.sin((n + 1) * (i + 1))));
}

function search({ send }, body) {
  return send("POST", `${tablePath("t")}/vectorSearch`, body);
}

async function measure(servers) {
  const before = servers.reduce((sum, { pid }) => sum + 1000 * cpuSecondsOf(pid), 0);
  const times = [];
  for (let n = 0; n < timed; n++) {
    const startedMs = performance.now();
    await search(servers[n % servers.length], { column: "v", queryVector: queryOf(n), size: 10 });
    times.push(performance.now() - startedMs);
  }
  const cpuMs = (servers.reduce((sum, { pid }) => sum + 1000 * cpuSecondsOf(pid), 0) - before) / timed;
  const memory = await Promise.all(servers.map(indexBytes));
  const resident = servers.map(({ pid }) => statusMb(pid, "VmRSS") * 2 ** 20);
  return { medianMs: times.sort((a, b) => a - b)[timed >> 1], cpuMs, memory, resident };
}

function report(name, { medianMs, cpuMs, memory, resident }) {
  const megabytes = (bytes) => Math.round(bytes / 1e6);
  const total = memory.reduce((sum, bytes) => sum + bytes, 0);
  console.log(
    `${name}: index ${megabytes(Math.max(...memory))} MB a server at most, ${(total / rows).toFixed(0)} bytes a row in all, ` +
      `resident ${megabytes(Math.max(...resident))} MB at most; a search ${medianMs.toFixed(1)} ms, ${cpuMs.toFixed(1)} ms of CPU of all servers`,
  );
}

/** As /metrics reports it, which needs no key here. */
async function indexBytes({ port }) {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(/^lodestone_search_memory_bytes (\S+)$/m.exec(text)?.[1]);
}

async function msOf(work) {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
