/**
 * What replicas cost a server, and what a page has of one.
 *
 * `--part server`: many connected replicas of one table (as streams of this process): CPU and memory of the server while nothing
 * happens; CPU, and with `--database-url` transactions of the database, for each of 50 writes a second, with one replica and with all; from a
 * write's answer until a replica has been told; bytes of one change.
 *
 * `--part page`: a table of `--rows` × `--dimension` with three columns in Chromium: bytes of the snapshot, the first load beside the
 * time that its bytes take alone, the next visit, from a write's answer until a search of the page finds it, the longest task of the
 * main thread, and the memory of the page's process beside that of the library without a replica. Chromium is the one that
 * CHROMIUM_PATH names, or /usr/bin/chromium.
 *
 *     npm run bench:replica -- [--part server|page --replicas 1000 --seconds 20 --rows 100000 --dimension 384 --database-url URL]
 */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { chromium } from "playwright-core";
import { FrameReader } from "../dist/frames/frames.js";
import { rowWriter } from "./data.mjs";
import { describeMachine, describeRun, loadNow } from "./machine.mjs";
import { rendererMb, tracedTasks } from "./page-trace.mjs";
import { cpuSecondsOf, statusMb } from "./process.mjs";
import { readOptions } from "./read-options.mjs";
import { DATABASE, start, tablePath } from "./served.mjs";
import { quantile } from "./statistics.mjs";

const options = readOptions(import.meta.url, {
  part: { type: "string" },
  replicas: { type: "string", default: "1000" },
  seconds: { type: "string", default: "20" },
  rows: { type: "string", default: "100000" },
  dimension: { type: "string", default: "384" },
  "database-url": { type: "string" },
});
const [replicas, seconds, rows, dimension] = ["replicas", "seconds", "rows", "dimension"].map((name) => Number(options[name]));
const WRITES_A_SECOND = 50;
const TABLE = tablePath("t");
const COLUMNS = ["v", "n", "name", "family"];
/** Other replicas than those that are measured. */
const SMALL = 64;

