/**
 * A life of a search store whose vectors are on disk, in a process of its own, which a test kills. The records are in memory, and the
 * same in every life: step by step, from one seed. `node --import tsx vectors-life.ts FOLDER STEPS`: makes as many steps before the
 * store is opened, compares searches with the oracle, and goes on, step by step, until it is killed. It prints each step that it has
 * finished, and ends by itself after many.
 */
import { mkdirSync } from "node:fs";
import { seededRandom } from "../../bench/data.mjs";
import { openSearchStore } from "../../dist/search/open-search-store.js";
import type { SearchStore } from "../../src/search/search-store.ts";
import { KeptItems } from "./kept-items.ts";
import { MemoryRecords } from "./memory-records.ts";

const REF = { database: "db", branch: "main" };
const DIMENSION = 128;
const ROWS = 2_000;
/** Enough for every point to be passed. */
const STEPS = 2_000;

const [folder, before] = process.argv.slice(2) as [string, string];
const random = seededRandom(29);
const vectorOf = (i: number): number[] | null =>
  i % 50 === 0 ? null : Array.from({ length: DIMENSION }, (_, j) => (j % 8 < 4 ? random() : 0.1 * random()));
const records = new MemoryRecords();
records.createBranch(REF);
records.createTable(REF, "items", [
  { name: "v", type: "vector", vector: { dimension: DIMENSION } },
  { name: "color", type: "string" },
]);
const items = new KeptItems(REF, records, vectorOf);
items.write(0, ROWS);

function makeStep(step: number): void {
  const from = (step * 37) % ROWS;
  items.write(from, from + 20, [`i${(step * 101) % ROWS}`, `i${(step * 211) % ROWS}`]);
}

async function check(store: SearchStore, step: number): Promise<void> {
  const similarity = (["cosineSimilarity", "l2", "l1"] as const)[step % 3]!;
  const query = Array.from({ length: DIMENSION }, (_, j) => Math.sin(step + j));
  await items.check(store, query, similarity, { size: 30 });
}

let step = 0;
while (step < Number(before)) makeStep(step++);
mkdirSync(folder, { recursive: true });
const faults: string[] = [];
const store = (await openSearchStore(records, {
  pollMs: 50,
  waitMs: 600_000,
  snapshotDir: folder,
  snapshotEveryMs: 50,
  journalBytes: 50_000,
  onDiskFromBytes: 1,
  onFault: (error: unknown) => faults.push((error as Error).message),
})) as unknown as SearchStore;
for (const n of [0, 1, 2]) await check(store, step + n);
if (faults.length > 0) throw new Error(faults.join("; "));
const last = step + STEPS;
while (step < last) {
  makeStep(step);
  await check(store, step);
  process.stdout.write(`${++step}\n`);
}
await store.close();
