/** For bench:text --beside: how long a GET of a record waits beside searches for words, on one server with its own database. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { longestSlice, meterEnvironment } from "./longest-slice.mjs";
import { serve, tablePath } from "./served.mjs";

const BATCH = 1_000;
const GETS = 500;
/** Between two GETs: they are somebody else's, and not one after the other. */
const PAUSE_MS = 5;
const QUERIES = 40;
const MOST_TRIES = 600;
const WARM_UP_ROUNDS = 6;

/**
 * Prints the median, the 99th percentile and the slowest of GETS requests, alone before and after, and beside each kind
 * of search; and the longest slice of the server's event loop meanwhile, in CPU milliseconds, which no other work on the
 * machine changes.
 */
export async function measureBeside({ rows, words, anyWord, wordOfRank }) {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-bench-slices-"));
  const slices = join(folder, "longest");
  const server = await serve(undefined, meterEnvironment(slices));
  try {
    await server.send("PUT", tablePath("items"), {
      columns: [
        { name: "title", type: "string" },
        { name: "text", type: "text" },
      ],
    });
    for (let start = 0; start < rows; start += BATCH) {
      const records = Array.from({ length: Math.min(BATCH, rows - start) }, (_, i) => ({
        id: `r${start + i}`,
        title: anyWord(),
        text: Array.from({ length: words - 1 }, anyWord).join(" "),
      }));
      await server.send("POST", `${tablePath("items")}/bulk`, { records });
    }
    const kinds = {
      alone: undefined,
      "3 words": () => [wordOfRank(50, 500), wordOfRank(50, 5_000), wordOfRank(500, 20_000)].join(" "),
      "4 stop words": () => [0, 1, 2, 3].map((rank) => wordOfRank(rank, rank + 1)).join(" "),
      "alone again": undefined,
    };
    const search = (query) => server.another("POST", `${tablePath("items")}/search`, { query, fuzziness: 0 });
    await untilAnswered(() => search(kinds["3 words"]()));
    // The checkpoint that the records have left to the database is not what is measured.
    for (let round = 0; round < WARM_UP_ROUNDS; round++) await timeGets(server, rows);
    console.log(
      `\n${rows.toLocaleString("en")} records of ${words} words; GET of a record, ms\n\n| beside | p50 | p99 | slowest | longest slice, CPU ms |\n|---|---|---|---|---|`,
    );
    for (const [name, query] of Object.entries(kinds)) {
      const queries = query && Array.from({ length: QUERIES }, query);
      await longestSlice(server.pid, slices);
      let done = false;
      const searching = queries && searchOn(queries, search, () => done);
      const times = await timeGets(server, rows);
      done = true;
      await searching;
      const slice = await longestSlice(server.pid, slices);
      const at = (share) => times[Math.min(times.length - 1, Math.ceil(share * times.length) - 1)].toFixed(1);
      console.log(`| ${name} | ${at(0.5)} | ${at(0.99)} | ${at(1)} | ${slice.toFixed(1)} |`);
    }
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The first search has the words of all records read, and is refused when that takes longer than it may wait. */
async function untilAnswered(search) {
  for (let tries = 0; ; tries++) {
    try {
      return await search();
    } catch (error) {
      if (tries === MOST_TRIES || !/ 503 /.test(error.message)) throw error;
      await delay(1_000);
    }
  }
}

/** One search after the other. */
async function searchOn(queries, search, isDone) {
  for (let i = 0; !isDone(); i++) await search(queries[i % queries.length]);
}

async function timeGets({ send }, rows) {
  const times = [];
  for (let i = 0; i < GETS; i++) {
    await delay(PAUSE_MS);
    const at = performance.now();
    await send("GET", `${tablePath("items")}/data/r${(i * 7919) % rows}`);
    times.push(performance.now() - at);
  }
  return times.sort((a, b) => a - b);
}
