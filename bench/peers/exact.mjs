/**
 * The exact searches of all contenders. Each holds the same data in a process of its own (about 6 GB in total
 * at 100,000 × 768). They take turns query by query with a native C scan; slow ones have fewer turns, spread
 * evenly.
 */
import { join } from "node:path";
import { startNativeScan, writeVectors } from "../native-scan.mjs";
import { summarize } from "../statistics.mjs";
import { CONTENDERS } from "./adapters/list.mjs";
import { megabytes, startAll } from "./contender.mjs";
import { checkAnswer, exactAnswer, TOLERANCE } from "./verify.mjs";

const VERIFIED = 5;
/**
 * Turns of the native scan and of the fast contenders. A slow one gets as many as fit its budget, but never
 * fewer than `least`.
 */
const FULL = { turns: 75, least: 7, budgetMs: 7_000, batchRounds: 5 };
const QUICK = { turns: 15, least: 3, budgetMs: 1_000, batchRounds: 2 };
/** Above this ratio of processor time to elapsed time the contender used a second thread. */
const ONE_THREAD = 1.25;

/**
 * @param run   of run.mjs.
 * @param data  f32[rows + run.queries][dimension].
 */
export async function measureExact(run, set, data) {
  const path = join(run.directory, "vectors.f32");
  writeVectors(path, data);
  const native = run.program && startNativeScan(run.program, path, set.rows, set.dimension, run.queries);
  const started = await startAll(run, set, path, CONTENDERS);
  const entries = started.map((entry) => ({ ...entry, times: [], threads: [], places: 0 }));
  const { right, yardstick, exact } = await measureSingle(run, set, entries, native, data);
  const c = native && summarize(yardstick);
  const bytes = set.rows * set.dimension * 4;
  const common = { set: set.name, what: "one query" };
  const speed = (milliseconds) => ({
    milliseconds,
    ratio: c && milliseconds.median / c.median,
    gigabytesPerSecond: bytes / milliseconds.median / 1e6,
  });
  if (c) record(run, { ...common, name: "C", ...speed(c), memoryBytes: bytes });
  for (const entry of right) {
    const { memoryBytes, buildMs } = entry.built;
    record(run, {
      ...common,
      name: entry.contender.name,
      ...speed(summarize(entry.times)),
      memoryBytes,
      buildMs,
      note: noteOf(run, entry),
    });
  }
  for (const { entry, milliseconds } of await measureBatches(run, set, right, exact))
    record(run, { ...common, what: `${run.queries} queries, per query`, name: entry.contender.name, ...speed(milliseconds) });
  native?.stop();
  for (const { link } of entries) await link.stop();
}

/**
 * Runs `step` for each contender. One that throws is skipped from then on, but an error of Lodestone itself
 * ends the bench.
 */
async function eachOf(run, set, entries, step) {
  const remaining = [];
  for (const entry of entries) {
    try {
      await step(entry);
      remaining.push(entry);
    } catch (error) {
      if (entry.contender.exact) throw error;
      run.skip(set, entry.contender, error);
      await entry.link.stop();
    }
  }
  return remaining;
}

async function measureSingle(run, set, entries, native, data) {
  const { turns: all, least, budgetMs } = run.quick ? QUICK : FULL;
  const exact = Array.from({ length: VERIFIED }, (_, query) => exactAnswer(data, set.rows, set.dimension, query, run.k));
  if (native)
    for (let query = 0; query < VERIFIED; query++) checkAnswer("C", await native.scan(query, "cosineSimilarity"), exact[query], false);
  const right = await eachOf(run, set, entries, async (entry) => {
    let warmMs = Number.POSITIVE_INFINITY;
    for (let query = 0; query < VERIFIED; query++) {
      const { ms, answer } = await entry.link.ask({ op: "search", query, k: run.k });
      entry.places += checkAnswer(`${set.name} ${entry.contender.name}`, answer, exact[query], entry.contender.exact);
      warmMs = Math.min(warmMs, ms);
    }
    entry.turns = Math.max(least, Math.min(all, Math.floor(budgetMs / warmMs)));
  });
  const yardstick = [];
  const takers = right.map((entry) => ({ turns: entry.turns, take: (query) => takeTurn(run, entry, query) }));
  if (native) takers.push({ turns: all, take: async (query) => yardstick.push((await native.scan(query, "cosineSimilarity")).ms) });
  for (let turn = 0; turn < all; turn++) {
    for (let i = 0; i < takers.length; i++) {
      const { turns, take } = takers[(turn + i) % takers.length]; // nobody always follows the same one
      if (hasTurn(turn, turns, all)) await take(turn % run.queries);
    }
  }
  return { right, yardstick, exact };
}

/** Whether `turn` (of `all`) is one of a contender's `turns`, which are spread evenly. */
const hasTurn = (turn, turns, all) => Math.floor(((turn + 1) * turns) / all) > Math.floor((turn * turns) / all);

async function takeTurn(run, entry, query) {
  const { ms, cpuMs } = await entry.link.ask({ op: "search", query, k: run.k });
  entry.times.push(ms);
  entry.threads.push(cpuMs / ms);
}

async function measureBatches(run, set, entries, exact) {
  const times = new Map();
  const right = await eachOf(
    run,
    set,
    entries.filter(({ built }) => built.batch),
    async (entry) => {
      const { answers } = await entry.link.ask({ op: "many", k: run.k });
      exact.forEach((wanted, query) => {
        checkAnswer(`${set.name} ${entry.contender.name}, together`, answers[query], wanted, entry.contender.exact);
      });
      times.set(entry, []);
    },
  );
  const { batchRounds } = run.quick ? QUICK : FULL;
  for (let round = 0; round < batchRounds; round++)
    for (const entry of right) times.get(entry).push((await entry.link.ask({ op: "many", k: run.k })).ms / run.queries);
  return right.map((entry) => ({ entry, milliseconds: summarize(times.get(entry)) }));
}

function record(run, entry) {
  run.measured.push(entry);
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

function noteOf(run, entry) {
  const threads = summarize(entry.threads).median;
  return [
    entry.places > 0 ? `${entry.places} of ${VERIFIED * run.k} places differ, near-ties within ${TOLERANCE}` : undefined,
    threads > ONE_THREAD ? `used ${threads.toFixed(1)} threads` : undefined,
  ]
    .filter(Boolean)
    .join("; ");
}
