/**
 * A million vectors in a page, with their float32 in the browser's file system (OPFS) and only codes in memory: what the page's
 * process holds, how long searches take, and the longest task of the page's main thread, while they are stored, searched, saved
 * and loaded again. The profile is a folder on disk, as a person's is. The answers are those of the exhaustive float64 search.
 * Chromium is the one that CHROMIUM_PATH names, or /usr/bin/chromium.
 *
 *     npm run bench:library-page-disk [-- --rows 1000000 --dimension 384 --kind "steep spectrum" --queries 100 --shards 1]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";
import { rowWriter } from "./data.mjs";
import { describeMachine, describeRun, loadNow } from "./machine.mjs";
import { bestOf, exactScores, verify } from "./oracle.mjs";
import { rendererMb, tracedTasks } from "./page-trace.mjs";
import { readOptions } from "./read-options.mjs";
import { quantile } from "./statistics.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "1000000" },
  dimension: { type: "string", default: "384" },
  kind: { type: "string", default: "steep spectrum" },
  queries: { type: "string", default: "100" },
  shards: { type: "string", default: "1" },
});
const [rows, dimension, queries, shards] = ["rows", "dimension", "queries", "shards"].map((name) => Number(options[name]));
const { kind } = options;
const BATCH = 2_000;
const K = 10;
const SIMILARITIES = ["cosineSimilarity", "l2", "l1"];

const write = rowWriter({ kind, rows, dimension });
const queryVectors = new Float32Array(queries * dimension);
for (let i = 0; i < queries; i++) write(queryVectors, i * dimension, true);
/** Of the first queries, one for each similarity function, among the rows that the page has fetched. */
let wanted = SIMILARITIES.map(() => []);
let fetched = 0;

