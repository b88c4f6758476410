/**
 * npm run bench [-- options]: how long an exact search takes, beside a native C scan over the same data in
 * the same run, and how many bytes of rows it touches. Every answer is verified against the float64 oracle
 * before it is timed. Contenders take turns query by query; ratios are of medians.
 *   --only TEXT     only data sets whose name contains it
 *   --quick         fewer turns
 *   --against DIR   also the library of another built checkout, in turns with this one
 *   --in-file       also an index whose vectors are in a file, and its times ÷ those in memory; with the page cache
 *                   dropped, too, where this process may (root)
 *   --lsa FOLDER    also files of real text there (lsa-files.mjs); or LODESTONE_LSA
 * Prints a table and, after every data set, writes bench/results/core.json, from which `npm run bench:report`
 * makes the documents.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { enableRelaxedSimd } from "../dist/cli/relaxed-simd.js";
import { init, isRelaxedAvailable, openVectorFile, ParallelVectorIndex, VectorIndex, VectorStore } from "../dist/index.js";
import { makeData, seededRandom } from "./data.mjs";
import { lsaSet, SETS } from "./data-sets.mjs";
import { describeData } from "./describe-data.mjs";
import { findLsaSets, loadLsaSet } from "./lsa-files.mjs";
import { describeMachine, loadNow } from "./machine.mjs";
import { fill, HEADING, lineOf, SetBench } from "./measure.mjs";
import { compileNativeScan, startNativeScan } from "./native-scan.mjs";
import { idOf } from "./oracle.mjs";
import { readOptions } from "./read-options.mjs";
import { summarize } from "./statistics.mjs";

const K = 10;
const IN_FILE = "in a file";
const QUERIES = 100;
const options = readOptions(import.meta.url, {
  only: { type: "string" },
  quick: { type: "boolean" },
  against: { type: "string" },
  "in-file": { type: "boolean" },
  lsa: { type: "string", default: process.env.LODESTONE_LSA },
});
const SINGLE = options.quick ? 5 : 15;
const ROUNDS = options.quick ? 2 : 5;

enableRelaxedSimd();
if (!isRelaxedAvailable()) throw new Error("This runtime has no relaxed SIMD, and the bench compares both builds; use Node 20 or later.");
const other = options.against && (await import(pathToFileURL(join(resolve(options.against), "dist/index.js")).href));
const lsaSets = findLsaSets(options.lsa).map(lsaSet);
const started = performance.now();
const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
const program = compileNativeScan(directory);
const machine = describeMachine(program);
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; top ${K}; yardstick: ${machine.yardstick ?? "none"}`);
console.log("bytes: of rows that a search touched (codes, norms, float32) ÷ those of the float32 data");
console.log(HEADING);
const measured = [];
const loads = [];

function record(entry) {
  measured.push(entry);
  console.log(lineOf(entry));
  if (entry.plan !== IN_FILE) return;
  const inMemory = measured.findLast(({ set, what, plan }) => set === entry.set && what === entry.what && plan === "relaxed");
  const ratio = entry.milliseconds.median / inMemory.milliseconds.median;
  console.log(`${entry.set.padEnd(32)} ${entry.what}: in a file ÷ in memory ${ratio.toFixed(2)}`);
}

/** Each query once, of a file that is not in memory at all. */
function measureCold(set, bench, index, similarity) {
  const times = [];
  let rows = 0;
  for (let i = 0; i < bench.single; i++) {
    try {
      execFileSync("sync");
      writeFileSync("/proc/sys/vm/drop_caches", "3");
    } catch (error) {
      return console.log(`${set.name.padEnd(32)} ${similarity}: the page cache cannot be dropped here (${error.code ?? error.message})`);
    }
    const start = performance.now();
    index.search(bench.query(i), { k: K, similarity });
    times.push(performance.now() - start);
    rows += index.lastScan.fetchedRows;
  }
  const { median, high } = summarize(times);
  const fetched = Math.round(rows / bench.single);
  measured.push({ set: set.name, what: similarity, plan: "in a file, not cached", milliseconds: summarize(times), fetched });
  console.log(
    `${set.name.padEnd(32)} ${similarity}: page cache dropped: median ${median.toFixed(2)} ms, p90 ${high.toFixed(2)} ms; ${fetched} rows read`,
  );
}

function maskOf(index, rows, share) {
  const random = seededRandom(Math.round(share * 1e6));
  const mask = new Uint32Array(Math.ceil(index.capacity / 32));
  const chosen = new Set();
  for (let row = 0; row < rows; row++) {
    if (random() >= share) continue;
    const at = index.rows.rowOf(idOf(row));
    mask[at >> 5] |= 1 << (at & 31);
    chosen.add(row);
  }
  return { mask, chosen };
}

