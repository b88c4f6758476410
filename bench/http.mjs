/**
 * What does HTTP add to a search? A server as `lodestone serve` starts it, 10,000 vectors of 128 dimensions, one client with one connection; each search over HTTP
 * is followed by the same search in this process. Both are verified against the oracle first. Limit: the medians are at most 1.0 ms apart.
 * Usage: npm run build && npm run bench:http [-- --searches 1000]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { VectorIndex } from "../dist/index.js";
import { makeData } from "./data.mjs";
import { idOf, oracle, verify } from "./oracle.mjs";
import { summarize } from "./statistics.mjs";

const ROWS = 10_000;
const DIMENSION = 128;
const QUERIES = 50;
/** Searches until both sides run compiled code. */
const WARM_UP = 1_000;
const LIMIT_MS = 1;
const { values: options } = parseArgs({ options: { searches: { type: "string", default: "1000" } } });

const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
const main = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const server = spawn(process.execPath, [main, "serve", "--port", "0", "--data-dir", directory], {
  env: { ...process.env, LODESTONE_LOG_LEVEL: "info" },
});
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
try {
  const port = await portOf(server);
  const data = makeData({ kind: "random", rows: ROWS, dimension: DIMENSION, queries: QUERIES });
  const row = (i) => data.subarray(i * DIMENSION, (i + 1) * DIMENSION);
  const ask = (method, path, body) => send(port, method, path, body);
  await ask("PUT", "/db/bench:main", {});
  await ask("PUT", "/db/bench:main/tables/rows", { columns: [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }] });
  for (let at = 0; at < ROWS; at += 1000) {
    const records = Array.from({ length: 1000 }, (_, i) => ({ id: idOf(at + i), v: Array.from(row(at + i)) }));
    await ask("POST", "/db/bench:main/tables/rows/bulk", { records });
  }
  const index = await VectorIndex.create({ dimension: DIMENSION });
  index.upsertMany(
    Array.from({ length: ROWS }, (_, i) => idOf(i)),
    data.subarray(0, ROWS * DIMENSION),
  );
  const path = "/db/bench:main/tables/rows/vectorSearch";
  const bodies = Array.from({ length: QUERIES }, (_, i) => ({
    column: "v",
    queryVector: Array.from(row(ROWS + i)),
    consistency: "strong",
  }));
  for (let i = 0; i < QUERIES; i++) {
    const wanted = oracle(data, ROWS, DIMENSION, (ROWS + i) * DIMENSION, "cosineSimilarity", 10);
    verify("over HTTP", await ask("POST", path, bodies[i]), wanted);
    verify("in process", index.search(row(ROWS + i), { k: 10 }), wanted);
  }
  const [httpMs, processMs] = [[], []];
  const texts = bodies.map(({ consistency: _, ...body }) => JSON.stringify(body));
  for (let i = 0; i < WARM_UP; i++) await send(port, "POST", path, texts[i % QUERIES]);
  for (let i = 0; i < Number(options.searches); i++) {
    let startedMs = performance.now();
    await send(port, "POST", path, texts[i % QUERIES]);
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
  agent.destroy();
  if (server.exitCode === null) {
    server.kill("SIGTERM");
    await once(server, "exit");
  }
  rmSync(directory, { recursive: true, force: true });
}

/** From what the server prints. */
function portOf(child) {
  let text = "";
  child.stderr.resume();
  return new Promise((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      text += chunk;
      const url = /http:\/\/127\.0\.0\.1:(\d+)/.exec(text);
      if (url !== null) resolve(Number(url[1]));
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
}

function send(port, method, path, body) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) };
    const call = request({ host: "127.0.0.1", port, method, path, agent, headers }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => {
        const answer = JSON.parse(Buffer.concat(chunks).toString() || "{}");
        if (response.statusCode < 300) resolve(answer);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${answer.message}`));
      });
    });
    call.on("error", reject);
    call.end(text);
  });
}
