/**
 * npm run bench:peers [-- --quick] [-- --only TEXT,TEXT] [-- --sizes 10000x128]: Lodestone beside its peers, all exact, top 10 by cosine, one thread each.
 * All contenders hold the same data at once, each in a process of its own (about 6 GB in sum at 100,000 × 768), and take turns query by query with a native C
 * scan; slow ones have fewer turns, spread evenly. Every answer is checked against the float64 oracle before anything is timed. What is not installed, fails or
 * answers wrongly is said, at once and at the end. Prints a table and writes bench/results/peers.json.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { makeData } from "../data.mjs";
import { compileNativeScan, startNativeScan, writeVectors } from "../native-scan.mjs";
import { summarize } from "../statistics.mjs";
import { CONTENDERS } from "./adapters/list.mjs";
import { installedVersions, startContender } from "./contender.mjs";
import { checkAnswer, exactAnswer, TOLERANCE } from "./verify.mjs";

const here = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const { values: options } = parseArgs({
  options: { only: { type: "string" }, sizes: { type: "string", default: "10000x128,100000x768" }, quick: { type: "boolean" } },
});

const K = 10;
const QUERIES = 100;
const VERIFIED = 5;
/** Turns of the native scan and of the fast contenders; a slow one has as many as fit its budget, but never fewer than LEAST_TURNS. */
const TURNS = options.quick ? 15 : 75;
const LEAST_TURNS = options.quick ? 3 : 7;
const BUDGET_MS = options.quick ? 1_000 : 7_000;
const BATCH_ROUNDS = options.quick ? 2 : 5;
/** More processor time than time: the contender used a second thread. */
const ONE_THREAD = 1.25;

if (!existsSync(here("../../dist/index.js"))) {
  console.error("Lodestone is not built; run `npm run build` first.");
  process.exit(1);
}
if (!existsSync(here("node_modules"))) {
  console.error("No peers are installed; run `npm ci --prefix bench/peers` first (350 MB; two of them are compiled).");
  process.exit(1);
}

