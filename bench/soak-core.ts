/**
 * npm run soak:core -- [--minutes 60] [--seed N]: random data of every kind, in every build, in memory and with vectors in a
 * file, and sometimes in shards, some of whose codes wait; changed between searches, and some are saved meanwhile. Some files are
 * damaged: then an error is right, and no answer but the right one. Every answer is compared with the float64 oracle to the last bit: ids,
 * order, scores, totalCount. Ends with the number of comparisons (one per result row), or at the first
 * difference, with its seed.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { enableRelaxedSimd } from "../dist/cli/relaxed-simd.js";
import {
  type Build,
  init,
  isRelaxedAvailable,
  LodestoneError,
  openVectorFile,
  ParallelVectorIndex,
  RowDirectory,
  type VectorFile,
  VectorIndex,
  VectorStore,
} from "../dist/index.js";
import { DATA_KINDS, source } from "../test/core/data-kinds.ts";
import { referenceSearch, SIMILARITIES } from "../test/reference.ts";
import { seededRandom } from "./data.mjs";
import { readOptions } from "./read-options.mjs";

const values = readOptions(import.meta.url, {
  minutes: { type: "string", default: "60" },
  seed: { type: "string", default: String(Date.now() % 1e9) },
});
const deadline = Date.now() + Number(values.minutes) * 60_000;
enableRelaxedSimd();
if (!isRelaxedAvailable()) throw new Error("This runtime has no relaxed SIMD; the soak compares all three builds.");

const BUILDS: readonly Build[] = ["relaxed", "simd", "scalar"];
const DIMENSIONS = [1, 2, 3, 15, 16, 17, 47, 48, 63, 64, 65, 96, 128, 200, 384, 768, 1536, 4096, 10_000];
/** Elements of one round's data: the oracle takes about a second for them. */
const ELEMENTS = 300_000;
/**
 * Share of rounds with twenty times as many elements: a dozen segments and more, so that batches, pauses and
 * centres shared by segments occur as in large indexes. (A fault that took ten segments to show was once
 * missed for hours.)
 */
const TALL_SHARE = 0.05;
/** Share of rounds that also search in shards. */
const SHARDED_SHARE = 0.3;
/** Share of the steps in which the file of the vectors is damaged. */
const DAMAGED_SHARE = 0.2;
/** Share of the steps in which an index in memory is saved while it is changed. */
const SAVED_SHARE = 0.2;

