/**
 * npm run bench:load [-- --against DIR] [--seconds 3] [--rounds 4] [--only NAME] [--postgres BIN] [--profile]: what a server completes in a
 * second from 1, 16 and 64 connections, the latency of the slowest hundredth, and the CPU time of its process for each request.
 *   searches      10,000 vectors of 128 dimensions, top 10 by cosine, eventual consistency; checked against the oracle first
 *   inserts       of one record with such a vector, into another table; all acknowledged ones are counted afterwards
 *   updates       of one record's vector by its id, which share no statement
 *   transactions  of 10 such inserts
 *   beside        searches, while 16 other connections insert 300 records a second, or as many as the server takes (printed)
 *   strong        the same searches with `consistency: "strong"`, beside the same inserts: each waits for a read of the change feed
 *                 that began after it came, so its latency less that of `beside` is how far the index is behind the records
 *   imports       `lodestone import` of 100,000 such vectors from a file (fvecs), by the checkout's own program; 1 process
 * Beside the searches, in turns: node:http and bare Koa, which parse the same bodies and answer the same bytes, and do nothing.
 * The load comes from this process, on the same cores: a ratio says more than a rate.
 *   --against DIR   also a server of another built checkout, in turns with this one: medians of both, and their ratio. The first of a
 *                   round is up to a tenth slower, so rounds are an even number, and each is first as often
 *   --only NAME     one of the kinds
 *   --rate N        so many searches (or writes) a second, in place of as many as are answered: two servers then do the same work
 *   --inserts N     so many records a second are inserted beside; 50 is what a server of one fsync for each takes, too
 *   --connections N only so many, in place of 1, 16 and 64
 *   --profile       with --only: where the servers' time goes for each request (or record) after the warm-up, by V8's profiler in each of
 *                   their threads, their garbage collections, and with --against where the two differ
 *   --postgres BIN  both servers on PostgreSQL, each in a cluster of its own made by the programs of this folder (fsync on), and
 *                   inserts of the same row by pgbench
 *   --fsync-ms MS   embedded: each fsync takes so much longer, as on a slow disk (5: a hard disk with a cache; 0: none), and the
 *                   fsyncs for each record are counted
 * Exit code 1 if any response is not a success.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import autocannon from "autocannon";
import { countingFsyncs, fsyncsIn } from "./counted-fsyncs.mjs";
import { describeDifferences, describeProfiles } from "./cpu-profile.mjs";
import { makeData } from "./data.mjs";
import { idOf, oracle, verify } from "./oracle.mjs";
import { insertsByPgbench, startCluster } from "./postgres-cluster.mjs";
import { beginProfile, endProfile, profiledInto } from "./profiled.mjs";
import { readOptions } from "./read-options.mjs";
import { DATABASE, makeTable, serve, tablePath } from "./served.mjs";
import { summarize } from "./statistics.mjs";
import { openYardstick } from "./yardstick.mjs";

const ROWS = 10_000;
const DIMENSION = 128;
const QUERIES = 50;
const INSERTING = 16;
const OPERATIONS = 10;
const WARM_UP_SECONDS = 5;
const WARM_UP_CONNECTIONS = 16;
const KINDS = ["searches", "inserts", "updates", "transactions", "beside", "strong", "imports"];
/** Kinds that are measured while other connections insert. */
const BESIDE_INSERTS = ["beside", "strong"];
const IMPORTED_ROWS = 100_000;
const options = readOptions(import.meta.url, {
  against: { type: "string" },
  seconds: { type: "string", default: "3" },
  rounds: { type: "string", default: "4" },
  only: { type: "string" },
  postgres: { type: "string" },
  connections: { type: "string", default: "1,16,64" },
  profile: { type: "boolean", default: false },
  rate: { type: "string" },
  inserts: { type: "string", default: "300" },
  "fsync-ms": { type: "string" },
});
const rate = options.rate === undefined ? undefined : Number(options.rate);
if (rate !== undefined && !(rate >= 1)) throw new Error("--rate: expected requests a second.");
const insertsASecond = Number(options.inserts);
if (!(insertsASecond >= 1)) throw new Error("--inserts: expected records a second.");
const fsyncMs = options["fsync-ms"];
if (fsyncMs !== undefined && !(Number(fsyncMs) >= 0)) throw new Error("--fsync-ms: expected milliseconds.");
if (fsyncMs !== undefined && options.postgres !== undefined) throw new Error("--fsync-ms: the fsyncs of PostgreSQL are its own.");
const CONNECTIONS = options.connections.split(",").map(Number);
if (options.profile && options.only === undefined) throw new Error("--profile: name one kind by --only.");
const [seconds, rounds] = [Number(options.seconds), Number(options.rounds)];
if (!(seconds >= 1) || !(rounds >= 1)) throw new Error("--seconds and --rounds: expected numbers from 1 on.");
if (options.only !== undefined && !KINDS.includes(options.only)) throw new Error(`--only: expected one of ${KINDS.join(", ")}.`);
const kinds = options.only === undefined ? KINDS : [options.only];

