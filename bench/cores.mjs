/**
 * npm run bench:cores [-- --rows 100000 --dimension 768]: how much does a second core speed up a search, and
 * where does the rest of the time go?
 *
 * First without messages: half of the rows each are searched by a C scan in two processes and by this core in
 * two threads, one at a time and both at once. What both at once lose is due to the machine (memory, caches,
 * other programs). Then with messages: the same search in one shard and in two. The contenders take turns,
 * and each also runs its searches in a row, which shows the effect of the system's choice of a core for each
 * thread that wakes. Two shards without rows measure the messages alone.
 *
 * Searches during which other programs used a twentieth of a core or more are counted apart: with one core
 * taken, a second thread cannot help.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { enableRelaxedSimd } from "../dist/cli/relaxed-simd.js";
import { ParallelVectorIndex, VectorIndex } from "../dist/index.js";
import { makeData } from "./data.mjs";
import { compileNativeScan, startNativeScan } from "./native-scan.mjs";
import { idOf, oracle, verify } from "./oracle.mjs";
import { readOptions } from "./read-options.mjs";
import { summarize } from "./statistics.mjs";

const K = 10;
const QUERIES = 15;
const ROUNDS = 8;
const SHARDS = ["Lodestone, 1 shard", "Lodestone, 2 shards", "messages: 2 shards, no rows"];
const BUSY_CORES = 0.05;

if (isMainThread) await main();
else await searchHalf(workerData);

async function main() {
  const values = readOptions(import.meta.url, {
    rows: { type: "string", default: "100000" },
    dimension: { type: "string", default: "768" },
  });
  const [rows, d] = [Number(values.rows), Number(values.dimension)];
  if (rows % 2 === 1 || !(rows > 0)) throw new Error("--rows: expected an even number, as each half is searched by one thread.");
  enableRelaxedSimd();
  const memory = new SharedArrayBuffer(4 * (rows + QUERIES) * d);
  const data = new Float32Array(memory);
  data.set(makeData({ kind: "random", rows, dimension: d, queries: QUERIES }));
  const queryAt = (i) => data.slice((rows + i) * d, (rows + i + 1) * d);
  const ids = Array.from({ length: rows }, (_, i) => idOf(i));

  const whole = await VectorIndex.create({ dimension: d });
  whole.upsertMany(ids, data.slice(0, rows * d));
  const shards = await Promise.all([1, 2, 2].map((count) => ParallelVectorIndex.create({ dimension: d, shards: count })));
  const full = shards.slice(0, 2);
  for (const index of full) await index.upsertMany(ids, data.slice(0, rows * d));
  for (const index of [whole, ...full]) {
    verify("search", await index.search(queryAt(0), { k: K }), oracle(data, rows, d, rows * d, "cosineSimilarity", K));
  }
  const gate = new SharedArrayBuffer(8);
  const halves = [0, 1].map((half) => new Worker(new URL(import.meta.url), { workerData: { memory, gate, rows, d, half } }));
  await Promise.all(halves.map((half) => once(half, "message")));
  const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
  const program = compileNativeScan(directory);
  const scans =
    program === undefined ? [] : [0, 1].map((half) => startNativeScan(program, halfOf(data, rows, d, half), rows / 2, d, QUERIES));

  const times = new Map();
  const add = (name, ms) => times.set(name, [...(times.get(name) ?? []), ...[ms].flat()]);
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < QUERIES; i++) {
      if (scans.length > 0) {
        add("C, half, alone", (await scans[i % 2].scan(i, "cosineSimilarity")).ms);
        const both = await Promise.all(scans.map((scan) => scan.scan(i, "cosineSimilarity")));
        add(
          "C, half, both at once",
          both.map(({ ms }) => ms),
        );
      }
      const startMs = performance.now();
      whole.search(queryAt(i), { k: K });
      add("Lodestone, all, one thread", performance.now() - startMs);
      for (const [s, index] of shards.entries()) {
        const query = queryAt(i);
        const sentMs = performance.now();
        await index.search(query, { k: K });
        add(SHARDS[s], performance.now() - sentMs);
      }
    }
    const inARow = shards.map(() => []);
    const usedBefore = usedByOthersMs();
    const beganMs = performance.now();
    for (const [s, index] of shards.entries()) {
      for (let i = 0; i < 2 * QUERIES; i++) {
        const query = queryAt(i % QUERIES);
        const sentMs = performance.now();
        await index.search(query, { k: K });
        inARow[s].push(performance.now() - sentMs);
      }
    }
    const isBusy = usedByOthersMs() - usedBefore >= BUSY_CORES * (performance.now() - beganMs);
    inARow.forEach((ms, s) => {
      add(`${SHARDS[s]}, in a row${isBusy ? ", busy" : ""}`, ms);
    });
    add("Lodestone, half, alone", (await runHalves(gate, [halves[round % 2]]))[0]);
    const both = await runHalves(gate, halves);
    add("Lodestone, half, both at once", both.flat());
    add(
      "Lodestone, half, slower of both",
      both[0].map((ms, i) => Math.max(ms, both[1][i])),
    );
  }
  console.log(
    `${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} cores, Node ${process.version}; random, ${rows} × ${d}, cosine, top ${K}`,
  );
  for (const [name, values] of times) {
    const { median, low, high } = summarize(values);
    console.log(`${name.padEnd(44)} ${median.toFixed(2)} ms (${low.toFixed(2)}–${high.toFixed(2)}), ${values.length} times`);
  }
  const ratio = (a, b) => (summarize(times.get(a)).median / summarize(times.get(b)).median).toFixed(2);
  if (scans.length > 0) console.log(`both at once ÷ alone: C ${ratio("C, half, both at once", "C, half, alone")}`);
  console.log(`both at once ÷ alone: Lodestone ${ratio("Lodestone, half, both at once", "Lodestone, half, alone")}`);
  console.log(`half ÷ all: ${ratio("Lodestone, half, alone", "Lodestone, all, one thread")}`);
  for (const how of ["", ", in a row", ", in a row, busy"]) {
    if (times.has(SHARDS[0] + how)) console.log(`2 shards ÷ 1 shard${how}: ${ratio(SHARDS[1] + how, SHARDS[0] + how)}`);
  }
  for (const scan of scans) scan.stop();
  rmSync(directory, { recursive: true, force: true });
  await Promise.all([...shards.map((index) => index.free()), ...halves.map((half) => half.terminate())]);
}

/** Processor time that other programs and the system have used so far; only differences mean anything. */
function usedByOthersMs() {
  const { user, system } = process.cpuUsage();
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) - (user + system) / 1000;
}

