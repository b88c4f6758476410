/** For bench:text --inserts: what inserts cost a table whose words are held, beside one whose words are not. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRecordStore } from "../dist/records/open.js";
import { openSearchStore } from "../dist/search/open-search-store.js";
import { searchTable } from "../dist/search/text/text-answer.js";
import { cpuMs } from "./statistics.mjs";

const REF = { database: "bench", branch: "main" };
const DIMENSION = 384;
const BATCH = 500;
const PATIENT_MS = 600_000;

/**
 * Batches go into both tables in turns, so that whatever else the machine does concerns both. CPU seconds are those of
 * the whole process: the database, the search worker, garbage collection; each batch until a search has seen it. The
 * ratio is that of the medians of a batch: the database's checkpoints fall into few of them, and into one table's or the
 * other's by chance.
 */
export async function measureInserts({ rows, words, anyWord }) {
  for (const dimension of [undefined, DIMENSION])
    for (const together of [BATCH, 1]) await measure({ rows, words, anyWord, dimension, together });
}

/** @param together  records of one insert. */
async function measure({ rows, words, anyWord, dimension, together }) {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-bench-inserts-"));
  const records = await openRecordStore({ dataDir, statementTimeoutMs: PATIENT_MS });
  const search = await openSearchStore(records, { waitMs: PATIENT_MS });
  try {
    await records.createBranch(REF);
    const vector = dimension === undefined ? [] : [{ name: "embedding", type: "vector", vector: { dimension } }];
    const columns = [{ name: "title", type: "string" }, { name: "text", type: "text" }, { name: "group", type: "int" }, ...vector];
    for (const table of ["held", "plain"]) await records.createTable(REF, table, columns);
    const findNothing = () => searchTable({ records, search, ref: REF }, "held", { query: "nothing", fuzziness: 0, page: { size: 0 } });
    const spent = { held: [], plain: [] };
    await findNothing();
    for (let start = 0; start < rows; start += BATCH) {
      const batch = Array.from({ length: BATCH }, (_, i) => ({
        id: `r${start + i}`,
        title: anyWord(),
        text: Array.from({ length: words - 1 }, anyWord).join(" "),
        group: i,
        ...(dimension !== undefined && { embedding: Array.from({ length: dimension }, () => Math.random() - 0.5) }),
      }));
      // Each table is the first as often as the other.
      for (const table of (start / BATCH) % 2 === 0 ? ["held", "plain"] : ["plain", "held"]) {
        const before = process.cpuUsage();
        for (let i = 0; i < BATCH; i += together) await records.insertRecords(REF, table, batch.slice(i, i + together));
        // Words and vectors of a batch are there together.
        if (dimension !== undefined) {
          const queryVector = batch[0].embedding;
          await search.vectorSearch(REF, table, { column: "embedding", queryVector, size: 1, consistency: "strong" });
        } else if (table === "held") await findNothing();
        // The first batches compile what the others use.
        if (start >= rows / 5) spent[table].push(cpuMs(before));
      }
    }
    const what = `${together} at once, ${dimension === undefined ? "without vectors" : `with vectors × ${dimension}`}`;
    const [held, plain] = [spent.held, spent.plain].map((list) => list.sort((a, b) => a - b)[list.length >> 1]);
    console.log(
      `inserts of ${rows.toLocaleString("en")} records of ${words} words, ${what}: ` +
        `${BATCH} of them ${held.toFixed(0)} CPU ms with words held, ${plain.toFixed(0)} without: × ${(held / plain).toFixed(3)}`,
    );
  } finally {
    await search.close();
    await records.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
