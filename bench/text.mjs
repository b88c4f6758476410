/**
 * The search for words beside MiniSearch, Orama and SQLite's FTS5: building, memory, and the time of a query. Texts
 * are made of words as frequent as in a language (Zipf), the same in each run. Times of queries are CPU milliseconds
 * of the process with its garbage collection, the median and the 99th percentile of up to 100 queries of a kind.
 *
 *   npm run bench:text -- [--rows 10000,100000,1000000] [--words 18] [--only Lodestone,MiniSearch] [--hybrid] [--inserts] [--beside]
 *
 * --hybrid measures words and vectors (× 384) in one search instead, beside each alone, through the search store.
 * --inserts measures what inserts cost a table whose words are held, beside one whose words are not.
 * --beside measures how long a GET of a record waits beside searches for words.
 * First run `npm ci --prefix bench/library-peers --ignore-scripts` and `npm run build`. FTS5 needs Node 22 or later.
 */
import { describeMachine, describeRun, loadNow } from "./machine.mjs";
import { readOptions } from "./read-options.mjs";
import { cpuMs } from "./statistics.mjs";
import { measureBeside } from "./text-beside.mjs";
import { TEXT_PEERS, textPeer } from "./text-contenders.mjs";
import { measureHybrid } from "./text-hybrid.mjs";
import { measureInserts } from "./text-inserts.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "10000,100000" },
  words: { type: "string", default: "18" },
  only: { type: "string", default: ["Lodestone", ...TEXT_PEERS].join(",") },
  hybrid: { type: "boolean", default: false },
  inserts: { type: "boolean", default: false },
  beside: { type: "boolean", default: false },
});
const VOCABULARY = 60_000;
const QUERIES = 100;
const WARM_UP = 5;
/** No kind is measured for longer; some peers need seconds for a query. */
const MOST_CPU_MS = 10_000;
const LIMIT = 10;
const BATCH = 10_000;
/** It needs minutes for a query of stop words in more. */
const MOST_ROWS = { Orama: 100_000 };
/** Records are of as many groups; a filter keeps one. */
const GROUPS = 10;

let state = 1;
const random = () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
};
const letters = (length) => Array.from({ length }, () => String.fromCharCode(97 + Math.floor(random() * 26))).join("");
const vocabulary = Array.from({ length: VOCABULARY }, () => letters(3 + Math.floor(random() * 8)));
const anyWord = () => vocabulary[Math.min(VOCABULARY - 1, Math.floor(Math.exp(random() * Math.log(VOCABULARY)) - 1))];
const wordOfRank = (least, most) => vocabulary[least + Math.floor(random() * (most - least))];
const make = (query) => Array.from({ length: QUERIES }, query);

const RANKS = [
  [50, 5_000],
  [50, 500],
  [500, 20_000],
  [50, 5_000],
];
const someWords = (count) => () =>
  RANKS.slice(0, count)
    .map(([least, most]) => wordOfRank(least, most))
    .join(" ");

const KINDS = [
  ["1 word", {}, make(someWords(1))],
  ["2 words", {}, make(someWords(2))],
  ["3 words", {}, make(someWords(3))],
  ["4 words", {}, make(someWords(4))],
  ["4 stop words", {}, make(() => [0, 1, 2, 3].map((rank) => wordOfRank(rank, rank + 1)).join(" "))],
  ["3 words of a tenth", { group: 3 }, make(someWords(3))],
  ["3 words, 1 edit", { fuzziness: 1 }, make(someWords(3))],
  ["a prefix of 3", { prefix: true }, make(() => wordOfRank(50, 5_000).slice(0, 3))],
];

console.log(describeRun({ machine: describeMachine(), at: new Date().toISOString(), loads: [loadNow()] }));
for (const rows of options.rows.split(",").map(Number)) {
  if (options.inserts) await measureInserts({ rows, words: Number(options.words), anyWord });
  else if (options.beside) await measureBeside({ rows, words: Number(options.words), anyWord, wordOfRank });
  else if (options.hybrid) await measureHybrid({ rows, words: Number(options.words), anyWord, wordOfRank, random });
  else await measureWords(rows);
}

function* batches(rows) {
  state = 7;
  for (let start = 0; start < rows; start += BATCH) {
    yield Array.from({ length: Math.min(BATCH, rows - start) }, (_, i) => ({
      id: start + i,
      group: (start + i) % GROUPS,
      title: anyWord(),
      text: Array.from({ length: Number(options.words) - 1 }, anyWord).join(" "),
    }));
  }
}

async function measureWords(rows) {
  console.log(`\n${rows.toLocaleString("en")} records of ${options.words} words; queries: CPU ms, p50 / p99\n`);
  console.log(`| | built, CPU s | memory, MB | ${KINDS.map(([kind]) => kind).join(" | ")} |\n|---|---|---|${"---|".repeat(KINDS.length)}`);
  for (const name of options.only.split(",")) {
    if (rows > (MOST_ROWS[name] ?? Infinity)) continue;
    const peer = await textPeer(name, { fuzziness: 0 });
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    let built = 0;
    for (const documents of batches(rows)) {
      const start = process.cpuUsage();
      await peer.add(documents);
      built += cpuMs(start) / 1_000;
    }
    globalThis.gc?.();
    const bytes = peer.memoryBytes?.() ?? process.memoryUsage().heapUsed - before;
    const times = [];
    for (const [, settings, queries] of KINDS) {
      const search = peer.searchWith(settings);
      times.push(search === undefined ? "–" : await timed(search, queries));
    }
    console.log(`| ${name} | ${built.toFixed(1)} | ${(bytes / 1e6).toFixed(1)} | ${times.join(" | ")} |`);
  }
}

/** @returns "p50 / p99", with the number of queries where the time was not enough for all. */
async function timed(search, queries) {
  const warmed = process.cpuUsage();
  for (const query of queries.slice(0, WARM_UP)) {
    await search(query, LIMIT);
    if (cpuMs(warmed) > MOST_CPU_MS) break;
  }
  const times = [];
  let spent = 0;
  for (const query of queries) {
    const begun = process.cpuUsage();
    await search(query, LIMIT);
    times.push(cpuMs(begun));
    spent += times.at(-1);
    if (spent > MOST_CPU_MS) break;
  }
  const count = times.length;
  times.sort((a, b) => a - b);
  const [middle, high] = [times[count >> 1], times[Math.min(count - 1, Math.ceil(0.99 * count) - 1)]];
  return `${middle.toFixed(2)} / ${high.toFixed(2)}${count < queries.length ? ` (${count} queries)` : ""}`;
}