const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-replica-"));
const loads = [loadNow()];
const lines = [];
const print = (name, value) => {
  lines.push(`${name.padEnd(64)} ${value}`);
  process.stderr.write(`${lines.at(-1)}\n`);
};
try {
  if (options.part !== "page") await measureServer();
  if (options.part !== "server") await measurePage();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
loads.push(loadNow());
console.log(describeRun({ machine: describeMachine(), at: new Date().toISOString(), loads }));
console.log(lines.join("\n"));

async function startWith(name, count, dimension, args = []) {
  const server = await start({ directory: join(directory, name), args });
  await server.send("PUT", DATABASE, {});
  const columns = [
    { name: "v", type: "vector", vector: { dimension } },
    { name: "n", type: "int" },
    { name: "name", type: "string" },
    { name: "family", type: "string" },
  ];
  await server.send("PUT", TABLE, { columns });
  const write = rowWriter({ kind: "steep spectrum", rows: count, dimension });
  const vector = new Float32Array(dimension);
  for (let at = 0; at < count; at += 1000) {
    const records = Array.from({ length: Math.min(1000, count - at) }, (_, i) => {
      write(vector, 0, false);
      return { id: `r${at + i}`, v: [...vector], n: at + i, name: `thing ${at + i}`, family: `f${i % 20}` };
    });
    await server.send("POST", `${TABLE}/bulk`, { records });
  }
  return server;
}

async function measureServer() {
  const databaseUrl = options["database-url"];
  const server = await startWith("server", 10_000, SMALL, databaseUrl === undefined ? [] : ["--database-url", databaseUrl]);
  const database = databaseUrl === undefined ? undefined : new pg.Client({ connectionString: databaseUrl });
  await database?.connect();
  const told = { bytes: 0, groups: 0, waiting: undefined };
  const streams = [];
  try {
    const snapshot = await snapshotOf(server.port);
    const frames = [...new FrameReader().read(snapshot)].map(({ frame }) => frame);
    const position = `${frames[0].life}~${frames[0].reading}~${frames.at(-1).at}`;
    print("bytes of a snapshot of 10,000 × 64 ÷ its float32", (snapshot.length / (10_000 * SMALL * 4)).toFixed(3));
    streams.push(await connect(server.port, position, told));
    await latencies(server, told);
    const before = await writing(server, database, "1 replica");
    const memory = await settled(server.pid);
    await idle(server, "1 idle replica");
    // From where the first one is: they have nothing to catch up with.
    const newest = `${frames[0].life}~${frames[0].reading}~${told.at}`;
    while (streams.length < replicas) streams.push(await connect(server.port, newest, {}));
    print(
      `memory of each of ${replicas} replicas`,
      `${(((await settled(server.pid)) - memory) * 1024) / (replicas - 1)} kB`.replace(/(\.\d)\d+/, "$1"),
    );
    await idle(server, `${replicas} idle replicas`);
    const after = await writing(server, database, `${replicas} replicas`);
    if (database !== undefined) print("transactions, with all ÷ with one", (after.transactions / before.transactions).toFixed(3));
  } finally {
    for (const stream of streams) stream.destroy();
    await database?.end();
    await server.stop();
  }
}

async function idle(server, name) {
  const cpu = cpuSecondsOf(server.pid);
  await sleep(1000 * seconds);
  print(`CPU of the server, ${name}`, `${((100 * (cpuSecondsOf(server.pid) - cpu)) / seconds).toFixed(2)} % of a core`);
}

/** The resident set, in MB, when it has not grown for a second. */
async function settled(pid) {
  for (let last = Number.NaN; ; ) {
    const now = statusMb(pid, "VmRSS");
    if (now <= last) return now;
    last = now;
    await sleep(1_000);
  }
}

/** WRITES_A_SECOND for some seconds, or as many as there can be. */
async function writing(server, database, name) {
  const cpu = cpuSecondsOf(server.pid);
  const transactions = await commits(database);
  const began = performance.now();
  let writes = 0;
  for (; performance.now() - began < 1000 * seconds; writes++) {
    await server.send("PUT", `${TABLE}/data/w${writes % 100}`, recordOf(writes, SMALL));
    await sleep(Math.max(0, began + (1000 * writes) / WRITES_A_SECOND - performance.now()));
  }
  const own = { cpu: (cpuSecondsOf(server.pid) - cpu) / writes, transactions: ((await commits(database)) - transactions) / writes };
  print(`CPU of the server for a write, ${name}`, `${(1000 * own.cpu).toFixed(1)} ms (${(writes / seconds).toFixed(1)} writes a second)`);
  if (database !== undefined) print(`transactions of the database for a write, ${name}`, own.transactions.toFixed(2));
  return own;
}

async function commits(database) {
  if (database === undefined) return Number.NaN;
  await sleep(1_200);
  await database.query("SELECT pg_stat_force_next_flush()");
  const { rows: own } = await database.query("SELECT sum(xact_commit)::float8 AS commits FROM pg_stat_database");
  return own[0].commits;
}

function recordOf(i, own) {
  return { v: Array.from({ length: own }, (_, n) => Math.sin(i * own + n)), n: i, name: `changed ${i}`, family: "w" };
}

/** From a write's answer until the replica has been told, and the bytes of it. */
async function latencies(server, told) {
  const times = [];
  const bytes = told.bytes;
  for (let i = 0; i < 500; i++) {
    const groups = told.groups;
    await server.send("PUT", `${TABLE}/data/w${i % 100}`, recordOf(i, SMALL));
    const began = performance.now();
    if (told.groups === groups) {
      await new Promise((resolve) => {
        told.waiting = resolve;
      });
      told.waiting = undefined;
    }
    times.push(performance.now() - began);
    await sleep(5);
  }
  print("write's answer until a replica is told, p50 / p99", `${quantile(times, 0.5).toFixed(1)} / ${quantile(times, 0.99).toFixed(1)} ms`);
  const own = JSON.stringify({ id: "w50", ...recordOf(250, SMALL), v: undefined }).length + 4 * SMALL;
  print("bytes of one change beyond its own size", ((told.bytes - bytes) / 500 - own).toFixed(0));
}

function snapshotOf(port) {
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path: `${TABLE}/replica?columns=${COLUMNS}` }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => resolve(Buffer.concat(chunks)));
    })
      .on("error", reject)
      .end();
  });
}

/** A replica's stream. @param told  counts what comes. */
async function connect(port, position, told) {
  const call = request({
    host: "127.0.0.1",
    port,
    method: "POST",
    path: `${TABLE}/replica`,
    headers: { "Content-Type": "application/json" },
    agent: new Agent({ keepAlive: false }),
  });
  call.end(JSON.stringify({ columns: COLUMNS, position }));
  const [response] = await once(call, "response");
  if (response.statusCode !== 200) throw new Error(`a replica was answered ${response.statusCode}`);
  const reader = new FrameReader();
  response.on("data", (chunk) => {
    if (told.groups === undefined) return;
    told.bytes += chunk.length;
    for (const { frame } of reader.read(chunk)) {
      if (frame.type === "position") told.at = frame.at;
      if (frame.type !== "records" && !(frame.type === "position" && told.hasRecords)) continue;
      told.hasRecords = frame.type === "records";
      if (told.hasRecords) continue;
      told.groups++;
      told.waiting?.();
    }
  });
  response.on("error", () => {});
  return call;
}

