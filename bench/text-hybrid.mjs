/** For bench:text --hybrid: words, vectors, and both in one search, through the search store as the server calls it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRecordStore } from "../dist/records/open.js";
import { openSearchStore } from "../dist/search/open-search-store.js";
import { searchTable } from "../dist/search/text/text-answer.js";
import { cpuMs } from "./statistics.mjs";

const REF = { database: "bench", branch: "main" };
const DIMENSION = 384;
const DIRECTIONS = 40;
const BATCH = 1_000;
const QUERIES = 40;
const WARM_UP = 200;
/** No search is warmed up or measured for longer; by ranks a million records take a second each. */
const MOST_CPU_MS = 10_000;
const PATIENT_MS = 600_000;

/**
 * Prints the median and the slowest of QUERIES queries in CPU milliseconds of the process (main thread, search worker,
 * garbage collection), which other work on the machine changes little. Answers are ids alone: no record is read.
 */
export async function measureHybrid({ rows, words, anyWord, wordOfRank, random }) {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-bench-text-"));
  const records = await openRecordStore({ dataDir, statementTimeoutMs: PATIENT_MS });
  const search = await openSearchStore(records, { waitMs: PATIENT_MS });
  try {
    await records.createBranch(REF);
    await records.createTable(REF, "items", [
      { name: "text", type: "text" },
      { name: "group", type: "int" },
      { name: "embedding", type: "vector", vector: { dimension: DIMENSION } },
    ]);
    // A falling spectrum, as embeddings have.
    const directions = Array.from({ length: DIRECTIONS }, () => Array.from({ length: DIMENSION }, () => random() - 0.5));
    const vector = () => {
      const sum = new Array(DIMENSION).fill(0);
      directions.forEach((direction, rank) => {
        const weight = (random() - 0.5) / (rank + 1);
        for (let i = 0; i < DIMENSION; i++) sum[i] += weight * direction[i];
      });
      return sum;
    };
    const item = (id) => ({ id: `r${id}`, text: Array.from({ length: words }, anyWord).join(" "), group: id % 10, embedding: vector() });
    for (let start = 0; start < rows; start += BATCH) {
      await records.insertRecords(
        REF,
        "items",
        Array.from({ length: Math.min(BATCH, rows - start) }, (_, i) => item(start + i)),
      );
    }
    const vectors = Array.from({ length: QUERIES }, vector);
    const three = Array.from({ length: QUERIES }, () => [wordOfRank(50, 500), wordOfRank(50, 5_000), wordOfRank(500, 20_000)].join(" "));
    const stop = Array.from({ length: QUERIES }, () => [0, 1, 2, 3].map((rank) => wordOfRank(rank, rank + 1)).join(" "));
    const near = (i) => ({ column: "embedding", queryVector: vectors[i] });
    // One page of no records: what reading them costs is the same for each.
    const found = (request) =>
      searchTable({ records: { ...records, getRecords: async () => [] }, search, ref: REF }, "items", {
        fuzziness: 0,
        consistency: "eventual",
        page: { size: 10 },
        ...request,
      });
    await search.vectorSearch(REF, "items", { ...near(0), consistency: "strong" });
    await found({ query: three[0], consistency: "strong" });
    console.log(
      `\n${rows.toLocaleString("en")} records of ${words} words and ${DIMENSION} numbers\n\n| | median, CPU ms | slowest, CPU ms |\n|---|---|---|`,
    );
    const time = async (name, run) => {
      const times = [];
      // V8 optimizes the search after some hundred: a server is measured that has been running for a while.
      const warmed = process.cpuUsage();
      for (let i = 0; i < WARM_UP && cpuMs(warmed) < MOST_CPU_MS; i++) await run(i % QUERIES);
      const begun = process.cpuUsage();
      for (let i = 0; i < QUERIES && cpuMs(begun) < MOST_CPU_MS; i++) {
        const before = process.cpuUsage();
        await run(i);
        times.push(cpuMs(before));
      }
      times.sort((a, b) => a - b);
      console.log(`| ${name} | ${times[times.length >> 1].toFixed(2)} | ${times.at(-1).toFixed(1)} |`);
    };
    await time("vectors alone", (i) => search.vectorSearch(REF, "items", near(i)));
    for (const [what, queries] of [
      ["3 words", three],
      ["4 stop words", stop],
    ]) {
      await time(`${what} alone`, (i) => found({ query: queries[i] }));
      for (const method of ["standardized", "linear", "rrf"]) {
        await time(`${what} and vectors, ${method}`, (i) => found({ query: queries[i], vector: near(i), fusion: { method } }));
      }
      await time(`${what} and vectors, standardized, of a tenth`, (i) =>
        found({ query: queries[i], vector: near(i), filter: { group: 3 } }),
      );
    }
    console.log(`\nMemory of the index: ${(search.status().memoryBytes / 1e6).toFixed(0)} MB`);
  } finally {
    await search.close();
    await records.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
