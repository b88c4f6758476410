/**
 * npm run bench [-- --only TEXT] [--quick]: how long an exact search takes, beside a native C scan over the same data in the same run.
 * Every answer is verified against the float64 oracle before it is timed; contenders take turns query by query; ratios are of medians.
 * Prints a table and writes bench/results/core.json.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { enableRelaxedSimd } from "../dist/cli/relaxed-simd.js";
import { init, ParallelVectorIndex, VectorIndex } from "../dist/index.js";
import { makeData, seededRandom } from "./data.mjs";
import { compileNativeScan, startNativeScan } from "./native-scan.mjs";
import { idOf, oracle, verify } from "./oracle.mjs";
import { summarize } from "./statistics.mjs";

const K = 10;
const { values: options } = parseArgs({ options: { only: { type: "string" }, quick: { type: "boolean" } } });
const QUERIES = options.quick ? 5 : 15;
const ROUNDS = options.quick ? 2 : 5;
const ALL = ["cosineSimilarity", "l2", "l1"];

/** One data set each; what is measured on it. */
const SETS = [
  { kind: "random", rows: 100_000, dimension: 768, similarities: ALL, filters: [0.001, 0.01, 0.1, 0.5], many: true, shards: true },
  { kind: "256 clusters", rows: 100_000, dimension: 768, similarities: ALL, many: true },
  { kind: "common mean", rows: 100_000, dimension: 768, similarities: ALL },
  { kind: "random", rows: 10_000, dimension: 1536, similarities: ["cosineSimilarity"] },
  { kind: "256 clusters", rows: 10_000, dimension: 1536, similarities: ["cosineSimilarity"] },
  { kind: "random", rows: 100_000, dimension: 128, similarities: ["cosineSimilarity"] },
  { kind: "256 clusters", rows: 100_000, dimension: 128, similarities: ["cosineSimilarity"] },
  ...["all equal", "within one ulp", "one huge coordinate", "constant vectors", "rows of zeros"].map((kind) => ({
    kind,
    rows: 20_000,
    dimension: 768,
    similarities: ALL,
  })),
];

