/**
 * Does a page cost the same wherever it is? 100,000 records with a filter, a sort and a cursor: the first pages against the last ones, read forwards by
 * cursors, for a sort by id (the primary key's index), by a column without an index, and by one that is unique (with an index).
 *
 * usage: node bench/records-query.mjs [records]        (after `npm run build`)
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRecordStore } from "../dist/records/open.js";
import { median, report } from "./records-report.mjs";

const RECORDS = Number(process.argv[2] ?? 100_000);
const SIZE = 100;
const SAMPLE = 9;
const dataDir = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
try {
  const ref = { database: "bench", branch: "main" };
  const store = await openRecordStore({ dataDir });
  await store.createBranch(ref);
  await store.createTable(ref, "t", [
    { name: "name", type: "string" },
    { name: "group", type: "int" },
    { name: "number", type: "int", unique: true, notNull: true },
  ]);
  for (let start = 0; start < RECORDS; start += 1_000) {
    const rows = Array.from({ length: Math.min(1_000, RECORDS - start) }, (_, j) => {
      const i = start + j;
      return {
        id: `r${String((i * 7919) % RECORDS).padStart(6, "0")}`,
        name: `name ${(i * 31) % 1000}`,
        group: i % 50,
        number: (i * 104_729) % RECORDS,
      };
    });
    await store.insertRecords(ref, "t", rows);
  }
  const filter = { group: { $lt: 45 } };
  for (const sort of [{ id: "asc" }, { number: "desc" }, { name: "asc" }]) {
    const expected = Array.from({ length: RECORDS }, (_, i) => i).filter((i) => i % 50 < 45).length;
    const firstMs = [];
    const lastMs = [];
    for (const [pageRequest, times] of [
      [{ size: SIZE }, firstMs],
      [{ size: SIZE, before: "end" }, undefined],
    ]) {
      let answer;
      for (let i = 0; i < SAMPLE; i++) {
        const startedAt = performance.now();
        answer = await store.query(ref, "t", { filter, sort, page: pageRequest, columns: ["name"] });
        times?.push(performance.now() - startedAt);
      }
      if (times !== undefined) continue;
      // Two pages back, so that the last page is reached as a client reaches it: forwards, by the cursor of the page before.
      const before = await store.query(ref, "t", { page: { before: answer.meta.page.cursor } });
      for (let i = 0; i < SAMPLE; i++) {
        const startedAt = performance.now();
        const last = await store.query(ref, "t", { page: { after: before.meta.page.cursor } });
        lastMs.push(performance.now() - startedAt);
        if (last.meta.page.more || last.records.length !== SIZE || last.records.at(-1).id !== answer.records.at(-1).id)
          throw new Error("that is not the last page");
      }
    }
    const { aggs } = await store.aggregate(ref, "t", { filter, aggs: { n: { count: "*" } } });
    if (aggs.n !== expected) throw new Error(`${aggs.n} records pass the filter; expected ${expected}`);
    report(`${RECORDS} records, filter, sort ${JSON.stringify(sort)}, pages of ${SIZE}`, [
      ["first page", firstMs],
      ["last page, by cursor", lastMs],
    ]);
    console.log(`  last / first ${(median(lastMs) / median(firstMs)).toFixed(2)} (at most 2)`);
  }
  await store.close();
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
