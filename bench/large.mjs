/**
 * Does a column larger than one WebAssembly memory (4 GiB) work? Fills a ParallelVectorIndex beyond that size
 * in batches, keeping the float64 oracle's best results of a few queries on the way. Then compares ids, order
 * and scores. Needs memory of about 1.4 times the data's size. With one shard it shows what happens at the
 * limit.
 *
 * Usage: npm run build && npm run bench:large [-- --rows 1600000 --dimension 768 --shards 2]
 */
import { ParallelVectorIndex } from "../dist/index.js";
import { makeData } from "./data.mjs";
import { idOf, oracle, verify } from "./oracle.mjs";
import { readOptions } from "./read-options.mjs";
import { summarize } from "./statistics.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "1600000" },
  dimension: { type: "string", default: "768" },
  shards: { type: "string", default: "2" },
});
const [rows, dimension, shards] = [options.rows, options.dimension, options.shards].map(Number);
const BATCH = 100_000;
const K = 10;
const SIMILARITIES = ["cosineSimilarity", "l2", "l1"];

const index = await ParallelVectorIndex.create({ dimension, shards });
let queries;
let best;
const startedMs = performance.now();
for (let first = 0; first < rows; first += BATCH) {
  const count = Math.min(BATCH, rows - first);
  // Each batch's rows are followed by one query for each similarity function; those of the first batch are
  // used throughout.
  const data = makeData({ kind: "random", rows: count, dimension, queries: SIMILARITIES.length, seed: 1 + first });
  const tail = count * dimension;
  queries ??= data.slice(tail, tail + SIMILARITIES.length * dimension);
  best ??= SIMILARITIES.map(() => []);
  data.set(queries, tail);
  const ids = Array.from({ length: count }, (_, i) => idOf(first + i));
  const stored = index.upsertMany(ids, data.subarray(0, tail)).catch((error) => error);
  const bestOfBatch = SIMILARITIES.map((similarity, i) => {
    const own = oracle(data, count, dimension, tail + i * dimension, similarity, K).map(({ row, score }) => ({ row: first + row, score }));
    return [...best[i], ...own].sort((a, b) => b.score - a.score || a.row - b.row).slice(0, K);
  });
  const failure = await stored;
  if (failure !== undefined) {
    // One memory is full. With one shard, nothing of this batch is stored, and what was stored before still
    // answers.
    if (failure.code !== "OUT_OF_MEMORY" || shards > 1) throw failure;
    console.log(`${failure.code}: ${failure.message}`);
    break;
  }
  best = bestOfBatch;
  const gigabytes = (index.size * dimension * 4) / 1e9;
  process.stderr.write(
    `${index.size.toLocaleString("en-US")} rows, ${gigabytes.toFixed(1)} GB of float32, ${((performance.now() - startedMs) / 1000).toFixed(0)} s\n`,
  );
}
console.log(`${index.size} × ${dimension} in ${shards} shards: ${((await index.memoryBytes()) / 2 ** 30).toFixed(2)} GiB of linear memory`);
for (const [i, similarity] of SIMILARITIES.entries()) {
  const query = queries.subarray(i * dimension, (i + 1) * dimension);
  verify(similarity, await index.search(query, { k: K, similarity }), best[i]);
  const times = [];
  for (let round = 0; round < 7; round++) {
    const roundMs = performance.now();
    await index.search(query, { k: K, similarity });
    times.push(performance.now() - roundMs);
  }
  console.log(`${similarity}: right, ${summarize(times).median.toFixed(1)} ms`);
}
await index.free();
