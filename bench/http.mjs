/**
 * How much does HTTP add to a search? Setup: a server as `lodestone serve` starts it, 10,000 vectors of 128
 * dimensions, one client with one connection. Each search over HTTP is followed by the same search in this
 * process. Both are verified against the oracle first. Limit: the medians are at most 1.0 ms apart.
 *
 * Usage: npm run build && npm run bench:http [-- --searches 1000]
 */
import { cpus } from "node:os";
import { VectorIndex } from "../dist/index.js";
import { makeData } from "./data.mjs";
import { idOf, oracle, verify } from "./oracle.mjs";
import { readOptions } from "./read-options.mjs";
import { makeTable, serve, tablePath } from "./served.mjs";
import { summarize } from "./statistics.mjs";

const ROWS = 10_000;
const DIMENSION = 128;
const QUERIES = 50;
/** Searches until both sides run compiled code. */
const WARM_UP = 1_000;
const LIMIT_MS = 1;
const options = readOptions(import.meta.url, { searches: { type: "string", default: "1000" } });

const server = await serve();
try {
  const data = makeData({ kind: "random", rows: ROWS, dimension: DIMENSION, queries: QUERIES });
  const row = (i) => data.subarray(i * DIMENSION, (i + 1) * DIMENSION);
  await makeTable(server, "rows", { data, rows: ROWS, dimension: DIMENSION });
  const index = await VectorIndex.create({ dimension: DIMENSION });
  index.upsertMany(
    Array.from({ length: ROWS }, (_, i) => idOf(i)),
    data.subarray(0, ROWS * DIMENSION),
  );
  const path = `${tablePath("rows")}/vectorSearch`;
  const bodies = Array.from({ length: QUERIES }, (_, i) => ({
    column: "v",
    queryVector: Array.from(row(ROWS + i)),
    consistency: "strong",
  }));
  for (let i = 0; i < QUERIES; i++) {
    const wanted = oracle(data, ROWS, DIMENSION, (ROWS + i) * DIMENSION, "cosineSimilarity", 10);
    verify("over HTTP", await server.send("POST", path, bodies[i]), wanted);
    verify("in process", index.search(row(ROWS + i), { k: 10 }), wanted);
  }
  const [httpMs, processMs] = [[], []];
  const texts = bodies.map(({ consistency: _, ...body }) => JSON.stringify(body));
  for (let i = 0; i < WARM_UP; i++) await server.send("POST", path, texts[i % QUERIES]);
  for (let i = 0; i < Number(options.searches); i++) {
    let startedMs = performance.now();
    await server.send("POST", path, texts[i % QUERIES]);
    httpMs.push(performance.now() - startedMs);
    startedMs = performance.now();
    index.search(row(ROWS + (i % QUERIES)), { k: 10 });
    processMs.push(performance.now() - startedMs);
  }
  const [http, inProcess] = [summarize(httpMs), summarize(processMs)];
  const added = http.median - inProcess.median;
  console.log(
    `${cpus()[0]?.model ?? "unknown CPU"}, Node ${process.version}; ${ROWS} × ${DIMENSION}, cosine, top 10, ${options.searches} searches`,
  );
  for (const [name, { median, low, high }] of [
    ["over HTTP", http],
    ["in process", inProcess],
  ]) {
    console.log(`${name.padEnd(12)} ${median.toFixed(3)} ms (${low.toFixed(3)}–${high.toFixed(3)})`);
  }
  console.log(`HTTP adds    ${added.toFixed(3)} ms (limit ${LIMIT_MS})`);
  if (added > LIMIT_MS) process.exitCode = 1;
} finally {
  await server.stop();
}
