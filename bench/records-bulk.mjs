/**
 * How fast do 1,000 records with 768-d vectors go in, and what would the fastest way into the database cost? Bulk insert through the record store (checked,
 * with change feed, durable) beside a raw binary COPY of the same rows into a bare table of a plain PGlite (no checks, no triggers, no fsync).
 *
 * usage: node bench/records-bulk.mjs [rounds]        (after `npm run build`)
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { openRecordStore } from "../dist/records/open.js";
import { median, report } from "./records-report.mjs";

const ROUNDS = Number(process.argv[2] ?? 7);
const ROWS = 1_000;
const DIMENSION = 768;

let seed = 1;
/** xorshift32: the same vectors in every run. */
const random = () => {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return (seed >>> 0) / 2 ** 31 - 1;
};
const batch = (round) =>
  Array.from({ length: ROWS }, (_, i) => ({
    id: `r${round}-${i}`,
    name: `record ${i}`,
    embedding: Array.from({ length: DIMENSION }, () => Math.fround(random())),
  }));

const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
try {
  const ref = { database: "bench", branch: "main" };
  const store = await openRecordStore({ dataDir: join(directory, "store") });
  await store.createBranch(ref);
  await store.createTable(ref, "t", [
    { name: "name", type: "string" },
    { name: "embedding", type: "vector", vector: { dimension: DIMENSION } },
  ]);
  const raw = await PGlite.create(join(directory, "raw"));
  await raw.exec(`CREATE TABLE t (id text COLLATE "C" PRIMARY KEY, name text, embedding real[])`);
  await raw.exec("ALTER TABLE t ALTER embedding SET STORAGE EXTERNAL");

  const bulkMs = [];
  const copyMs = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const records = batch(round);
    const file = new Blob([copyFile(records)]);
    let startedAt = performance.now();
    await store.insertRecords(ref, "t", records);
    const bulk = performance.now() - startedAt;
    startedAt = performance.now();
    await raw.query("COPY t FROM '/dev/blob' (FORMAT binary)", [], { blob: file });
    const copy = performance.now() - startedAt;
    if (round === 0) await verify(store, ref, raw, records);
    else {
      bulkMs.push(bulk);
      copyMs.push(copy);
    }
  }
  report("1,000 × 768 into the embedded store", [
    ["bulk insert", bulkMs],
    ["raw COPY", copyMs],
  ]);
  console.log(
    `ratio of medians ${(median(bulkMs) / median(copyMs)).toFixed(2)} (at most 3); bulk insert ${median(bulkMs).toFixed(0)} ms (at most 400 on an idle machine)`,
  );
  await store.close();
  await raw.close();
} finally {
  rmSync(directory, { recursive: true, force: true });
}

/** The first round warms up, and shows that both hold the same. */
async function verify(store, ref, raw, records) {
  const stored = await store.getRecords(
    ref,
    "t",
    records.map(({ id }) => id),
  );
  const { rows } = await raw.query("SELECT id, embedding FROM t");
  const copied = new Map(rows.map((row) => [row.id, row.embedding]));
  for (const [i, record] of records.entries()) {
    const same = (vector) => vector.every((x, j) => Math.fround(x) === record.embedding[j]);
    if (stored[i].id !== record.id || !same(stored[i].embedding) || !same(copied.get(record.id)))
      throw new Error(`record ${record.id} is not what was sent`);
  }
}

/** COPY's binary format: signature, flags, then per row the number of fields and each with its length. */
function copyFile(records) {
  const parts = [Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1")];
  for (const { id, name, embedding } of records) {
    const row = Buffer.alloc(2 + 4 + id.length + 4 + name.length + 4 + 20 + 8 * embedding.length);
    let at = row.writeInt16BE(3);
    for (const text of [id, name]) {
      at = row.writeInt32BE(text.length, at);
      at += row.write(text, at, "latin1");
    }
    at = row.writeInt32BE(20 + 8 * embedding.length, at);
    for (const field of [1, 0, 700, embedding.length, 1]) at = row.writeInt32BE(field, at);
    for (const x of embedding) at = row.writeFloatBE(x, row.writeInt32BE(4, at));
    parts.push(row);
  }
  parts.push(Buffer.from([0xff, 0xff]));
  return Buffer.concat(parts);
}
