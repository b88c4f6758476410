/**
 * npm run bench:load [-- --against DIR] [--seconds 3] [--rounds 3]: how many searches, and inserts of one
 * record, a server completes in a second, from 1, 16 and 64 connections, and the latency of the slowest
 * hundredth. Searches: 10,000 vectors of 128 dimensions, top 10 by cosine, eventual consistency. Inserts go
 * to another table of the same kind. The load comes from this process, on the same cores. A search is checked
 * against the oracle first, and all inserted records are counted afterwards.
 *   --against DIR   also a server of another built checkout, in turns with this one: medians of both, and their ratio
 * Exit code 1 if any response is not a success.
 */
import { cpus } from "node:os";
import { resolve } from "node:path";
import autocannon from "autocannon";
import { makeData } from "./data.mjs";
import { oracle, verify } from "./oracle.mjs";
import { readOptions } from "./read-options.mjs";
import { makeTable, serve, tablePath } from "./served.mjs";
import { summarize } from "./statistics.mjs";

const ROWS = 10_000;
const DIMENSION = 128;
const QUERIES = 50;
const CONNECTIONS = [1, 16, 64];
const WARM_UP_SECONDS = 3;
const options = readOptions(import.meta.url, {
  against: { type: "string" },
  seconds: { type: "string", default: "3" },
  rounds: { type: "string", default: "3" },
});
const [seconds, rounds] = [Number(options.seconds), Number(options.rounds)];
if (!(seconds >= 1) || !(rounds >= 1)) throw new Error("--seconds and --rounds: expected numbers from 1 on.");

const data = makeData({ kind: "random", rows: ROWS, dimension: DIMENSION, queries: QUERIES });
const vectors = Array.from({ length: QUERIES }, (_, i) => Array.from(data.subarray((ROWS + i) * DIMENSION, (ROWS + i + 1) * DIMENSION)));
const LOADS = {
  searches: { path: `${tablePath("rows")}/vectorSearch`, bodies: vectors.map((v) => JSON.stringify({ column: "v", queryVector: v })) },
  inserts: { path: `${tablePath("inserted")}/data`, bodies: vectors.map((v) => JSON.stringify({ v })) },
};

/** @returns {Promise<{perSecond: number, p99Ms: number, failed: number, succeeded: number}>} */
function load({ port }, { path, bodies }, connections, duration) {
  const latencies = [];
  return new Promise((done, reject) => {
    const run = autocannon(
      {
        url: `http://127.0.0.1:${port}`,
        connections,
        duration,
        requests: bodies.map((body) => ({ method: "POST", path, body, headers: { "Content-Type": "application/json" } })),
      },
      (error, result) => {
        if (error) reject(error);
        else
          done({
            perSecond: result["2xx"] / result.duration,
            p99Ms: latencies.sort((a, b) => a - b)[Math.floor(0.99 * latencies.length)],
            failed: result.non2xx + result.errors + result.timeouts,
            succeeded: result["2xx"],
          });
      },
    );
    // autocannon's own histogram counts only whole milliseconds.
    run.on("response", (_client, _status, _bytes, ms) => latencies.push(ms));
  });
}

async function open(name, checkout) {
  const server = await serve(checkout);
  await makeTable(server, "rows", { data, rows: ROWS, dimension: DIMENSION });
  await makeTable(server, "inserted", { data, rows: 0, dimension: DIMENSION });
  const answer = await server.send("POST", LOADS.searches.path, { column: "v", queryVector: vectors[0], consistency: "strong" });
  verify(name, answer, oracle(data, ROWS, DIMENSION, ROWS * DIMENSION, "cosineSimilarity", 10));
  return { name, server, inserted: 0, failed: 0 };
}

/**
 * Everything acknowledged must be there. The last requests of a load may have been applied without a
 * response.
 */
async function checkInserted({ name, server, inserted }) {
  const { aggs } = await server.send("POST", `${tablePath("inserted")}/aggregate`, { aggs: { all: { count: "*" } } });
  const count = aggs.all;
  if (count < inserted) throw new Error(`${name}: ${inserted} inserts were acknowledged, ${count} records are there.`);
}

const contenders = [];
try {
  contenders.push(await open("this", undefined));
  if (options.against) contenders.push(await open("other", resolve(options.against)));
  console.log(
    `${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} cores, Node ${process.version}; ${ROWS} × ${DIMENSION}, ${rounds} × ${seconds} s each`,
  );
  for (const { server } of contenders)
    for (const kind of Object.keys(LOADS)) await load(server, LOADS[kind], CONNECTIONS[1], WARM_UP_SECONDS);
  for (const kind of Object.keys(LOADS)) {
    for (const connections of CONNECTIONS) {
      const results = new Map(contenders.map(({ name }) => [name, []]));
      for (let round = 0; round < rounds; round++) {
        for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
          const result = await load(contender.server, LOADS[kind], connections, seconds);
          results.get(contender.name).push(result);
          contender.failed += result.failed;
          if (kind === "inserts") contender.inserted += result.succeeded;
        }
      }
      const medians = contenders.map(({ name }) => {
        const own = results.get(name);
        const [perSecond, p99Ms] = ["perSecond", "p99Ms"].map((key) => summarize(own.map((result) => result[key])).median);
        console.log(
          `${kind.padEnd(9)} ${String(connections).padStart(3)} connections  ${name.padEnd(6)} ${perSecond.toFixed(0).padStart(7)} a second, p99 ${p99Ms.toFixed(2)} ms`,
        );
        return { perSecond, p99Ms };
      });
      if (medians.length === 2) {
        const [own, other] = medians;
        console.log(
          `${"".padEnd(26)} this ÷ other: ${(own.perSecond / other.perSecond).toFixed(2)} a second, p99 ${(own.p99Ms / other.p99Ms).toFixed(2)}`,
        );
      }
    }
  }
  for (const contender of contenders) {
    await checkInserted(contender);
    if (contender.failed === 0) continue;
    console.error(`${contender.name}: ${contender.failed} requests were not answered with success.`);
    process.exitCode = 1;
  }
} finally {
  for (const { server } of contenders) await server.stop();
}