async function measurePage() {
  const server = await startWith("page", rows, dimension, ["--cors-origin", "*"]);
  const library = readFileSync(new URL("../dist/packages/library/dist/index.js", import.meta.url));
  const site = createServer((asked, response) => {
    if (asked.url === "/lodestone.js") response.writeHead(200, { "content-type": "text/javascript" }).end(library);
    else response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>p</title>");
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
  const args = ["--headless", "--no-sandbox", "--disable-gpu"];
  const browser = await chromium.launchPersistentContext(join(directory, "profile"), { executablePath, args });
  const url = `http://127.0.0.1:${server.port}${DATABASE}`;
  const floats = 4 * rows * dimension;
  try {
    let page = await visit(browser, site);
    const streamed = await page.evaluate(
      async ({ url, columns }) => {
        const times = [];
        let bytes;
        // The first makes the server's file.
        for (let i = 0; i < 3; i++) {
          const began = performance.now();
          const response = await fetch(`${url}/tables/t/replica?columns=${columns}`);
          const reader = response.body.getReader();
          bytes = 0;
          for (let read = await reader.read(); !read.done; read = await reader.read()) bytes += read.value.length;
          times.push(performance.now() - began);
        }
        return { bytes, times };
      },
      { url, columns: String(COLUMNS) },
    );
    print(`bytes of the snapshot of ${rows} × ${dimension} ÷ its float32`, (streamed.bytes / floats).toFixed(3));
    print("reading its bytes alone: the first, the next", `${streamed.times.slice(0, 2).map((time) => `${time.toFixed(0)} ms`)}`);
    const streamMs = Math.min(...streamed.times.slice(1));
    await openReplica(browser, page, url, "first load to first answer", (time) => `; ÷ reading alone ${(time / streamMs).toFixed(2)}`);
    print("memory of the page's process", `${rendererMb()} MB`);
    await found(browser, page, server);
    print("memory of the page's process", `${rendererMb()} MB`);
    await page.close();
    page = await visit(browser, site);
    await openReplica(browser, page, url, "next visit to first answer, from IndexedDB", () => "");
    print("memory of the page's process", `${rendererMb()} MB`);
    await page.close();
    page = await visit(browser, site);
    await page.evaluate(fillLibrary, { rows, dimension });
    print("memory of the page's process, the library without a replica", `${rendererMb()} MB`);
  } finally {
    await browser.close();
    site.close();
    await server.stop();
  }
}

async function visit(browser, site) {
  const page = await browser.newPage();
  page.setDefaultTimeout(3_600_000);
  await page.goto(`http://127.0.0.1:${site.address().port}/`);
  return page;
}

async function openReplica(browser, page, url, name, more) {
  let time;
  const { cpuMs, wallMs } = await tracedTasks(browser.browser(), page, async () => {
    time = await page.evaluate(
      async ({ url, columns, query }) => {
        const { IndexedDbReplicaStore, Replica } = await import("/lodestone.js");
        const began = performance.now();
        const store = new IndexedDbReplicaStore("bench");
        globalThis.replica = await Replica.open({ url, table: "t", columns, store });
        const { results } = await globalThis.replica.search(query, { k: 10, columns: ["name"] });
        if (results.length !== 10) throw new Error("an answer without results");
        return performance.now() - began;
      },
      { url, columns: COLUMNS, query: recordOf(1, dimension).v },
    );
    await page.evaluate(() => globalThis.replica.current());
  });
  print(name, `${time.toFixed(0)} ms${more(time)}`);
  print("  longest task of the main thread, CPU (wall)", `${cpuMs[0].toFixed(1)} (${wallMs[0].toFixed(1)}) ms`);
}

/** From a write's answer until a search of the page finds it. */
async function found(browser, page, server) {
  const times = [];
  const { cpuMs, wallMs } = await tracedTasks(browser.browser(), page, async () => {
    for (let i = 0; i < 200; i++) {
      const { v, ...values } = recordOf(1000 + i, dimension);
      const waiting = page.evaluate(
        async ({ query, n }) => {
          for (;;) {
            const { results } = await globalThis.replica.search(query, { k: 1, columns: ["n"] });
            if (results[0].columns.n === n) return performance.timeOrigin + performance.now();
            await new Promise((resolve) => setTimeout(resolve, 1));
          }
        },
        { query: v, n: values.n },
      );
      await server.send("PUT", `${TABLE}/data/w${i % 100}`, { v, ...values });
      const answered = performance.timeOrigin + performance.now();
      times.push(Math.max(0, (await waiting) - answered));
    }
  });
  print(
    "write's answer until a search of the page finds it, p50 / p99",
    `${quantile(times, 0.5).toFixed(1)} / ${quantile(times, 0.99).toFixed(1)} ms`,
  );
  print("  longest task of the main thread, CPU (wall)", `${cpuMs[0].toFixed(1)} (${wallMs[0].toFixed(1)}) ms`);
}

async function fillLibrary({ rows, dimension }) {
  const { Columns, ParallelVectorIndex } = await import("/lodestone.js");
  const columns = new Columns({ n: "int", name: "string", family: "string" });
  globalThis.index = await ParallelVectorIndex.create({ dimension, shards: 1, columns });
  let x = 1;
  for (let at = 0; at < rows; at += 1000) {
    const matrix = Float32Array.from({ length: 1000 * dimension }, () => {
      x = (x * 48271) % 2147483647;
      return x / 2147483647 - 0.5;
    });
    const ids = Array.from({ length: 1000 }, (_, i) => `r${at + i}`);
    await globalThis.index.upsertMany(
      ids,
      matrix,
      ids.map((_, i) => ({ n: at + i, name: `thing ${at + i}`, family: `f${i % 20}` })),
    );
  }
  await globalThis.index.search(new Float32Array(dimension).fill(1), { k: 10 });
}