const data = makeData({ kind: "random", rows: ROWS, dimension: DIMENSION, queries: QUERIES });
const vectors = Array.from({ length: QUERIES }, (_, i) => Array.from(data.subarray((ROWS + i) * DIMENSION, (ROWS + i + 1) * DIMENSION)));
const insertOf = (v) => ({ insert: { table: "inserted", record: { v } } });
const searchesOf = (table, more) => ({
  path: `${tablePath(table)}/vectorSearch`,
  bodies: vectors.map((v) => JSON.stringify({ column: "v", queryVector: v, ...more })),
});
const SEARCHES = searchesOf("rows", {});
const INSERTS = { path: `${tablePath("inserted")}/data`, bodies: vectors.map((v) => JSON.stringify({ v })), records: 1 };
const TRANSACTIONS = {
  path: `${DATABASE}/transaction`,
  bodies: vectors.map((_, i) =>
    JSON.stringify({ operations: Array.from({ length: OPERATIONS }, (_, j) => insertOf(vectors[(i + j) % QUERIES])) }),
  ),
  records: OPERATIONS,
};
const UPDATED_ROWS = 1_000;
const UPDATES = {
  method: "PATCH",
  paths: Array.from({ length: UPDATED_ROWS }, (_, i) => `${tablePath("updated")}/data/${idOf(i)}`),
  bodies: Array.from({ length: UPDATED_ROWS }, (_, i) => JSON.stringify({ v: vectors[i % QUERIES] })),
};
const STRONG = searchesOf("rows", { consistency: "strong" });
const LOADS = { searches: SEARCHES, inserts: INSERTS, updates: UPDATES, transactions: TRANSACTIONS, beside: SEARCHES, strong: STRONG };

/** CPU time of a process in all of its threads, in milliseconds (Linux: clock ticks of 10 ms). */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** @returns {Promise<{perSecond: number, p50Ms: number, p99Ms: number, cpuMs: number, failed: number, succeeded: number}>} cpuMs of each request. */
function load({ port, pid }, { method = "POST", path, paths, bodies }, connections, duration, overallRate) {
  const latencies = [];
  const before = cpuMs(pid);
  return new Promise((done, reject) => {
    const run = autocannon(
      {
        url: `http://127.0.0.1:${port}`,
        connections,
        duration,
        ...(overallRate === undefined ? {} : { overallRate }),
        requests: bodies.map((body, i) => ({ method, path: path ?? paths[i], body, headers: { "Content-Type": "application/json" } })),
      },
      (error, result) => {
        if (error) reject(error);
        else {
          latencies.sort((a, b) => a - b);
          const percentile = (share) => latencies[Math.floor(share * latencies.length)];
          done({
            perSecond: result["2xx"] / result.duration,
            p50Ms: percentile(0.5),
            p99Ms: percentile(0.99),
            cpuMs: (cpuMs(pid) - before) / result["2xx"],
            failed: result.non2xx + result.errors + result.timeouts,
            succeeded: result["2xx"],
          });
        }
      },
    );
    // autocannon's own histogram counts only whole milliseconds.
    run.on("response", (_client, _status, _bytes, ms) => latencies.push(ms));
  });
}

async function open(name, checkout, nodeArgs = []) {
  const cluster = options.postgres === undefined ? undefined : await startCluster(options.postgres);
  const fsyncs = fsyncMs === undefined ? undefined : join(fsyncFolder, name);
  const counting = fsyncs === undefined ? [] : countingFsyncs(fsyncs, Number(fsyncMs));
  const server = await serve(checkout, cluster === undefined ? {} : { LODESTONE_DATABASE_URL: cluster.url }, [...nodeArgs, ...counting]);
  await makeTable(server, "rows", { data, rows: ROWS, dimension: DIMENSION });
  await makeTable(server, "inserted", { data, rows: 0, dimension: DIMENSION });
  await makeTable(server, "updated", { data, rows: UPDATED_ROWS, dimension: DIMENSION });
  const answer = await server.send("POST", SEARCHES.path, { column: "v", queryVector: vectors[0], consistency: "strong" });
  verify(name, answer, oracle(data, ROWS, DIMENSION, ROWS * DIMENSION, "cosineSimilarity", 10));
  const stop = async () => {
    await server.stop();
    await cluster?.stop();
  };
  return { name, checkout, server: { ...server, stop }, cluster, answer, fsyncs, done: 0, inserted: 0, imports: 0, failed: 0 };
}

/**
 * Everything acknowledged must be there. The last requests of a load may have been applied without a
 * response.
 */