if (!enableRelaxedSimd()) throw new Error("This runtime has no relaxed SIMD, and the bench compares both builds; use Node 20 or later.");
const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
const program = compileNativeScan(directory);
const machine = {
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  node: process.version,
  yardstick: program ? "gcc -O3 -march=native -ffast-math" : null,
};
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; top ${K}; yardstick: ${machine.yardstick ?? "none"}`);
const measured = [];

function report(entry) {
  measured.push(entry);
  const { set, what, plan, milliseconds: ms, ratio, gigabytesPerSecond, note } = entry;
  const spread = `${ms.low.toFixed(2)}–${ms.high.toFixed(2)}`;
  console.log(
    [
      set.padEnd(32),
      what.padEnd(26),
      plan.padEnd(14),
      ms.median.toFixed(3).padStart(9),
      spread.padStart(16),
      (ratio === undefined ? "" : ratio.toFixed(3)).padStart(7),
      (gigabytesPerSecond === undefined ? "" : gigabytesPerSecond.toFixed(1)).padStart(7),
      ` ${note ?? ""}`,
    ].join(" "),
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

async function build(buildName, set, ids, matrix) {
  init({ build: buildName });
  const index = await VectorIndex.create({ dimension: set.dimension });
  const start = performance.now();
  index.upsertMany(ids, matrix);
  const elapsedMs = performance.now() - start;
  measured.push({
    set: set.name,
    what: "build",
    plan: buildName,
    rowsPerSecond: (set.rows / elapsedMs) * 1000,
    memoryRatio: index.memoryBytes / matrix.byteLength,
  });
  console.log(
    `${set.name.padEnd(32)} build, ${buildName}: ${((set.rows / elapsedMs) * 1000).toFixed(0)} rows/s; memory ${(index.memoryBytes / matrix.byteLength).toFixed(3)} × the float32 data`,
  );
  return index;
}

/**
 * Contenders take turns: query by query, or, `inARow`, each with all queries before the next has its turn. The latter is for searches in worker threads: between
 * two programs in turns, the system often wakes both workers on one core (bench/cores.mjs measures that). Each entry of `contenders` is {plan, run(query) -> answer, index?}. With an index,
 * the note says how many rows the last query read further of.
 */
async function measure(set, data, native, similarity, what, contenders, { isSelected, inARow = false } = {}) {
  const d = set.dimension;
  for (const { plan, run } of contenders) {
    for (const query of [0, 1]) {
      const answer = await run(data.subarray((set.rows + query) * d, (set.rows + query + 1) * d));
      verify(`${set.name} ${what} ${plan}`, answer, oracle(data, set.rows, d, (set.rows + query) * d, similarity, K, isSelected));
    }
  }
  const times = new Map([["C", []], ...contenders.map(({ plan }) => [plan, []])]);
  for (let round = 0; round < ROUNDS; round++) {
    const turns = Array.from({ length: QUERIES }, (_, query) => query);
    const scan = async (query) => native && times.get("C").push((await native.scan(query, similarity)).ms);
    const search = async ({ plan, run }, query) => {
      const vector = data.subarray((set.rows + query) * d, (set.rows + query + 1) * d);
      const start = performance.now();
      await run(vector);
      times.get(plan).push(performance.now() - start);
    };
    if (inARow) {
      for (const query of turns) await scan(query);
      for (const contender of contenders) for (const query of turns) await search(contender, query);
      continue;
    }
    for (const query of turns) {
      await scan(query);
      for (const contender of contenders) await search(contender, query);
    }
  }
  const yardstick = native ? summarize(times.get("C")) : undefined;
  const bytes = set.rows * d * 4;
  for (const [plan, values] of times) {
    if (values.length === 0) continue;
    const milliseconds = summarize(values);
    const ratio = yardstick && milliseconds.median / yardstick.median;
    // Plans for few selected rows do not count, which leaves the counts of the search before.
    const scan = isSelected ? undefined : contenders.find((contender) => contender.plan === plan)?.index?.lastScan;
    const note = scan && `${scan.fullRows} rows by whole codes, ${scan.exactRows} exactly`;
    report({ set: set.name, what, plan, milliseconds, ratio, gigabytesPerSecond: bytes / milliseconds.median / 1e6, note });
  }
  return yardstick;
}

for (const set of SETS) {
  set.name = `${set.kind}, ${set.rows} × ${set.dimension}`;
  if (options.only && !set.name.includes(options.only)) continue;
  const data = makeData({ ...set, queries: QUERIES });
  const matrix = data.subarray(0, set.rows * set.dimension);
  const ids = Array.from({ length: set.rows }, (_, row) => idOf(row));
  const native = program && startNativeScan(program, data, set.rows, set.dimension, QUERIES);
  const relaxed = await build("relaxed", set, ids, matrix);
  const simd = await build("simd", set, ids, matrix);
  const contendersOf = (search) => [
    { plan: "relaxed", index: relaxed, run: (q) => relaxed.search(q, search) },
    { plan: "simd", index: simd, run: (q) => simd.search(q, search) },
  ];
  let yardstick;
  for (const similarity of set.similarities) {
    const search = { k: K, similarity };
    const floats = { plan: "simd floats", run: (q) => simd.search(q, { ...search, plan: "floats" }) };
    yardstick = await measure(set, data, native, similarity, similarity, [...contendersOf(search), floats]);
  }
  for (const share of set.filters ?? []) {
    const { mask, chosen } = maskOf(relaxed, set.rows, share);
    await measure(set, data, native, "cosineSimilarity", `cosine, filter ${share * 100} %`, contendersOf({ k: K, filter: mask }), {
      isSelected: (row) => chosen.has(row),
    });
  }
  if (set.many) {
    const queries = Array.from({ length: 100 }, (_, i) => data.subarray(i * 37 * set.dimension, (i * 37 + 1) * set.dimension));
    for (const [plan, index] of [
      ["relaxed", relaxed],
      ["simd", simd],
    ]) {
      const answers = index.searchMany(queries, { k: K });
      for (const i of [0, 50])
        verify(`100 queries ${plan}`, answers[i], oracle(data, set.rows, set.dimension, i * 37 * set.dimension, "cosineSimilarity", K));
      const values = [];
      for (let round = 0; round < ROUNDS; round++) {
        const start = performance.now();
        index.searchMany(queries, { k: K });
        values.push((performance.now() - start) / queries.length);
      }
      const milliseconds = summarize(values);
      report({
        set: set.name,
        what: "100 queries, per query",
        plan,
        milliseconds,
        ratio: yardstick && milliseconds.median / yardstick.median,
      });
    }
  }
  if (set.shards) {
    init({});
    const one = await ParallelVectorIndex.create({ dimension: set.dimension, shards: 1 });
    const two = await ParallelVectorIndex.create({ dimension: set.dimension, shards: 2 });
    for (const index of [one, two]) await index.upsertMany(ids, matrix);
    const contenders = [
      { plan: "1 shard", run: (q) => one.search(q, { k: K }) },
      { plan: "2 shards", run: (q) => two.search(q, { k: K }) },
    ];
    await measure(set, data, native, "cosineSimilarity", "cosine, in workers, in a row", contenders, { inARow: true });
    await one.free();
    await two.free();
  }
  native?.stop();
  relaxed.free();
  simd.free();
}

rmSync(directory, { recursive: true, force: true });
const results = fileURLToPath(new URL("results/", import.meta.url));
mkdirSync(results, { recursive: true });
writeFileSync(join(results, "core.json"), JSON.stringify({ machine, k: K, at: new Date().toISOString(), measured }, null, 2));