const library = readFileSync(new URL("../dist/packages/library/dist/index.js", import.meta.url));
const server = createServer((request, response) => {
  if (request.url === "/lodestone.js") response.writeHead(200, { "content-type": "text/javascript" }).end(library);
  else if (request.url === "/rows") response.writeHead(200, { "content-type": "application/octet-stream" }).end(nextRows());
  else if (request.url === "/queries") response.writeHead(200).end(new Uint8Array(queryVectors.buffer));
  else response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>page</title>");
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const profile = mkdtempSync(join(tmpdir(), "lodestone-bench-profile-"));
const chromiumProcess = spawn(process.env.CHROMIUM_PATH ?? "/usr/bin/chromium", [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--remote-debugging-port=0",
  `--user-data-dir=${profile}`,
  // Or it shows a page of its own, whose tasks would be counted.
  "about:blank",
]);
chromiumProcess.stderr.resume();
const ended = once(chromiumProcess, "exit");
let browser;
const lines = [];
const print = (name, value) => {
  lines.push([name, value]);
  process.stderr.write(`${name}: ${value}\n`);
};
const loads = [loadNow()];
try {
  browser = await connect();
  const page = await browser.contexts()[0].newPage();
  page.setDefaultTimeout(7_200_000);
  await open(page);
  print("memory of the page's process, empty", `${rendererMb()} MB`);
  await measure(page, "stored", "fill", { rows, dimension, shards, BATCH });
  await search(page);
  await measure(page, "saved", "save");
  await page.reload();
  await open(page);
  await measure(page, "loaded", "load", { dimension, shards });
  await search(page);
} finally {
  await browser?.close();
  chromiumProcess.kill();
  await ended;
  server.close();
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
const megabytes = Math.round((4 * rows * dimension) / 1e6);
console.log(
  `${describeRun({ machine: describeMachine(), at: new Date().toISOString(), loads })}; ${kind}, ${rows} × ${dimension} (${megabytes} MB of float32), ${shards} shards`,
);
for (const [name, value] of lines) console.log(`${name.padEnd(44)} ${value}`);

/** Chromium writes its port into the profile when it listens. */
async function connect() {
  const file = join(profile, "DevToolsActivePort");
  while (!existsSync(file)) await sleep(50);
  return chromium.connectOverCDP(`http://127.0.0.1:${readFileSync(file, "utf8").split("\n")[0]}`);
}

function nextRows() {
  const count = Math.min(BATCH, rows - fetched);
  const data = new Float32Array((count + SIMILARITIES.length) * dimension);
  for (let i = 0; i < count; i++) write(data, i * dimension, false);
  data.set(queryVectors.subarray(0, SIMILARITIES.length * dimension), count * dimension);
  wanted = SIMILARITIES.map((similarity, i) => {
    const own = bestOf(exactScores(data, count, dimension, (count + i) * dimension, similarity), K);
    return [...wanted[i], ...own.map(({ row, score }) => ({ row: fetched + row, score }))]
      .sort((a, b) => b.score - a.score || a.row - b.row)
      .slice(0, K);
  });
  fetched += count;
  return new Uint8Array(data.buffer, 0, 4 * count * dimension);
}

async function open(page) {
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.evaluate(defineSteps);
}

/** Functions of the page, by name; each works on what the previous one left. */
async function defineSteps() {
  const { OpfsStore, ParallelVectorIndex } = await import("/lodestone.js");
  const directory = await (await navigator.storage.getDirectory()).getDirectoryHandle("vectors", { create: true });
  const store = new OpfsStore("images");
  let index;
  const state = async () => ({ index: await index.memoryBytes(), file: await index.fileBytes() });
  globalThis.steps = {
    async fill({ rows, dimension, shards, BATCH }) {
      index = await ParallelVectorIndex.create({ dimension, shards, vectors: directory });
      for (let at = 0; at < rows; at += BATCH) {
        const matrix = new Float32Array(await (await fetch("/rows")).arrayBuffer());
        const ids = Array.from({ length: matrix.length / dimension }, (_, i) => String(at + i).padStart(8, "0"));
        await index.upsertMany(ids, matrix);
      }
      return state();
    },
    async save() {
      await store.save("index", index);
      return state();
    },
    async load({ shards }) {
      index = await store.load("index", ParallelVectorIndex, { shards, vectors: directory });
      return state();
    },
    async search({ dimension, similarity, k }) {
      const vectors = new Float32Array(await (await fetch("/queries")).arrayBuffer());
      const answers = [];
      const times = [];
      for (let at = 0; at < vectors.length; at += dimension) {
        const began = performance.now();
        answers.push(await index.search(vectors.subarray(at, at + dimension), { k, similarity }));
        times.push(performance.now() - began);
      }
      return { answers, times };
    },
  };
}

async function search(page) {
  for (const [i, similarity] of SIMILARITIES.entries()) {
    let found;
    const { cpuMs } = await tracedTasks(browser, page, async () => {
      found = await page.evaluate((options) => globalThis.steps.search(options), { dimension, similarity, k: K });
    });
    verify(similarity, found.answers[i], wanted[i]);
    const [p50, p99] = [0.5, 0.99].map((share) => quantile(found.times, share).toFixed(1));
    print(`${similarity}, right`, `p50 ${p50} ms, p99 ${p99} ms, longest task of the page ${cpuMs[0].toFixed(1)} ms`);
  }
  loads.push(loadNow());
}

async function measure(page, name, step, argument) {
  const began = performance.now();
  let state;
  const { cpuMs } = await tracedTasks(browser, page, async () => {
    state = await page.evaluate(([step, argument]) => globalThis.steps[step](argument), [step, argument]);
  });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  print(
    name,
    `${seconds} s, longest tasks of the page ${cpuMs
      .slice(0, 3)
      .map((ms) => ms.toFixed(1))
      .join(", ")} ms`,
  );
  print(
    `memory of the page's process, ${name}`,
    `${rendererMb()} MB; the index ${Math.round(state.index / 1e6)} MB, its file ${Math.round(state.file / 1e6)} MB`,
  );
  loads.push(loadNow());
}