const folder = mkdtempSync(join(tmpdir(), "lodestone-soak-core-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

let comparisons = 0;
let answers = 0;
let rounds = 0;
let damaged = 0;
let foundDamaged = 0;
let reloads = 0;
let saves = 0;
let deferred = 0;
let lastReport = Date.now();

async function round(seed: number): Promise<void> {
  // The first numbers of neighbouring seeds are nearly equal, and those of small ones nearly 0: all rounds had one dimension.
  const random = seededRandom(Math.imul(seed, 0x9e3779b1));
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const kinds = Object.keys(DATA_KINDS);
  const dimension = pick(DIMENSIONS);
  // Half of the rounds mix two kinds of data in one index.
  const kind = pick(kinds);
  const sources = [source(kind, dimension, seed), source(random() < 0.5 ? kind : pick(kinds), dimension, seed + 1)] as const;
  const next = () => pick(sources).next();
  // A quarter of the rounds are three times as large, so that high dimensions fill several segments too.
  const isTall = random() < TALL_SHARE;
  const rows = 1 + Math.floor(random() * Math.min(isTall ? 40_000 : 6_000, ((isTall ? 20 : pick([1, 1, 1, 3])) * ELEMENTS) / dimension));
  const indexes: (VectorIndex | ParallelVectorIndex)[] = [];
  const names: string[] = [...BUILDS];
  for (const build of BUILDS) {
    init({ build });
    indexes.push(await VectorIndex.create({ dimension }));
  }
  const path = join(folder, `${seed}.vectors`);
  const file = openVectorFile(path);
  const fileBuild = pick(BUILDS);
  init({ build: fileBuild });
  const inFile = indexes.push(await VectorIndex.create({ dimension, vectors: new VectorStore(file) })) - 1;
  names.push(`${fileBuild} with vectors in a file`);
  const inMemory = indexes.slice(0, inFile);
  /** Its first rows come like those of a replica that loads: their codes wait. */
  let late: ParallelVectorIndex | undefined;
  const lateRows = new RowDirectory();
  // Starting threads takes as long as a small round.
  if (random() < SHARDED_SHARE) {
    const build = pick(BUILDS);
    const shards = pick([2, 3]);
    const vectors = random() < 0.5 ? mkdtempSync(join(folder, "shards-")) : undefined;
    init({ build });
    const isLate = random() < 0.5;
    const index = await ParallelVectorIndex.create({ dimension, shards, vectors, ...(isLate && { rows: lateRows }) });
    if (isLate) late = index;
    indexes.push(index);
    if (vectors === undefined) inMemory.push(index);
    names.push(`${build} in ${shards} shards${vectors === undefined ? "" : " with vectors in files"}${isLate ? ", codes that wait" : ""}`);
  }
  const model = new Map<string, Float32Array>();
  const writes: unknown[] = [];
  const put = (id: string) => {
    const vector = next();
    model.set(id, vector);
    for (const index of indexes) writes.push(index.upsert(id, vector));
  };
  if (late !== undefined) {
    deferred++;
    indexes.splice(indexes.indexOf(late), 1);
  }
  for (let i = 0; i < rows; i++) put(`id${i}`);
  if (late !== undefined) {
    indexes.push(late);
    const ids = [...model.keys()];
    const matrix = new Float32Array(ids.length * dimension);
    [...model.values()].forEach((vector, i) => void matrix.set(vector, i * dimension));
    const places = ids.map((id) => lateRows.add(id));
    writes.push(late.setRows(places, ids, matrix, { isDeferred: true }));
  }
  /** The index whose vectors are in a file is saved and loaded again. */
  const reload = async () => {
    const before = indexes[inFile] as VectorIndex;
    const bytes = before.toBytes();
    before.free();
    init({ build: fileBuild });
    indexes[inFile] = await VectorIndex.fromBytes(bytes, { vectors: new VectorStore(file) });
    reloads++;
  };
  for (let step = 0; step < 3; step++) {
    const stored = pick([...model.values()].slice(0, 50));
    const queries = [next(), stored ?? next(), (stored ?? next()).map((x) => -x)];
    // Enough of them that searchMany takes its own path (assembly/plans/cascade-many.ts); odd and even
    // numbers.
    if (step === 1) for (let i = pick([3, 4, isTall ? 20 : 5]); i > 0; i--) queries.push(next());
    const share = pick([1, 1, 0.5, 0.1, 0.01]);
    const salt = Math.floor(random() * 1e6);
    const filter = share === 1 ? undefined : (id: string) => (Number(id.slice(2)) * 7919 + salt) % 1000 < share * 1000;
    const k = pick([1, 3, 10, 100, isTall ? 1000 : rows + 5]);
    // On their own, indexes as small as these would hardly ever learn anything.
    const plan = pick(["auto", "sketches"] as const);
    // A damaged file is made whole again after the step.
    const mend = random() < DAMAGED_SHARE ? damage(file, random) : undefined;
    if (mend !== undefined) damaged++;
    for (const similarity of SIMILARITIES) {
      const usable = queries.filter((query) => similarity !== "cosineSimilarity" || query.some((x) => x !== 0));
      const expected = usable.map((query) => referenceSearch(model, query, { k, similarity, ...(filter && { filter }) }));
      for (const [b, index] of indexes.entries()) {
        const search = async () =>
          step === 1
            ? index.searchMany(usable, { k, similarity, filter, plan })
            : Promise.all(usable.map(async (query) => index.search(query, { k, similarity, filter, plan })));
        const found = await search().catch((error: unknown) => {
          if (b !== inFile || mend === undefined || !(error instanceof LodestoneError) || error.code !== "CORRUPT") throw error;
          foundDamaged++;
          return [];
        });
        found.forEach((answer, i) => {
          compare(
            answer,
            expected[i]!,
            `seed ${seed}: ${names[b]}, ${kind}, dimension ${dimension}, ${rows} rows, ${similarity}, k ${k}, step ${step}, query ${i}`,
          );
        });
      }
    }
    mend?.();
    const save = random() < SAVED_SHARE ? startSave(pick(inMemory), model) : undefined;
    const pause = Math.ceil(rows / 60);
    for (let i = 0; i < rows / 20; i++) {
      put(`id${Math.floor(random() * rows)}`);
      if (i % pause === 0) await save?.goOn();
    }
    for (let i = 0; i < rows / 20; i++) {
      const id = `id${Math.floor(random() * rows)}`;
      model.delete(id);
      for (const index of indexes) writes.push(index.delete(id));
      if (i % pause === 0) await save?.goOn();
    }
    if (save !== undefined) await checkSave(save, queries, k, `seed ${seed}: saved while it changed, ${kind}, ${dimension}, step ${step}`);
    if (random() < 0.5) await reload();
  }
  await Promise.all(writes);
  for (const index of indexes) await index.free();
  file.close();
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
}

interface Save {
  /** What the index had when the save began. */
  readonly model: Map<string, Float32Array>;
  /** Reads a piece. @returns whether there was one. */
  goOn(): Promise<boolean>;
  readonly pieces: Uint8Array[];
}

function startSave(index: VectorIndex | ParallelVectorIndex, model: Map<string, Float32Array>): Save {
  const reader = index.toStream().getReader();
  const pieces: Uint8Array[] = [];
  const goOn = async () => {
    const { value } = await reader.read();
    if (value !== undefined) pieces.push(value as Uint8Array);
    return value !== undefined;
  };
  return { model: new Map(model), pieces, goOn };
}

/** What was saved answers as the index did when the save began. */
async function checkSave(save: Save, queries: readonly Float32Array[], k: number, where: string): Promise<void> {
  saves++;
  while (await save.goOn());
  const index = await VectorIndex.fromBytes(new Uint8Array(Buffer.concat(save.pieces)));
  for (const similarity of SIMILARITIES) {
    for (const query of queries.slice(0, 2)) {
      if (similarity === "cosineSimilarity" && query.every((x) => x === 0)) continue;
      compare(index.search(query, { k, similarity }), referenceSearch(save.model, query, { k, similarity }), `${where}, ${similarity}`);
    }
  }
  index.free();
}

/** Changes a byte of the file. @returns what changes it back. */
function damage(file: VectorFile, random: () => number): (() => void) | undefined {
  const size = file.getSize();
  if (size === 0) return undefined;
  const at = Math.floor(random() * size);
  const byte = new Uint8Array(1);
  file.read(byte, { at });
  file.write(Uint8Array.of(byte[0]! ^ (1 << Math.floor(random() * 8))), { at });
  return () => void file.write(byte, { at });
}

function summary(): string {
  return `${rounds} data sets, ${answers} answers, ${comparisons} results compared, no difference; ${reloads} reloads from images, ${saves} saves beside writes, ${deferred} loads whose codes wait; ${damaged} times a file was damaged, ${foundDamaged} searches said so`;
}

type Answer = ReturnType<typeof referenceSearch>;

function compare(got: Answer, expected: Answer, where: string): void {
  answers++;
  if (got.totalCount !== expected.totalCount || got.results.length !== expected.results.length) {
    throw new Error(
      `${where}: totalCount ${got.totalCount}, ${got.results.length} results; expected ${expected.totalCount}, ${expected.results.length}`,
    );
  }
  expected.results.forEach(({ id, score }, i) => {
    comparisons++;
    const other = got.results[i]!;
    if (other.id !== id || !Object.is(other.score, score)) {
      throw new Error(`${where}: result ${i} is ${other.id} ${other.score}; expected ${id} ${score}`);
    }
  });
}

const firstSeed = Number(values.seed);
console.log(`seed ${firstSeed}, until ${new Date(deadline).toISOString()}`);
while (Date.now() < deadline) {
  await round(firstSeed + 2 * rounds);
  rounds++;
  if (Date.now() - lastReport > 30_000) {
    lastReport = Date.now();
    console.log(summary());
  }
}
console.log(`done: ${summary()}`);
