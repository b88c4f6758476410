/**
 * A collection of embeddings through the whole server, on the embedded database: written to a file, imported by
 * `lodestone import`, searched, and found again after a restart. Prints how long each takes, what memory the process
 * holds (Linux: its resident set, and the largest that it was), and the disk. The best of a query for each similarity
 * function are those of the exhaustive float64 search, after the import and after the restart.
 *
 * Usage: npm run build && npm run bench:collection [-- --rows 1000000 --dimension 1536 --kind "steep spectrum"
 * --queries 200 --vectors auto --max-memory 3GB --memory-limit 4GB --folder FOLDER]
 *   --vectors, --max-memory  as `lodestone serve` takes them
 *   --memory-limit           the server runs in a control group of this size (Linux, as root)
 *   --folder                 for the file of vectors and the data (default: a temporary one); a file of an earlier run
 *                            with the same rows is used again
 * The folder needs 3 times the size of the vectors: 18 GB for the defaults.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, lstatSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startProgress } from "../dist/cli/progress.js";
import { makeMemoryGroup } from "../test/reliability/weather/memory-group.ts";
import { rowWriter } from "./data.mjs";
import { describeMachine, describeRun, loadNow } from "./machine.mjs";
import { bestOf, exactScores, idOf, verify } from "./oracle.mjs";
import { statusMb } from "./process.mjs";
import { readOptions } from "./read-options.mjs";
import { DATABASE, start, tablePath } from "./served.mjs";
import { quantile } from "./statistics.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "1000000" },
  dimension: { type: "string", default: "1536" },
  kind: { type: "string", default: "steep spectrum" },
  queries: { type: "string", default: "200" },
  vectors: { type: "string", default: "auto" },
  "max-memory": { type: "string" },
  "memory-limit": { type: "string" },
  folder: { type: "string" },
});
const [rows, dimension, queries] = ["rows", "dimension", "queries"].map((name) => Number(options[name]));
const { kind } = options;
const BATCH = 10_000;
const K = 10;
const SIMILARITIES = ["cosineSimilarity", "l2", "l1"];
const TABLE = "t";

const folder = options.folder ?? mkdtempSync(join(tmpdir(), "lodestone-bench-collection-"));
mkdirSync(folder, { recursive: true });
const file = join(folder, `${kind.replaceAll(" ", "-")}-${rows}-${dimension}.npy`);
const directory = join(folder, "data");
const args = ["--vectors", options.vectors, ...(options["max-memory"] === undefined ? [] : ["--max-memory", options["max-memory"]])];
const limitMegabytes = options["memory-limit"] === undefined ? undefined : 1024 * Number(/^(\d+)GB$/.exec(options["memory-limit"])?.[1]);
const group = limitMegabytes === undefined ? undefined : makeMemoryGroup(`lodestone-bench-${process.pid}`, limitMegabytes);
if (limitMegabytes !== undefined && group === undefined)
  throw new Error("--memory-limit: expected one as 4GB, and the right to make control groups.");
const loads = [loadNow()];
const figures = [];
const note = (name, value, unit) => {
  figures.push([name, value, unit]);
  process.stderr.write(`${name}: ${value} ${unit}\n`);
};

let server;
try {
  const { wanted, vectors } = await writeVectors();
  rmSync(directory, { recursive: true, force: true });
  await started();
  await timed("import", importFile);
  await timed("indexed after it", untilReady);
  noteMemory("after the import");
  await searched(wanted, vectors);
  noteMemory("after the searches");
  // It is begun within seconds.
  while (!hasSnapshot()) await sleep(1000);
  noteMemory("after the snapshot");
  await timed("stop", () => server.stop());
  await timed("start until ready", async () => {
    await started();
    await untilReady();
  });
  noteMemory("after the start");
  await searched(wanted, vectors);
  note("data directory", (directoryBytes() / 1e9).toFixed(2), "GB");
} finally {
  await server?.stop();
  group?.remove();
  if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
}
const bounds = [
  options["max-memory"] && `--max-memory ${options["max-memory"]}`,
  options["memory-limit"] && `control group of ${options["memory-limit"]}`,
];
console.log(
  `${describeRun({ machine: describeMachine(), at: new Date().toISOString(), loads })}; ${kind}, ${rows} × ${dimension} (${((4 * rows * dimension) / 1e9).toFixed(2)} GB of float32), --vectors ${options.vectors}${bounds
    .filter(Boolean)
    .map((bound) => `, ${bound}`)
    .join("")}`,
);
for (const [name, value, unit] of figures) console.log(`${name.padEnd(40)} ${String(value).padStart(10)} ${unit}`);

/** @returns {Promise<{wanted, vectors}>} what the first queries should find, and all queries. */
async function writeVectors() {
  const write = rowWriter({ kind, rows, dimension });
  const isThere = existsSync(file) && statSync(file).size > 4 * rows * dimension;
  const descriptor = isThere ? undefined : openSync(file, "w");
  if (descriptor !== undefined) writeSync(descriptor, npyHeader());
  // Drawn first, so that the file is compared with them while it is written.
  const vectors = new Float32Array(queries * dimension);
  for (let i = 0; i < queries; i++) write(vectors, i * dimension, true);
  let wanted = SIMILARITIES.map(() => []);
  const progress = startProgress(rows, 0);
  for (let first = 0; first < rows; first += BATCH) {
    const count = Math.min(BATCH, rows - first);
    const data = new Float32Array((count + SIMILARITIES.length) * dimension);
    for (let i = 0; i < count; i++) write(data, i * dimension, false);
    if (descriptor !== undefined) writeSync(descriptor, data, 0, 4 * count * dimension);
    data.set(vectors.subarray(0, SIMILARITIES.length * dimension), count * dimension);
    wanted = SIMILARITIES.map((similarity, i) => {
      const scores = exactScores(data, count, dimension, (count + i) * dimension, similarity);
      const own = bestOf(scores, K).map(({ row, score }) => ({ row: first + row, score }));
      return [...wanted[i], ...own].sort((a, b) => b.score - a.score || a.row - b.row).slice(0, K);
    });
    progress.update(first + count, first + count);
    await sleep(0);
  }
  progress.stop();
  if (descriptor !== undefined) closeSync(descriptor);
  return { wanted, vectors };
}

