/**
 * How much does HTTP add to a search? Setup: a server as `lodestone serve` starts it, 10,000 vectors of 128
 * dimensions, one client with one connection. Each search over HTTP is followed by the same search in this
 * process, and by the same request to bare Koa, which parses the same bytes, answers the same bytes and does
 * nothing: nothing that uses Koa adds less. All are verified against the oracle first. Limit: the medians of HTTP and in process
 * are at most 1.0 ms apart.
 *
 * Usage: npm run build && npm run bench:http [-- --searches 1000] [--against DIR]
 *   --against DIR   also a server of another built checkout, in turns with this one
 */
import { cpus } from "node:os";
import { resolve } from "node:path";
import { VectorIndex } from "../dist/index.js";
import { makeData } from "./data.mjs";
import { idOf, oracle, verify } from "./oracle.mjs";
import { readOptions } from "./read-options.mjs";
import { connect, makeTable, serve, tablePath } from "./served.mjs";
import { summarize } from "./statistics.mjs";
import { openYardstick } from "./yardstick.mjs";

const ROWS = 10_000;
const DIMENSION = 128;
const QUERIES = 50;
/** Searches until both sides run compiled code. */
const WARM_UP = 1_000;
const LIMIT_MS = 1;
const options = readOptions(import.meta.url, { searches: { type: "string", default: "1000" }, against: { type: "string" } });

const servers = [];
try {
  const data = makeData({ kind: "random", rows: ROWS, dimension: DIMENSION, queries: QUERIES });
  const row = (i) => data.subarray(i * DIMENSION, (i + 1) * DIMENSION);
  const index = await VectorIndex.create({ dimension: DIMENSION });
  index.upsertMany(
    Array.from({ length: ROWS }, (_, i) => idOf(i)),
    data.subarray(0, ROWS * DIMENSION),
  );
  const query = (i) => row(ROWS + (i % QUERIES));
  const path = `${tablePath("rows")}/vectorSearch`;
  const bodyOf = (i, more) => JSON.stringify({ column: "v", queryVector: Array.from(query(i)), ...more });
  const texts = Array.from({ length: QUERIES }, (_, i) => bodyOf(i));
  const wantedOf = (i) => oracle(data, ROWS, DIMENSION, (ROWS + i) * DIMENSION, "cosineSimilarity", 10);

  const searches = new Map();
  for (const [name, checkout] of [["over HTTP"], ...(options.against === undefined ? [] : [["other", resolve(options.against)]])]) {
    const server = await serve(checkout);
    servers.push(server);
    await makeTable(server, "rows", { data, rows: ROWS, dimension: DIMENSION });
    for (let i = 0; i < QUERIES; i++) verify(name, await server.send("POST", path, bodyOf(i, { consistency: "strong" })), wantedOf(i));
    searches.set(name, (i) => server.send("POST", path, texts[i % QUERIES]));
  }
  const koa = await openYardstick("koa", await servers[0].send("POST", path, texts[0]));
  const connection = connect(koa.server.port);
  servers.push({ stop: () => Promise.all([connection.close(), koa.server.stop()]) });
  searches.set("bare Koa", (i) => connection.send("POST", path, texts[i % QUERIES]));
  for (let i = 0; i < QUERIES; i++) verify("in process", index.search(query(i), { k: 10 }), wantedOf(i));
  searches.set("in process", (i) => index.search(query(i), { k: 10 }));

  for (const [, search] of searches) for (let i = 0; i < WARM_UP; i++) await search(i);
  const tookMs = new Map([...searches.keys()].map((name) => [name, []]));
  for (let i = 0; i < Number(options.searches); i++) {
    for (const [name, search] of searches) {
      const startedMs = performance.now();
      await search(i);
      tookMs.get(name).push(performance.now() - startedMs);
    }
  }
  console.log(
    `${cpus()[0]?.model ?? "unknown CPU"}, Node ${process.version}; ${ROWS} × ${DIMENSION}, cosine, top 10, ${options.searches} searches`,
  );
  const inProcess = summarize(tookMs.get("in process")).median;
  for (const [name, own] of tookMs) {
    const { median, low, high } = summarize(own);
    const added = name === "in process" ? "" : `, ${(median - inProcess).toFixed(3)} above in process`;
    console.log(`${name.padEnd(12)} ${median.toFixed(3)} ms (${low.toFixed(3)}–${high.toFixed(3)})${added}`);
  }
  const added = summarize(tookMs.get("over HTTP")).median - inProcess;
  console.log(`HTTP adds    ${added.toFixed(3)} ms (limit ${LIMIT_MS})`);
  if (added > LIMIT_MS) process.exitCode = 1;
} finally {
  for (const { stop } of servers) await stop();
}
