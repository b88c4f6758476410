/**
 * The search for words beside MiniSearch, Orama and SQLite's FTS5: building, memory, and the time of a query. Texts
 * are made of words as frequent as in a language (Zipf), the same in each run. Times of queries are CPU milliseconds
 * of the process, the mean of all queries of a kind; "slowest" is the longest by the clock.
 *
 *   npm run bench:text -- [--rows 10000,100000] [--words 18] [--hybrid]
 *
 * --hybrid measures words and vectors (× 384) in one search instead, beside each alone, through the search store.
 * First run `npm ci --prefix bench/library-peers --ignore-scripts` and `npm run build`. FTS5 needs Node 22 or later.
 */
import { describeMachine, describeRun, loadNow } from "./machine.mjs";
import { readOptions } from "./read-options.mjs";
import { TEXT_PEERS, textPeer } from "./text-contenders.mjs";
import { measureHybrid } from "./text-hybrid.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "10000,100000" },
  words: { type: "string", default: "18" },
  hybrid: { type: "boolean", default: false },
});
const VOCABULARY = 60_000;
const QUERIES = 40;
const LIMIT = 10;
/** MiniSearch and Orama are not asked to hold more. */
const MOST_IN_OBJECTS = 100_000;

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

const KINDS = [
  ["1 word", {}, make(() => wordOfRank(50, 5_000))],
  ["3 words", {}, make(() => [wordOfRank(50, 500), wordOfRank(50, 5_000), wordOfRank(500, 20_000)].join(" "))],
  ["4 stop words", {}, make(() => [0, 1, 2, 3].map((rank) => vocabulary[rank]).join(" "))],
  ["3 words, 1 edit", { fuzziness: 1 }, make(() => [wordOfRank(50, 500), wordOfRank(50, 5_000), wordOfRank(500, 20_000)].join(" "))],
  ["a prefix of 3", { prefix: true }, make(() => wordOfRank(50, 5_000).slice(0, 3))],
];

console.log(describeRun({ machine: describeMachine(), at: new Date().toISOString(), loads: [loadNow()] }));
for (const rows of options.rows.split(",").map(Number)) {
  if (options.hybrid) await measureHybrid({ rows, words: Number(options.words), anyWord, wordOfRank, random });
  else await measureWords(rows);
}

async function measureWords(rows) {
  state = 7;
  const words = Number(options.words);
  const documents = Array.from({ length: rows }, (_, id) => ({
    id,
    title: anyWord(),
    text: Array.from({ length: words - 1 }, anyWord).join(" "),
  }));
  console.log(`\n${rows.toLocaleString("en")} records of ${words} words\n`);
  console.log(
    `| | built, CPU s | memory, MB | ${KINDS.map(([kind]) => `${kind}, ms (slowest)`).join(" | ")} |\n|---|---|---|${"---|".repeat(KINDS.length)}`,
  );
  for (const name of ["lodestone", ...TEXT_PEERS]) {
    if (rows > MOST_IN_OBJECTS && !name.startsWith("SQLite") && name !== "lodestone") continue;
    const peer = await textPeer(name, { fuzziness: 0 });
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    const start = process.cpuUsage();
    await peer.add(documents);
    const built = cpuMs(start) / 1000;
    globalThis.gc?.();
    const bytes = peer.memoryBytes?.() ?? process.memoryUsage().heapUsed - before;
    const times = [];
    for (const [, settings, queries] of KINDS) {
      if (name.startsWith("SQLite") && Object.keys(settings).length > 0) {
        times.push("–");
        continue;
      }
      const search = peer.searchWith?.(settings) ?? peer.search;
      for (const query of queries.slice(0, 5)) await search(query, LIMIT);
      let slowest = 0;
      const begun = process.cpuUsage();
      for (const query of queries) {
        const at = performance.now();
        await search(query, LIMIT);
        slowest = Math.max(slowest, performance.now() - at);
      }
      times.push(`${(cpuMs(begun) / queries.length).toFixed(2)} (${slowest.toFixed(1)})`);
    }
    console.log(`| ${name} | ${built.toFixed(1)} | ${(bytes / 1e6).toFixed(1)} | ${times.join(" | ")} |`);
  }
}

function cpuMs(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}
