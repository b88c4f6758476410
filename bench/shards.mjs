/**
 * npm run bench:shards [-- --rows 100000 --dimension 384 --shards 1,2,4,8]: what does it cost to have more shards than
 * processors? The indexes take turns at each query. CPU time is that of the whole process. What a worker costs without
 * rows is the growth of the process's resident memory.
 */
import { availableParallelism } from "node:os";
import { ParallelVectorIndex } from "../dist/index.js";
import { makeData } from "./data.mjs";
import { describeMachine, loadNow } from "./machine.mjs";
import { idOf, oracle, verify } from "./oracle.mjs";
import { readOptions } from "./read-options.mjs";
import { summarize } from "./statistics.mjs";

const K = 10;
const QUERIES = 30;

const values = readOptions(import.meta.url, {
  rows: { type: "string", default: "100000" },
  dimension: { type: "string", default: "384" },
  shards: { type: "string", default: "1,2,4,8" },
});
const [rows, d] = [Number(values.rows), Number(values.dimension)];
const data = makeData({ kind: "random", rows, dimension: d, queries: QUERIES });
const queryAt = (i) => data.slice((rows + i) * d, (rows + i + 1) * d);
const ids = Array.from({ length: rows }, (_, i) => idOf(i));
const cpuMs = () => (process.cpuUsage().user + process.cpuUsage().system) / 1000;
const expected = oracle(data, rows, d, rows * d, "cosineSimilarity", K);

const { cpu, node } = describeMachine();
console.log(`${cpu}, ${availableParallelism()} processors, Node ${node}, load ${loadNow()}; random, ${rows} × ${d}, cosine, top ${K}`);
const contenders = [];
for (const shards of values.shards.split(",").map(Number)) {
  const [used, resident] = [cpuMs(), process.memoryUsage.rss()];
  const index = await ParallelVectorIndex.create({ dimension: d, shards });
  const start = `started in ${(cpuMs() - used).toFixed(0)} ms of CPU, ${((process.memoryUsage.rss() - resident) / 1e6).toFixed(0)} MB`;
  contenders.push({ shards, index, start, wall: [], cpu: [] });
}
for (const { index } of contenders) {
  await index.upsertMany(ids, data.subarray(0, rows * d));
  verify("search", await index.search(queryAt(0), { k: K }), expected);
}
for (let i = 0; i < QUERIES; i++) {
  for (const { index, wall, cpu } of contenders) {
    const [began, used] = [performance.now(), cpuMs()];
    await index.search(queryAt(i), { k: K });
    wall.push(performance.now() - began);
    cpu.push(cpuMs() - used);
  }
}
for (const { shards, index, start, wall, cpu } of contenders) {
  const own = summarize(wall);
  const times = `${own.median.toFixed(1)} ms (${own.low.toFixed(1)}–${own.high.toFixed(1)}), CPU ${summarize(cpu).median.toFixed(1)} ms`;
  console.log(`${shards} shards: ${times}; ${start}`);
  await index.free();
}
