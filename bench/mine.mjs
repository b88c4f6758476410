/** npm run bench:mine -- FILE: verifies and times a user's own embeddings; see USAGE. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startProgress } from "../dist/cli/progress.js";
import { enableRelaxedSimd } from "../dist/cli/relaxed-simd.js";
import { init, isRelaxedAvailable, VectorIndex } from "../dist/index.js";
import { describeData } from "./describe-data.mjs";
import { describeMachine } from "./machine.mjs";
import { fill, HEADING, lineOf, SetBench } from "./measure.mjs";
import { compileNativeScan, startNativeScan } from "./native-scan.mjs";
import { InputError, readVectorFile } from "./vector-file.mjs";

const USAGE = `Usage: npm run bench:mine -- FILE... [options]

Searches your own embeddings: every answer is verified against an exhaustive float64 search, then timed beside a C scan
(if there is a C compiler), for cosine, l2 and l1, one query at a time and many at once, with the bytes that were touched.

FILE is .npy (rows × dimension), .fvecs, .bvecs, or .f32 (bare little-endian float32) with --dimension.
Several files are one set of vectors.

  --queries FILE   vectors to search for; without it, 100 of FILE's are taken out and searched for
  --dimension N    of .f32 files
  --rows N         take the first N vectors only
  --top N          how many neighbours (default 10)
  --energies       energies of the principal directions also above 1024 dimensions, where they take minutes
  --help`;

/** Number of rows taken out as queries when the file has none; at most a tenth of it. */
const QUERIES = 100;
const SINGLE = 30;
const ROUNDS = 5;
/** At this dimension the eigenvalues of a covariance take 20 s; the time grows with its cube. */
const MOST_DIMENSIONS_FOR_ENERGIES = 1024;
const MOST_DIMENSIONS = 10_000;
const SIMILARITIES = ["cosineSimilarity", "l2", "l1"];

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      queries: { type: "string" },
      dimension: { type: "string" },
      rows: { type: "string" },
      top: { type: "string" },
      energies: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  const number = (name, most) => {
    if (values[name] === undefined) return undefined;
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 1 || value > most) {
      throw new InputError(`--${name}: got ${JSON.stringify(values[name])}; expected a whole number from 1 to ${most}.`);
    }
    return value;
  };
  if (values.help) return undefined;
  if (positionals.length === 0) throw new InputError(`expected a file.\n\n${USAGE}`);
  return {
    files: positionals,
    queriesFile: values.queries,
    dimension: number("dimension", MOST_DIMENSIONS),
    limit: number("rows", 2 ** 32),
    top: number("top", 1000) ?? 10,
    wantsEnergies: values.energies,
  };
}

/** Reads one file, with its progress on stderr. */
async function read(path, options) {
  let progress;
  try {
    return await readVectorFile(path, {
      ...options,
      onProgress(done, total) {
        progress ??= startProgress(total, 0);
        if (done % 256 === 0 || done === total) progress.update(done, done);
      },
    });
  } finally {
    progress?.stop();
  }
}

/** The vectors of several files as one matrix, the first `limit` of them. */
async function readAll(files, { dimension, limit }) {
  const parts = [];
  let rows = 0;
  for (const file of files) {
    if (rows === limit) break;
    const part = await read(file, { dimension: dimension ?? parts[0]?.dimension, limit: limit === undefined ? undefined : limit - rows });
    parts.push(part);
    rows += part.rows;
  }
  return { matrix: joined(parts.map(({ matrix }) => matrix)), rows, dimension: parts[0].dimension };
}

function joined(parts) {
  if (parts.length === 1) return parts[0];
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** f32[rows + queries][dimension], rows first. */
async function load({ files, queriesFile, dimension, limit }) {
  const base = await readAll(files, { dimension, limit });
  const d = base.dimension;
  if (d > MOST_DIMENSIONS) throw new InputError(`${files[0]}: has dimension ${d}; an index has at most ${MOST_DIMENSIONS}.`);
  if (queriesFile !== undefined) {
    const { matrix, rows: queries } = await read(queriesFile, { dimension: d, limit: QUERIES });
    return { data: joined([base.matrix, matrix]), rows: base.rows, queries, dimension: d };
  }
  const queries = Math.min(QUERIES, Math.floor(base.rows / 10));
  if (queries === 0) throw new InputError(`${files[0]}: has ${base.rows} vectors, too few to take queries from; give --queries FILE.`);
  return { ...takeOut(base, queries), queries, dimension: d };
}

/** Moves `queries` rows, spread evenly, behind the others. */
function takeOut({ matrix, rows, dimension: d }, queries) {
  const data = new Float32Array(matrix.length);
  const kept = rows - queries;
  const step = rows / queries;
  let [row, query] = [0, 0];
  for (let i = 0; i < rows; i++) {
    const isQuery = query < queries && i === Math.floor(query * step);
    data.set(matrix.subarray(i * d, (i + 1) * d), (isQuery ? kept + query++ : row++) * d);
  }
  return { data, rows: kept };
}

async function main() {
  const options = readOptions();
  if (options === undefined) {
    console.log(USAGE);
    return;
  }
  enableRelaxedSimd();
  const build = isRelaxedAvailable() ? "relaxed" : "simd";
  const { data, rows, queries, dimension } = await load(options);
  const set = { name: `${rows} × ${dimension}`, rows, dimension };
  const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
  let native;
  try {
    const program = compileNativeScan(directory);
    const machine = describeMachine(program);
    console.log(
      `${options.files.join(" ")}: ${set.name}, ${queries} queries ${options.queriesFile ? `of ${options.queriesFile}` : "taken out"}`,
    );
    console.log(
      `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; top ${options.top}; yardstick: ${machine.yardstick ?? "none"}`,
    );
    const withEnergies = options.wantsEnergies || dimension <= MOST_DIMENSIONS_FOR_ENERGIES;
    process.stderr.write("Looking at the data …\n");
    console.log(describeData(data, rows, dimension, Math.min(SINGLE, queries), { withEnergies }));
    native = program && startNativeScan(program, data, rows, dimension, queries);
    init({ build });
    const index = await VectorIndex.create({ dimension });
    process.stderr.write("Filling the index …\n");
    const filled = fill(index, set, data);
    const [stored, searchable] = [filled.rowsPerSecond, filled.rowsPerSecondToFirstAnswer].map((value) => Math.round(value));
    console.log(`build: ${stored} rows/s, ${searchable} with the first search; memory ${filled.memoryRatio.toFixed(3)} × the float32 data`);
    console.log("bytes: of rows that a search touched (codes, norms, float32) ÷ those of the float32 data");
    console.log(HEADING);
    const record = (entry) => console.log(lineOf(entry));
    const bench = new SetBench({ set, data, queries, single: SINGLE, k: options.top, rounds: ROUNDS, native, record });
    for (const similarity of SIMILARITIES) {
      process.stderr.write(`Verifying and timing ${similarity} …\n`);
      const one = { plan: index.build, index, run: (query) => index.search(query, { k: options.top, similarity }) };
      const yardstick = await bench.measure(similarity, similarity, [one]);
      if (queries > 1) bench.measureMany(similarity, [one], yardstick);
    }
    index.free();
  } finally {
    native?.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

try {
  await main();
} catch (error) {
  // An error that the user can fix is one sentence. An answer that differs from the oracle's, or a fault of
  // ours, comes with its stack.
  const isInput = error instanceof InputError || String(error.code).startsWith("ERR_PARSE_ARGS") || error.code === "OUT_OF_MEMORY";
  console.error(`bench:mine: ${isInput ? error.message : error.stack}`);
  process.exitCode = 1;
}
