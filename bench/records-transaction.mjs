/**
 * What does a transaction of 1,000 deletes cost, in single deletes? The batches of transaction-batches.ts are there for this. Both are durable when they return.
 *
 * usage: node bench/records-transaction.mjs [rounds]        (after `npm run build`)
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRecordStore } from "../dist/records/open.js";
import { median, report } from "./records-report.mjs";

const ROUNDS = Number(process.argv[2] ?? 7);
const SINGLES = 20;
const dataDir = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
try {
  const ref = { database: "bench", branch: "main" };
  const store = await openRecordStore({ dataDir });
  await store.createBranch(ref);
  await store.createTable(ref, "t", [{ name: "name", type: "string" }]);
  const fill = async (count) => {
    const ids = Array.from({ length: count }, (_, i) => `r${i}`);
    await store.insertRecords(
      ref,
      "t",
      ids.map((id) => ({ id, name: id })),
    );
    return ids;
  };
  const oneMs = [];
  const thousandMs = [];
  for (let round = 0; round <= ROUNDS; round++) {
    for (const id of await fill(SINGLES)) {
      const startedAt = performance.now();
      await store.deleteRecord(ref, "t", id);
      if (round > 0) oneMs.push(performance.now() - startedAt);
    }
    const operations = (await fill(1_000)).map((id) => ({ delete: { table: "t", id } }));
    const startedAt = performance.now();
    const results = await store.transaction(ref, operations);
    if (round > 0) thousandMs.push(performance.now() - startedAt);
    if (results.some((result) => result.rows !== 1)) throw new Error("a delete found nothing");
    if ((await store.query(ref, "t", {})).records.length > 0) throw new Error("a record is left");
  }
  report("deletes on the embedded store", [
    ["one delete", oneMs],
    ["a transaction of 1,000 deletes", thousandMs],
  ]);
  console.log(`ratio of medians ${(median(thousandMs) / median(oneMs)).toFixed(1)} (at most 60)`);
  await store.close();
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
