/**
 * Approximate neighbours beside Lodestone's exact ones: recall against the time of a query. Lodestone's
 * answers are the truth; the first ones are checked against the float64 oracle. For each `ef` all queries are
 * asked in turns: Lodestone, then each index, and now and then the C scan. A row counts as found when its
 * exact score reaches that of the tenth, so another row at the same distance is as good. Build times are
 * processor time, because one thread builds for minutes, during which other programs take their share.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { describeData } from "../describe-data.mjs";
import { startNativeScan, writeVectors } from "../native-scan.mjs";
import { summarize } from "../statistics.mjs";
import { APPROXIMATE, CONTENDERS } from "./adapters/list.mjs";
import { startAll } from "./contender.mjs";
import { checkAnswer, exactAnswer } from "./verify.mjs";

const VERIFIED = 3;
const EXPANSIONS = [10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
const QUICK_EXPANSIONS = [10, 64, 256];
const OURS = "Lodestone";
/** Difference of cosines treated as a tie; float32 sums differ by less. */
const TIE = 1e-6;
/** The C scan takes a turn after this many queries. */
const SCAN_EVERY = 10;
/** Number of queries whose cosines with all rows describe the data. */
const DESCRIBED_QUERIES = 15;

/** @param run  of run.mjs. @param data  f32[rows + run.queries][dimension]. */
export async function measureApproximate(run, set, data) {
  const description = describeData(data, set.rows, set.dimension, DESCRIBED_QUERIES);
  console.log(`${set.name}: ${description}`);
  console.log("Building takes minutes for each graph.");
  const path = join(run.directory, "vectors.f32");
  writeVectors(path, data);
  const fingerprint = createHash("sha256").update(data).digest("hex").slice(0, 12);
  const started = await startAll({ ...run, isWanted: (one) => one.name === OURS || run.isWanted(one) }, { ...set, fingerprint }, path, [
    CONTENDERS.find(({ name }) => name === OURS),
    ...APPROXIMATE,
  ]);
  const [ours, ...indexes] = started;
  if (ours?.contender.name !== OURS) throw new Error("Lodestone itself did not start.");
  const native = run.program && startNativeScan(run.program, path, set.rows, set.dimension, run.queries);
  const floors = await exactFloors(run, set, data, ours);
  const search = (entry, query) => entry.link.ask({ op: "search", query, k: run.k });
  const common = { set: set.name, kind: set.kind };
  const [exactTimes, scanMs] = [[], []];
  const points = new Map(indexes.map(({ contender }) => [contender.name, []]));
  /**
   * Runs the step for each index still in the race. One that fails is skipped from then on, and keeps the
   * points it has.
   */
  const eachIndex = async (step) => {
    for (const entry of [...indexes]) {
      try {
        await step(entry);
      } catch (error) {
        indexes.splice(indexes.indexOf(entry), 1);
        run.skip(set, entry.contender, error);
      }
    }
  };
  for (const ef of run.quick ? QUICK_EXPANSIONS : EXPANSIONS) {
    await eachIndex(async (entry) => {
      await entry.link.ask({ op: "tune", ef });
      for (let query = 0; query < run.queries; query++) await search(entry, query); // the graph is in the caches again
      Object.assign(entry, { hits: 0, times: [] });
    });
    for (let query = 0; query < run.queries; query++) {
      exactTimes.push(await search(ours, query));
      if (native && query % SCAN_EVERY === 0) scanMs.push((await native.scan(query, "cosineSimilarity")).ms);
      await eachIndex(async (entry) => {
        const answered = await search(entry, query);
        entry.times.push(answered);
        entry.hits += hitsOf(answered.answer.rows, floors[query], data, set, query);
      });
    }
    for (const { contender, hits, times } of indexes) {
      const point = { ef, recall: hits / (run.queries * run.k), ...timesOf(times) };
      points.get(contender.name).push(point);
      console.log(
        `${set.name}  ${contender.name.padEnd(18)} ef ${String(ef).padStart(4)}  recall ${point.recall.toFixed(3)}  ${describe(point)}`,
      );
    }
  }
  const exact = timesOf(exactTimes);
  const c = scanMs.length > 0 ? summarize(scanMs) : undefined;
  console.log(`${set.name}  ${OURS.padEnd(18)} exact    recall 1.000  ${describe(exact)}${c ? `; C scan ${c.median.toFixed(2)} ms` : ""}`);
  const { buildMs, buildCpuMs, memoryBytes } = ours.built;
  run.measured.push({
    ...common,
    name: OURS,
    description,
    buildMs,
    buildCpuMs,
    memoryBytes,
    points: [{ recall: 1, ...exact }],
    scan: c,
  });
  for (const { contender, built } of started.slice(1)) {
    run.measured.push({
      ...common,
      name: contender.name,
      buildMs: built.buildMs,
      buildCpuMs: built.buildCpuMs,
      memoryBytes: built.memoryBytes,
      points: points.get(contender.name),
    });
  }
  native?.stop();
  for (const { link } of started) await link.stop();
}

/**
 * Wall-clock time and processor time. The latter leaves out interruptions by other programs, which affect
 * long searches more than short ones.
 */
const timesOf = (answered) => ({
  milliseconds: summarize(answered.map(({ ms }) => ms)),
  cpuMilliseconds: summarize(answered.map(({ cpuMs }) => cpuMs)),
});

const describe = ({ milliseconds, cpuMilliseconds }) =>
  `${milliseconds.median.toFixed(3)} ms, ${cpuMilliseconds.median.toFixed(3)} ms of CPU time`;

/** @returns for each query, the lowest cosine among its k best rows. */
async function exactFloors(run, set, data, ours) {
  const floors = [];
  for (let query = 0; query < run.queries; query++) {
    const { answer } = await ours.link.ask({ op: "search", query, k: run.k });
    if (query < VERIFIED) {
      checkAnswer(`${set.name} ${OURS}`, answer, exactAnswer(data, set.rows, set.dimension, query, run.k), true);
    }
    floors.push(answer.scores.at(-1) - 1);
  }
  return floors;
}

function hitsOf(rows, floor, data, { rows: count, dimension: d }, query) {
  const queryAt = (count + query) * d;
  return new Set(rows.filter((row) => row >= 0 && row < count && cosine(data, row * d, queryAt, d) >= floor - TIE)).size;
}

function cosine(data, a, b, d) {
  let [dot, aa, bb] = [0, 0, 0];
  for (let j = 0; j < d; j++) {
    dot += data[a + j] * data[b + j];
    aa += data[a + j] ** 2;
    bb += data[b + j] ** 2;
  }
  return dot / Math.sqrt(aa * bb || 1);
}