const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-peers-"));
const program = compileNativeScan(directory);
const machine = {
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memoryGB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  yardstick: program ? "gcc -O3 -march=native -ffast-math" : null,
};
const measured = [];
const skipped = [];
const versions = {};
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; cosine, top ${K}; yardstick: ${machine.yardstick ?? "none"}`);

function skip(set, { name, remedy }, error) {
  const reason = String(error.message ?? error) + (remedy ? `; to install it: ${remedy}` : "");
  skipped.push({ set: set.name, name, reason });
  console.error(`SKIPPED ${name}, ${set.name}: ${reason}`);
}

/** Starts the chosen contenders one after the other, so that the time to build is of one alone. */
async function startAll(set, path) {
  const wanted = options.only?.toLowerCase().split(",");
  const started = [];
  for (const contender of CONTENDERS) {
    if (wanted && !wanted.some((text) => contender.name.toLowerCase().includes(text))) continue;
    let link;
    try {
      Object.assign(versions, installedVersions(contender));
      link = startContender(contender);
      await link.ask({ op: "load" });
      const built = await link.ask({ op: "build", path, rows: set.rows, dimension: set.dimension, queries: QUERIES });
      Object.assign(versions, built.versions);
      console.log(`${set.name}: built ${contender.name} in ${(built.buildMs / 1000).toFixed(2)} s, ${megabytes(built.memoryBytes)} MB`);
      started.push({ contender, link, built, times: [], threads: [], places: 0 });
    } catch (error) {
      skip(set, contender, error);
      await link?.stop();
    }
  }
  return started;
}

const megabytes = (bytes) => (bytes == null ? "?" : (bytes / 1e6).toFixed(0));

/** Runs `step` for each; who throws is skipped from then on. Lodestone's own errors are not a peer's: they end the bench. */
async function eachOf(set, entries, step) {
  const remaining = [];
  for (const entry of entries) {
    try {
      await step(entry);
      remaining.push(entry);
    } catch (error) {
      if (entry.contender.exact) throw error;
      skip(set, entry.contender, error);
      await entry.link.stop();
    }
  }
  return remaining;
}

/** Turn `turn` of `TURNS` belongs to a contender which has `turns` of them, spread evenly. */
const hasTurn = (turn, turns) => Math.floor(((turn + 1) * turns) / TURNS) > Math.floor((turn * turns) / TURNS);

async function takeTurn(entry, query) {
  const { ms, cpuMs } = await entry.link.ask({ op: "search", query, k: K });
  entry.times.push(ms);
  entry.threads.push(cpuMs / ms);
}

async function measureSingle(set, entries, native, data) {
  const exact = Array.from({ length: VERIFIED }, (_, query) => exactAnswer(data, set.rows, set.dimension, query, K));
  if (native)
    for (let query = 0; query < VERIFIED; query++) checkAnswer("C", await native.scan(query, "cosineSimilarity"), exact[query], false);
  const right = await eachOf(set, entries, async (entry) => {
    let warmMs = Number.POSITIVE_INFINITY;
    for (let query = 0; query < VERIFIED; query++) {
      const { ms, answer } = await entry.link.ask({ op: "search", query, k: K });
      entry.places += checkAnswer(`${set.name} ${entry.contender.name}`, answer, exact[query], entry.contender.exact);
      warmMs = Math.min(warmMs, ms);
    }
    entry.turns = Math.max(LEAST_TURNS, Math.min(TURNS, Math.floor(BUDGET_MS / warmMs)));
  });
  const yardstick = [];
  const takers = right.map((entry) => ({ turns: entry.turns, take: (query) => takeTurn(entry, query) }));
  if (native) takers.push({ turns: TURNS, take: async (query) => yardstick.push((await native.scan(query, "cosineSimilarity")).ms) });
  for (let turn = 0; turn < TURNS; turn++) {
    for (let i = 0; i < takers.length; i++) {
      const { turns, take } = takers[(turn + i) % takers.length]; // nobody always follows the same one
      if (hasTurn(turn, turns)) await take(turn % QUERIES);
    }
  }
  return { right, yardstick, exact };
}

async function measureBatches(set, entries, exact) {
  const times = new Map();
  const right = await eachOf(
    set,
    entries.filter(({ built }) => built.batch),
    async (entry) => {
      const { answers } = await entry.link.ask({ op: "many", k: K });
      for (let query = 0; query < VERIFIED; query++)
        checkAnswer(`${set.name} ${entry.contender.name}, ${QUERIES} queries`, answers[query], exact[query], entry.contender.exact);
      times.set(entry, []);
    },
  );
  for (let round = 0; round < BATCH_ROUNDS; round++)
    for (const entry of right) times.get(entry).push((await entry.link.ask({ op: "many", k: K })).ms / QUERIES);
  return right.map((entry) => ({ entry, milliseconds: summarize(times.get(entry)) }));
}

function record(entry) {
  measured.push(entry);
  const { set, what, name, milliseconds: ms, ratio, gigabytesPerSecond, memoryBytes, buildMs, note } = entry;
  const columns = [
    set.padEnd(14),
    what.padEnd(24),
    name.padEnd(30),
    ms.median.toFixed(3).padStart(10),
    `${ms.low.toFixed(2)}–${ms.high.toFixed(2)}`.padStart(18),
    (ratio?.toFixed(3) ?? "").padStart(8),
    (gigabytesPerSecond?.toFixed(1) ?? "").padStart(7),
    (memoryBytes === undefined ? "" : megabytes(memoryBytes)).padStart(6),
    (buildMs === undefined ? "" : (buildMs / 1000).toFixed(2)).padStart(7),
    ` ${note ?? ""}`,
  ];
  console.log(columns.join(" "));
}

function noteOf(entry) {
  const threads = summarize(entry.threads).median;
  return [
    entry.places > 0 ? `${entry.places} of ${VERIFIED * K} places differ, near-ties within ${TOLERANCE}` : undefined,
    threads > ONE_THREAD ? `used ${threads.toFixed(1)} threads` : undefined,
  ]
    .filter(Boolean)
    .join("; ");
}

async function measureSet(set) {
  const data = makeData({ ...set, queries: QUERIES });
  const path = join(directory, "vectors.f32");
  writeVectors(path, data);
  const native = program && startNativeScan(program, path, set.rows, set.dimension, QUERIES);
  const started = await startAll(set, path);
  const { right, yardstick, exact } = await measureSingle(set, started, native, data);
  const c = native && summarize(yardstick);
  const bytes = set.rows * set.dimension * 4;
  const common = { set: set.name, what: "one query" };
  const speed = (milliseconds) => ({
    milliseconds,
    ratio: c && milliseconds.median / c.median,
    gigabytesPerSecond: bytes / milliseconds.median / 1e6,
  });
  if (c) record({ ...common, name: "C", ...speed(c), memoryBytes: bytes });
  for (const entry of right) {
    const { memoryBytes, buildMs } = entry.built;
    record({ ...common, name: entry.contender.name, ...speed(summarize(entry.times)), memoryBytes, buildMs, note: noteOf(entry) });
  }
  for (const { entry, milliseconds } of await measureBatches(set, right, exact))
    record({ ...common, what: `${QUERIES} queries, per query`, name: entry.contender.name, ...speed(milliseconds) });
  native?.stop();
  for (const { link } of started) await link.stop();
}

const started = performance.now();
try {
  for (const size of options.sizes.split(",")) {
    const [rows, dimension] = size.split("x").map(Number);
    await measureSet({ name: `${rows.toLocaleString("en")} × ${dimension}`, kind: "random", rows, dimension });
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
mkdirSync(here("../results"), { recursive: true });
writeFileSync(
  here("../results/peers.json"),
  JSON.stringify(
    {
      machine,
      k: K,
      partial: Boolean(options.only || options.quick),
      versions,
      tolerance: TOLERANCE,
      at: new Date().toISOString(),
      measured,
      skipped,
    },
    null,
    2,
  ),
);
for (const { set, name, reason } of skipped) console.error(`SKIPPED ${name}, ${set}: ${reason}`);
console.log(
  `bench/results/peers.json written after ${((performance.now() - started) / 1000).toFixed(0)} s; npm run bench:report makes the tables.`,
);