/** One half of the rows, followed by the queries. */
function halfOf(data, rows, d, half) {
  const own = new Float32Array((rows / 2 + QUERIES) * d);
  own.set(data.subarray((half * rows * d) / 2, ((half + 1) * rows * d) / 2));
  own.set(data.subarray(rows * d), (rows * d) / 2);
  return own;
}

/** @returns each half's times of all queries; both halves begin each query together. */
async function runHalves(gate, halves) {
  new Int32Array(gate).fill(0);
  const answers = halves.map((half) => once(half, "message"));
  for (const half of halves) half.postMessage(halves.length);
  return (await Promise.all(answers)).map(([ms]) => ms);
}

/** The worker: an index of half of the rows. Its searches wait for nobody but the other half. */
async function searchHalf({ memory, gate, rows, d, half }) {
  const data = new Float32Array(memory);
  const own = halfOf(data, rows, d, half);
  const index = await VectorIndex.create({ dimension: d });
  index.upsertMany(
    Array.from({ length: rows / 2 }, (_, i) => idOf(i)),
    own.subarray(0, (rows / 2) * d),
  );
  const arrived = new Int32Array(gate);
  parentPort.on("message", (count) => {
    const ms = [];
    for (let i = 0; i < QUERIES; i++) {
      const query = own.slice((rows / 2 + i) * d, (rows / 2 + i + 1) * d);
      Atomics.add(arrived, 0, 1);
      while (Atomics.load(arrived, 0) < count * (i + 1)) {}
      const startMs = performance.now();
      index.search(query, { k: K });
      ms.push(performance.now() - startMs);
    }
    parentPort.postMessage(ms);
  });
  parentPort.postMessage("ready");
}
