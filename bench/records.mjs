/**
 * Do records stay fast when there are many of them? Three questions, each answered by a ratio of medians
 * within one run on the embedded store, and each with its limit:
 * - the last page of a filtered and sorted query over 100,000 records to its first;
 * - a transaction of 1,000 deletes to one delete;
 * - inserting 1,000 records of 768-d vectors to a raw COPY of the same rows into the same kind of table of a
 *   separate PGlite (no triggers, no checks of values, the same fsync).
 *
 * Everything is verified before it is timed. Usage: npm run build && npm run bench:records [-- --records
 * 100000]
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { DurableNodeFS } from "../dist/records/engine/embedded/durable-node-fs.js";
import { openRecordStore } from "../dist/records/open.js";
import { readOptions } from "./read-options.mjs";

const options = readOptions(import.meta.url, { records: { type: "string", default: "100000" } });
const RECORDS = Number(options.records);
const DIMENSION = 768;
const PAGE = 100;
const ROUNDS = 15;

let seed = 20260228;
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const timed = async (times, work) => {
  const startedMs = performance.now();
  const result = await work();
  times.push(performance.now() - startedMs);
  return result;
};

const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
const store = await openRecordStore({ dataDir: join(directory, "store") });
const ref = { database: "bench", branch: "main" };
await store.createBranch(ref);
const results = [];
try {
  results.push(await pages(), await deletes(), await bulk());
} finally {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
}

console.log(`Node ${process.version}, ${cpus()[0]?.model ?? "unknown CPU"}, medians of one run`);
console.table(
  Object.fromEntries(
    results.map(({ question, ms, baseMs, limit }) => [
      question,
      { ms: round(ms), "to ms": round(baseMs), ratio: round(ms / baseMs), limit },
    ]),
  ),
);
if (results.some(({ ms, baseMs, limit }) => ms / baseMs > limit)) process.exitCode = 1;

async function pages() {
  await store.createTable(ref, "many", [
    { name: "name", type: "string" },
    { name: "family", type: "string" },
    { name: "score", type: "int" },
  ]);
  for (let at = 0; at < RECORDS; at += 1000) {
    const batch = Array.from({ length: Math.min(1000, RECORDS - at) }, (_, i) => ({
      name: `record ${at + i}`,
      family: random() < 0.9 ? "kept" : "other",
      score: Math.floor(random() * 10_000),
    }));
    await store.insertRecords(ref, "many", batch);
  }
  const first = { filter: { family: "kept" }, sort: { score: "desc" }, columns: ["score"], page: { size: PAGE } };
  const next = (cursor) => ({ columns: ["score"], page: { after: cursor } });

  // Every record once, in order. Also keeps the cursor that leads to the last page.
  let seen = 0;
  let last = Number.POSITIVE_INFINITY;
  let before;
  let cursor;
  for (let answer = await store.query(ref, "many", first); ; answer = await store.query(ref, "many", next(cursor))) {
    for (const { score } of answer.records) {
      assert.ok(score <= last);
      last = score;
    }
    seen += answer.records.length;
    before = cursor;
    cursor = answer.meta.page.cursor;
    if (!answer.meta.page.more) break;
  }
  const { aggs } = await store.aggregate(ref, "many", { filter: { family: "kept" }, aggs: { n: { count: "*" } } });
  assert.equal(seen, aggs.n);

  const [firstMs, lastMs] = [[], []];
  for (let i = 0; i < ROUNDS; i++) {
    await timed(firstMs, () => store.query(ref, "many", first));
    await timed(lastMs, () => store.query(ref, "many", next(before)));
  }
  return { question: `last page of ${seen} records to the first`, ms: median(lastMs), baseMs: median(firstMs), limit: 2 };
}

async function deletes() {
  await store.createTable(ref, "gone", [{ name: "name", type: "string" }]);
  const ids = Array.from({ length: 1000 }, (_, i) => `r${i}`);
  const fill = () =>
    store.insertRecords(
      ref,
      "gone",
      ids.map((id) => ({ id, name: id })),
    );
  const [oneMs, allMs] = [[], []];
  for (let i = 0; i < 7; i++) {
    await fill();
    const operations = ids.map((id) => ({ delete: { table: "gone", id, failIfMissing: true } }));
    const answers = await timed(allMs, () => store.transaction(ref, operations));
    assert.equal(answers.length, 1000);
    assert.deepEqual((await store.query(ref, "gone", {})).records, []);
    await fill();
    for (const id of ids.slice(0, 20)) await timed(oneMs, () => store.deleteRecord(ref, "gone", id));
    await store.sql(ref, { statement: 'DELETE FROM "gone"' });
  }
  return { question: "transaction of 1,000 deletes to one delete", ms: median(allMs), baseMs: median(oneMs), limit: 60 };
}

async function bulk() {
  await store.createTable(ref, "vectors", [
    { name: "name", type: "string" },
    { name: "embedding", type: "vector", vector: { dimension: DIMENSION } },
  ]);
  const raw = await PGlite.create({
    fs: new DurableNodeFS(join(directory, "raw")),
    startParams: PGlite.defaultStartParams.filter((parameter) => parameter !== "-F").concat(["-c", "wal_sync_method=fsync"]),
  });
  await raw.exec(`CREATE TABLE vectors (id text COLLATE "C" PRIMARY KEY, name text COLLATE "C", embedding real[], version int4 NOT NULL DEFAULT 0,
    created timestamptz NOT NULL DEFAULT now(), updated timestamptz NOT NULL DEFAULT now()); ALTER TABLE vectors ALTER embedding SET STORAGE EXTERNAL`);
  const [bulkMs, copyMs] = [[], []];
  for (let round = 0; round < 8; round++) {
    const records = Array.from({ length: 1000 }, (_, i) => ({
      id: `v${round}-${i}`,
      name: `vector ${i}`,
      embedding: Array.from({ length: DIMENSION }, () => Math.fround(random() * 2 - 1)),
    }));
    const blob = new Blob([copyOf(records)]);
    await timed(bulkMs, () => store.insertRecords(ref, "vectors", records));
    await timed(copyMs, () => raw.query("COPY vectors (id, name, embedding) FROM '/dev/blob' (FORMAT binary)", [], { blob }));
    const stored = await store.getRecord(ref, "vectors", records[7].id, { columns: ["embedding"] });
    const copied = (await raw.query("SELECT embedding FROM vectors WHERE id = $1", [records[7].id])).rows[0].embedding;
    assert.deepEqual(stored.embedding.map(Math.fround), records[7].embedding);
    assert.deepEqual(copied.map(Math.fround), records[7].embedding);
  }
  await raw.close();
  return { question: `1,000 records of ${DIMENSION}-d inserted to their raw COPY`, ms: median(bulkMs), baseMs: median(copyMs), limit: 3 };
}

/** PostgreSQL's binary COPY format (documentation, "COPY", Binary Format). */
function copyOf(records) {
  const parts = [Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1")];
  const text = (value) => {
    const bytes = Buffer.from(value);
    const head = Buffer.alloc(4);
    head.writeInt32BE(bytes.length);
    parts.push(head, bytes);
  };
  for (const { id, name, embedding } of records) {
    parts.push(Buffer.from([0, 3]));
    text(id);
    text(name);
    const array = Buffer.alloc(4 + 20 + embedding.length * 8);
    array.writeInt32BE(array.length - 4, 0);
    array.writeInt32BE(1, 4); // dimensions
    array.writeInt32BE(0, 8); // no nulls
    array.writeInt32BE(700, 12); // float4
    array.writeInt32BE(embedding.length, 16);
    array.writeInt32BE(1, 20); // lower bound
    for (const [i, element] of embedding.entries()) {
      array.writeInt32BE(4, 24 + i * 8);
      array.writeFloatBE(element, 28 + i * 8);
    }
    parts.push(array);
  }
  parts.push(Buffer.from([0xff, 0xff]));
  return Buffer.concat(parts);
}

function round(value) {
  return Number(value.toPrecision(3));
}