/** An index of each build, and of the other checkout. */
async function buildAll(set, data) {
  const makers = [
    ["relaxed", { init, VectorIndex }, "relaxed"],
    ["simd", { init, VectorIndex }, "simd"],
    ...(options["in-file"] ? [[IN_FILE, { init, VectorIndex }, "relaxed"]] : []),
    ...(other ? [["other", other, "relaxed"]] : []),
  ];
  const contenders = [];
  for (const [plan, library, build] of makers) {
    library.init({ build });
    const vectors = plan === IN_FILE ? new VectorStore(openVectorFile(join(directory, "bench.vectors"))) : undefined;
    const index = await library.VectorIndex.create({ dimension: set.dimension, ...(vectors && { vectors }) });
    const figures = fill(index, set, data);
    measured.push({ set: set.name, what: "build", plan, ...figures });
    const [stored, searchable] = [figures.rowsPerSecond, figures.rowsPerSecondToFirstAnswer].map((rows) => rows.toFixed(0));
    console.log(
      `${set.name.padEnd(32)} build, ${plan}: ${stored} rows/s, ${searchable} with the first search; memory ${figures.memoryRatio.toFixed(3)} × the float32 data`,
    );
    contenders.push({ plan, index });
  }
  return contenders;
}

async function measureShards(set, bench) {
  init({});
  const ids = Array.from({ length: set.rows }, (_, row) => idOf(row));
  const contenders = [];
  const indexes = [];
  for (const shards of [1, 2]) {
    const index = await ParallelVectorIndex.create({ dimension: set.dimension, shards });
    await index.upsertMany(ids, bench.data.subarray(0, set.rows * set.dimension));
    indexes.push(index);
    contenders.push({ plan: shards === 1 ? "1 shard" : "2 shards", run: (q) => index.search(q, { k: K }) });
  }
  await bench.measure("cosineSimilarity", "cosine, in workers, in a row", contenders, { inARow: true });
  for (const index of indexes) await index.free();
}

async function measureSet(set) {
  const data = set.path ? loadLsaSet(set, QUERIES) : makeData({ ...set, queries: QUERIES });
  if (set.describe) {
    const description = describeData(data, set.rows, set.dimension, SINGLE);
    measured.push({ set: set.name, what: "data", description });
    console.log(`${set.name}: ${description}`);
  }
  const native = program && startNativeScan(program, data, set.rows, set.dimension, QUERIES);
  const bench = new SetBench({ set, data, queries: QUERIES, single: SINGLE, k: K, rounds: ROUNDS, native, record });
  const built = await buildAll(set, data);
  const contendersOf = (search) => built.map(({ plan, index }) => ({ plan, index, run: (q) => index.search(q, search) }));
  const simd = built[1].index;
  const yardsticks = new Map();
  // The same number of turns, with more queries.
  const varied = set.single && !options.quick ? { single: set.single, rounds: Math.ceil((SINGLE * ROUNDS) / set.single) } : {};
  for (const similarity of set.similarities) {
    const search = { k: K, similarity };
    const floats = { plan: "simd floats", index: simd, run: (q) => simd.search(q, { ...search, plan: "floats" }) };
    yardsticks.set(similarity, await bench.measure(similarity, similarity, [...contendersOf(search), floats], varied));
  }
  for (const share of set.filters ?? []) {
    const { mask, chosen } = maskOf(built[0].index, set.rows, share);
    await bench.measure("cosineSimilarity", `cosine, filter ${share * 100} %`, contendersOf({ k: K, filter: mask }), {
      isSelected: (row) => chosen.has(row),
    });
  }
  if (set.many) bench.measureMany("cosineSimilarity", built, yardsticks.get("cosineSimilarity"));
  const inFile = built.find(({ plan }) => plan === IN_FILE)?.index;
  if (inFile) for (const similarity of set.similarities) measureCold(set, bench, inFile, similarity);
  if (set.shards) await measureShards(set, bench);
  native?.stop();
  for (const { index } of built) index.free();
}

/** Called after every set, so that a run that is ended early keeps its results. */
function write(isWhole) {
  const results = fileURLToPath(new URL("results/", import.meta.url));
  mkdirSync(results, { recursive: true });
  const result = {
    machine,
    k: K,
    partial: !isWhole || Boolean(options.only || options.quick),
    at: new Date().toISOString(),
    loads,
    measured,
  };
  writeFileSync(join(results, "core.json"), JSON.stringify(result, null, 2));
}

try {
  const wanted = [...lsaSets, ...SETS].filter(({ name }) => options.only === undefined || name.includes(options.only));
  for (const [i, set] of wanted.entries()) {
    await measureSet(set);
    loads.push(loadNow());
    write(i === wanted.length - 1);
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
console.log(
  `bench/results/core.json written after ${((performance.now() - started) / 1000).toFixed(0)} s; npm run bench:report makes the tables.`,
);
