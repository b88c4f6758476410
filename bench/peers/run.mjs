/**
 * npm run bench:peers [-- options]: Lodestone beside its peers, top 10 by cosine, one thread each. First the
 * exact searches (exact.mjs), then the approximate ones, recall against time (approximate.mjs). Every exact
 * answer is checked against the float64 oracle before anything is timed. A peer that is not installed, fails
 * or answers wrongly is reported, at once and again at the end. Prints tables and writes
 * bench/results/peers.json and bench/results/approximate.json.
 *   --part exact|approximate   only one of the two; the second takes minutes for each index that it builds
 *   --only TEXT,TEXT           only peers whose name contains one of these
 *   --sizes 10000x128          sizes of the exact searches; the approximate ones use the last; default 10000x128,100000x768
 *   --kinds "flat spectrum"    data of the approximate searches (data.mjs); default "steep spectrum,flat spectrum"
 *   --lsa FOLDER               approximate searches also on files of real text there (bench/lsa-files.mjs); or LODESTONE_LSA
 *   --graphs FOLDER            keeps the approximate indexes there, with their figures, and reuses them
 *   --quick                    fewer turns
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeData } from "../data.mjs";
import { findLsaSets, loadLsaSet } from "../lsa-files.mjs";
import { describeMachine, loadNow } from "../machine.mjs";
import { compileNativeScan } from "../native-scan.mjs";
import { readOptions } from "../read-options.mjs";
import { measureApproximate } from "./approximate.mjs";
import { measureExact } from "./exact.mjs";
import { TOLERANCE } from "./verify.mjs";

const K = 10;
const QUERIES = 100;
/**
 * Data of the exact searches. Peers that score every row take the same time for any data. Lodestone does not,
 * and this is the harder of the two spectra.
 */
const EXACT_KIND = "flat spectrum";

const here = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const options = readOptions(import.meta.url, {
  part: { type: "string" },
  only: { type: "string" },
  sizes: { type: "string", default: "10000x128,100000x768" },
  kinds: { type: "string", default: "steep spectrum,flat spectrum" },
  lsa: { type: "string", default: process.env.LODESTONE_LSA },
  graphs: { type: "string" },
  quick: { type: "boolean", default: false },
});
if (![undefined, "exact", "approximate"].includes(options.part)) throw new Error('--part: expected "exact" or "approximate".');

if (!existsSync(here("../../dist/index.js"))) {
  console.error("Lodestone is not built; run `npm run build` first.");
  process.exit(1);
}
if (!existsSync(here("node_modules"))) {
  console.error("No peers are installed; run `npm ci --prefix bench/peers` first (350 MB; two of them are compiled).");
  process.exit(1);
}

if (options.graphs) mkdirSync(options.graphs, { recursive: true });

const sizes = options.sizes.split(",").map((size) => {
  const [rows, dimension] = size.split("x").map(Number);
  if (!(rows >= K) || !(dimension >= 1)) throw new Error(`--sizes: got ${size}; expected ROWSxDIMENSION, as in 10000x128.`);
  return { rows, dimension };
});
const nameOf = ({ rows, dimension }) => `${rows.toLocaleString("en")} × ${dimension}`;
const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-peers-"));
const program = compileNativeScan(directory);
const machine = describeMachine(program);
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; cosine, top ${K}; yardstick: ${machine.yardstick ?? "none"}`);

const wanted = options.only?.toLowerCase().split(",");
const run = {
  k: K,
  queries: QUERIES,
  quick: options.quick,
  graphs: options.graphs,
  directory,
  program,
  measured: [],
  skipped: [],
  versions: {},
  loads: [],
  isWanted: ({ name }) => wanted === undefined || wanted.some((text) => name.toLowerCase().includes(text)),
  /** Reports that a peer is left out, and why. */
  skip(set, { name, remedy }, error) {
    const reason = String(error.message ?? error) + (remedy ? `; to install it: ${remedy}` : "");
    run.skipped.push({ set: set.name, name, reason });
    console.error(`SKIPPED ${name}, ${set.name}: ${reason}`);
  },
};

function write(file) {
  mkdirSync(here("../results"), { recursive: true });
  const { measured, skipped, versions, loads } = run;
  const partial = Boolean(options.only || options.quick);
  const result = {
    machine,
    k: K,
    partial,
    kind: EXACT_KIND,
    versions,
    tolerance: TOLERANCE,
    at: new Date().toISOString(),
    loads,
    measured,
    skipped,
  };
  writeFileSync(here(`../results/${file}`), JSON.stringify(result, null, 2));
  for (const { set, name, reason } of skipped) console.error(`SKIPPED ${name}, ${set}: ${reason}`);
  console.log(
    `bench/results/${file} written after ${((performance.now() - started) / 1000).toFixed(0)} s; npm run bench:report makes the tables.`,
  );
  Object.assign(run, { measured: [], skipped: [], versions: {}, loads: [] });
}

const started = performance.now();
try {
  if (options.part !== "approximate") {
    for (const size of sizes) {
      const set = { ...size, name: nameOf(size), kind: EXACT_KIND };
      await measureExact(run, set, makeData({ ...set, queries: QUERIES }));
      run.loads.push(loadNow());
    }
    write("peers.json");
  }
  if (options.part !== "exact") {
    for (const kind of options.kinds.split(",").filter(Boolean)) {
      const set = { ...sizes.at(-1), name: `${kind}, ${nameOf(sizes.at(-1))}`, kind };
      await measureApproximate(run, set, makeData({ ...set, queries: QUERIES }));
      run.loads.push(loadNow());
    }
    for (const found of findLsaSets(options.lsa)) {
      const set = { ...found, name: `${found.kind}, ${nameOf(found)}` };
      await measureApproximate(run, set, loadLsaSet(set, QUERIES));
      run.loads.push(loadNow());
    }
    write("approximate.json");
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
