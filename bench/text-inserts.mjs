/** For bench:text --inserts: what inserts cost a table whose words are held, beside one whose words are not. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRecordStore } from "../dist/records/open.js";
import { openSearchStore } from "../dist/search/open-search-store.js";
import { searchTable } from "../dist/search/text/text-answer.js";

const REF = { database: "bench", branch: "main" };
const DIMENSION = 384;
const BATCH = 500;
const PATIENT_MS = 600_000;

/**
 * Batches go into both tables in turns, so that whatever else the machine does concerns both. CPU seconds are those of
 * the whole process: the database, the search worker, garbage collection; each batch until a search has seen it.
 */
export async function measureInserts({ rows, words, anyWord }) {
  for (const dimension of [undefined, DIMENSION]) {
    const dataDir = mkdtempSync(join(tmpdir(), "lodestone-bench-inserts-"));
    const records = await openRecordStore({ dataDir, statementTimeoutMs: PATIENT_MS });
    const search = await openSearchStore(records, { waitMs: PATIENT_MS });
    try {
      await records.createBranch(REF);
      const vector = dimension === undefined ? [] : [{ name: "embedding", type: "vector", vector: { dimension } }];
      const columns = [{ name: "title", type: "string" }, { name: "text", type: "text" }, { name: "group", type: "int" }, ...vector];
      for (const table of ["held", "plain"]) await records.createTable(REF, table, columns);
      const sees = {
        held: (query) => searchTable({ records, search, ref: REF }, "held", { query, fuzziness: 0, page: { size: 0 } }),
        plain: async () => {},
      };
      const spent = { held: 0, plain: 0 };
      await sees.held("nothing");
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
          await records.insertRecords(REF, table, batch);
          if (dimension !== undefined) {
            const queryVector = batch[0].embedding;
            await search.vectorSearch(REF, table, { column: "embedding", queryVector, size: 1, consistency: "strong" });
          }
          await sees[table]("nothing");
          const { user, system } = process.cpuUsage(before);
          // The first batches compile what the others use.
          if (start >= rows / 5) spent[table] += (user + system) / 1e6;
        }
      }
      const what = dimension === undefined ? "without vectors" : `with vectors × ${dimension}`;
      const ratio = (spent.held / spent.plain).toFixed(3);
      console.log(
        `inserts of ${rows.toLocaleString("en")} records of ${words} words, ${what}: ` +
          `words held ${spent.held.toFixed(1)} CPU s, not held ${spent.plain.toFixed(1)}: × ${ratio}`,
      );
    } finally {
      await search.close();
      await records.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  }
}