/** NumPy's format 1.0. */
function npyHeader() {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${dimension}), }`.padEnd(117);
  const head = Buffer.from("\u0093NUMPY\u0001\0\0\0", "latin1");
  head.writeUInt16LE(118, 8);
  return Buffer.concat([head, Buffer.from(`${text}\n`)]);
}

async function started() {
  server = await start({ directory, args });
  group?.add(server.pid);
}

async function importFile() {
  rmSync(`${file}.state`, { force: true });
  const program = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
  const target = `${DATABASE.replace("/db/", "")}/${TABLE}`;
  const child = spawn(
    process.execPath,
    [
      program,
      "import",
      file,
      target,
      "--create",
      "--restart",
      "--vector-column",
      "v",
      "--id-prefix",
      "r",
      "--url",
      `http://127.0.0.1:${server.port}`,
    ],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`lodestone import ended with ${code}.`);
}

async function untilReady() {
  for (;;) {
    const state = await server.send("GET", "/readyz").catch(() => undefined);
    if (state?.rows === rows) return;
    await sleep(20);
  }
}

function hasSnapshot() {
  return filesOf(join(directory, "search")).some((path) => path.endsWith(".snapshot"));
}

function directoryBytes() {
  return filesOf(directory).reduce((sum, path) => sum + 512 * lstatSync(path).blocks, 0);
}

function filesOf(path) {
  return existsSync(path) ? readdirSync(path, { recursive: true }).map((name) => join(path, name)) : [];
}

async function searched(wanted, vectors) {
  const search = (i, similarityFunction) => {
    const queryVector = Array.from(vectors.subarray(i * dimension, (i + 1) * dimension));
    return server.send("POST", `${tablePath(TABLE)}/vectorSearch`, { column: "v", queryVector, similarityFunction, size: K });
  };
  for (const [i, similarity] of SIMILARITIES.entries()) {
    const { results } = await search(i, similarity);
    verify(similarity, { results: results.map(({ id, score }) => ({ id: idOf(Number(id.slice(1))), score })) }, wanted[i]);
  }
  for (const similarity of SIMILARITIES) {
    const times = [];
    for (let i = 0; i < queries; i++) {
      const beganAt = performance.now();
      await search(i, similarity);
      times.push(performance.now() - beganAt);
    }
    note(`${similarity}, p50`, quantile(times, 0.5).toFixed(1), "ms");
    note(`${similarity}, p99`, quantile(times, 0.99).toFixed(1), "ms");
  }
  loads.push(loadNow());
}

async function timed(name, work) {
  const beganAt = performance.now();
  await work();
  note(name, ((performance.now() - beganAt) / 1000).toFixed(1), "s");
  loads.push(loadNow());
}

function noteMemory(when) {
  note(`resident set ${when}`, statusMb(server.pid, "VmRSS"), "MB");
  note(`largest resident set ${when}`, statusMb(server.pid, "VmHWM"), "MB");
}