async function checkInserted({ name, server, inserted }) {
  const { aggs } = await server.send("POST", `${tablePath("inserted")}/aggregate`, { aggs: { all: { count: "*" } } });
  const count = aggs.all;
  if (count < inserted) throw new Error(`${name}: ${inserted} inserts were acknowledged, ${count} records are there.`);
}

/** A file of vectors, in the format of TEXMEX. @returns its path. */
function writeVectors(folder) {
  const vectors = makeData({ kind: "random", rows: IMPORTED_ROWS, dimension: DIMENSION, queries: 1 });
  const stride = 1 + DIMENSION;
  const file = new Float32Array(IMPORTED_ROWS * stride);
  const heads = new Int32Array(file.buffer);
  for (let row = 0; row < IMPORTED_ROWS; row++) {
    heads[row * stride] = DIMENSION;
    file.set(vectors.subarray(row * DIMENSION, (row + 1) * DIMENSION), row * stride + 1);
  }
  const path = join(folder, "vectors.fvecs");
  writeFileSync(path, file);
  return path;
}

/** Rows a second, and CPU milliseconds of the server for each. */
async function importInto(contender, file) {
  const { server, checkout = fileURLToPath(new URL("..", import.meta.url)) } = contender;
  const target = `bench:main/imported${contender.imports++}`;
  const [startedMs, cpuBefore] = [performance.now(), cpuMs(server.pid)];
  const program = [join(checkout, "dist/cli/main.js"), "import", file, target, "--create", "--vector-column", "v", "--restart"];
  const child = spawn(process.execPath, [...program, "--url", `http://127.0.0.1:${server.port}`], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const code = await new Promise((done) => child.once("exit", done));
  if (code !== 0) throw new Error(`${contender.name}: the import ended with ${code}.`);
  const result = {
    perSecond: (1000 * IMPORTED_ROWS) / (performance.now() - startedMs),
    cpuMs: (cpuMs(server.pid) - cpuBefore) / IMPORTED_ROWS,
  };
  const { aggs } = await server.send("POST", `/db/bench:main/tables/${target.slice(11)}/aggregate`, { aggs: { all: { count: "*" } } });
  if (aggs.all !== IMPORTED_ROWS) throw new Error(`${contender.name}: ${aggs.all} of ${IMPORTED_ROWS} records were imported.`);
  await server.send("DELETE", `/db/bench:main/tables/${target.slice(11)}`);
  contender.done += IMPORTED_ROWS;
  return result;
}

async function compareImports() {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-imports-"));
  try {
    const file = writeVectors(folder);
    const results = new Map(contenders.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const contender of round % 2 === 0 ? contenders : contenders.toReversed())
        results.get(contender.name).push(await importInto(contender, file));
    }
    const medians = new Map();
    for (const [name, own] of results) {
      const median = (key) => summarize(own.map((result) => result[key])).median;
      medians.set(name, { perSecond: median("perSecond"), cpuMs: median("cpuMs") });
      const { perSecond, cpuMs: ms } = medians.get(name);
      console.log(`imports      ${name.padEnd(7)} ${perSecond.toFixed(0).padStart(7)} rows a second, ${ms.toFixed(3)} CPU ms each`);
    }
    const [own, other] = ["this", "other"].map((name) => medians.get(name));
    if (other === undefined) return;
    const [rate, cpu] = [own.perSecond / other.perSecond, own.cpuMs / other.cpuMs];
    console.log(`${"".padEnd(12)} this ÷ other: ${rate.toFixed(2)} a second, CPU ${cpu.toFixed(2)}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measure(contender, kind, connections) {
  const inserting = BESIDE_INSERTS.includes(kind) ? load(contender.server, INSERTS, INSERTING, seconds, insertsASecond) : undefined;
  const fsyncsBefore = contender.fsyncs === undefined ? 0 : fsyncsIn(contender.fsyncs);
  const result = await load(contender.server, LOADS[kind], connections, seconds, rate);
  if (contender.fsyncs !== undefined) result.fsyncs = (fsyncsIn(contender.fsyncs) - fsyncsBefore) / result.succeeded;
  const beside = await inserting;
  if (beside !== undefined) result.besidePerSecond = beside.perSecond;
  contender.failed += result.failed + (beside?.failed ?? 0);
  const { records = 0 } = LOADS[kind];
  if (contender.answer !== undefined) contender.inserted += records * result.succeeded + (beside?.succeeded ?? 0);
  contender.done += result.succeeded;
  return result;
}

const inWords = (kind, connections, name, { perSecond, p50Ms, p99Ms, cpuMs: ms, fsyncs, besidePerSecond }) =>
  `${kind.padEnd(12)} ${String(connections).padStart(3)} connections  ${name.padEnd(7)} ${perSecond.toFixed(0).padStart(7)} a second, ` +
  `p50 ${p50Ms.toFixed(2)}, p99 ${p99Ms.toFixed(2)} ms, ${ms.toFixed(2)} CPU ms each` +
  (Number.isFinite(fsyncs) ? `, ${fsyncs.toFixed(3)} fsyncs each` : "") +
  (Number.isFinite(besidePerSecond) ? `, beside ${besidePerSecond.toFixed(0)} inserts a second` : "");

const contenders = [];
const yardsticks = [];
const profiles = options.profile ? mkdtempSync(join(tmpdir(), "lodestone-profiles-")) : undefined;
const profiledAs = (name) => (profiles === undefined ? [] : profiledInto(join(profiles, name)));
const fsyncFolder = mkdtempSync(join(tmpdir(), "lodestone-fsyncs-"));
try {
  contenders.push(await open("this", undefined, profiledAs("this")));
  if (options.against) contenders.push(await open("other", resolve(options.against), profiledAs("other")));
  if (kinds.includes("searches")) for (const name of ["http", "koa"]) yardsticks.push(await openYardstick(name, contenders[0].answer));
  const disk = fsyncMs === undefined ? "" : `, ${fsyncMs} ms more for each fsync`;
  const where = options.postgres === undefined ? `embedded${disk}` : "PostgreSQL";
  console.log(
    `${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} cores, Node ${process.version}, ${where}; ${ROWS} × ${DIMENSION}, ` +
      `${rounds} × ${seconds} s each`,
  );
  for (const { server } of contenders)
    for (const kind of kinds) if (kind !== "imports") await load(server, LOADS[kind], WARM_UP_CONNECTIONS, WARM_UP_SECONDS);
  for (const { server } of yardsticks) await load(server, SEARCHES, WARM_UP_CONNECTIONS, WARM_UP_SECONDS);
  if (profiles !== undefined) for (const { name, server } of contenders) await beginProfile(server.pid, join(profiles, name));
  for (const kind of kinds) {
    if (kind === "imports") {
      await compareImports();
      continue;
    }
    for (const connections of CONNECTIONS) {
      const measured = kind === "searches" ? [...contenders, ...yardsticks] : contenders;
      const results = new Map(measured.map(({ name }) => [name, []]));
      for (let round = 0; round < rounds; round++) {
        const order = round % 2 === 0 ? measured : measured.toReversed();
        for (const contender of order) results.get(contender.name).push(await measure(contender, kind, connections));
      }
      const medians = new Map();
      for (const [name, own] of results) {
        const median = (key) => summarize(own.map((result) => result[key])).median;
        medians.set(
          name,
          Object.fromEntries(["perSecond", "p50Ms", "p99Ms", "cpuMs", "fsyncs", "besidePerSecond"].map((key) => [key, median(key)])),
        );
        console.log(inWords(kind, connections, name, medians.get(name)));
      }
      const [own, other, koa] = ["this", "other", "koa"].map((name) => medians.get(name));
      const ratios = [];
      const ratio = (to, key) => (own[key] / to[key]).toFixed(2);
      if (other !== undefined)
        ratios.push(
          `this ÷ other: ${ratio(other, "perSecond")} a second, p50 ${ratio(other, "p50Ms")}, p99 ${ratio(other, "p99Ms")}, CPU ${ratio(other, "cpuMs")}`,
        );
      if (koa !== undefined) ratios.push(`this ÷ Koa: ${ratio(koa, "perSecond")} a second`);
      if (ratios.length > 0) console.log(`${"".padEnd(29)} ${ratios.join("; ")}`);
      const { cluster } = contenders[0];
      if (kind === "inserts" && cluster !== undefined) {
        const perSecond = await insertsByPgbench(options.postgres, cluster, DIMENSION, connections, seconds);
        console.log(`${"".padEnd(29)} pgbench ${perSecond.toFixed(0)} a second`);
      }
    }
  }
  if (profiles !== undefined) for (const { name, server } of contenders) await endProfile(server.pid, join(profiles, name));
  for (const contender of contenders) await checkInserted(contender);
  for (const { name, failed } of [...contenders, ...yardsticks]) {
    if (failed === 0) continue;
    console.error(`${name}: ${failed} requests were not answered with success.`);
    process.exitCode = 1;
  }
} finally {
  for (const { server } of [...contenders, ...yardsticks]) await server.stop();
  rmSync(fsyncFolder, { recursive: true });
}
if (profiles !== undefined) {
  for (const { name, done } of contenders) {
    console.log(`profile of all threads of ${name}, for each of ${done} requests`);
    for (const line of describeProfiles(join(profiles, name), done)) console.log(line);
  }
  if (contenders.length > 1) {
    console.log("where they differ: this, other");
    const both = contenders.map(({ name, done }) => ({ folder: join(profiles, name), requests: done }));
    for (const line of describeDifferences(both)) console.log(line);
  }
  rmSync(profiles, { recursive: true });
}
