/**
 * Saving and loading 100,000 × 384 in a page: how long each takes, and the longest task of the page's main
 * thread. The task is given as CPU time by Chromium's trace (its duration on an otherwise idle machine), with
 * the wall-clock time beside it. Runs the library's minified file and writes the table into docs/library.md.
 *
 * `node bench/library-page.mjs`
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { chromium } from "playwright-core";
import { describeMachine, describeRun, loadNow } from "./machine.mjs";
import { tracedTasks } from "./page-trace.mjs";

const COUNT = 100_000;
const DIMENSION = 384;
const library = readFileSync(new URL("../dist/packages/library/dist/index.js", import.meta.url));
const server = createServer((request, response) => {
  if (request.url === "/lodestone.js") response.writeHead(200, { "content-type": "text/javascript" }).end(library);
  else response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>p</title>");
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${server.address().port}/`);

/** Functions of the page, by name; each works on what the previous one left in `state`. */
await page.evaluate(
  async ({ COUNT, DIMENSION }) => {
    const library = await import("/lodestone.js");
    const stores = { IndexedDB: new library.IndexedDbStore("bench"), OPFS: new library.OpfsStore("bench") };
    globalThis.state = {};
    globalThis.steps = {
      async fill(kind) {
        const shards = kind === "ParallelVectorIndex" ? { shards: 1 } : {};
        const index = await library[kind].create({ dimension: DIMENSION, ...shards });
        let x = 1;
        const matrix = new Float32Array(1000 * DIMENSION);
        for (let at = 0; at < COUNT; at += 1000) {
          for (let i = 0; i < matrix.length; i++) {
            x = (Math.imul(x, 1664525) + 1013904223) | 0;
            matrix[i] = x / 2 ** 31;
          }
          await index.upsertMany(
            Array.from({ length: 1000 }, (_, i) => `document-${at + i}`),
            matrix,
          );
        }
        state = { index, kind, shards, query: matrix.slice(0, DIMENSION) };
      },
      async toBlob() {
        state.blob = await new Response(state.index.toStream()).blob();
      },
      async fromBlob() {
        await (await library[state.kind].fromStream(state.blob, state.shards)).free();
      },
      save: (place) => stores[place].save("index", state.index),
      async load(place) {
        await (await stores[place].load("index", library[state.kind], state.shards)).free();
      },
      async search() {
        await state.index.search(state.query);
      },
      nothing: () => new Promise((resolve) => setTimeout(resolve, 1000)),
      async free() {
        await state.index.free();
        for (const store of Object.values(stores)) await store.delete("index");
      },
    };
  },
  { COUNT, DIMENSION },
);

async function measure(name, step, argument) {
  let elapsedMs = 0;
  const { cpuMs, wallMs } = await tracedTasks(browser, page, async () => {
    const began = performance.now();
    await page.evaluate(([step, argument]) => globalThis.steps[step](argument), [step, argument]);
    elapsedMs = Math.round(performance.now() - began);
  });
  loads.push(loadNow());
  rows.push({ name, elapsedMs, longestTaskCpuMs: Number(cpuMs[0].toFixed(1)), longestTaskWallMs: Number(wallMs[0].toFixed(1)) });
}

const rows = [];
const loads = [loadNow()];
await measure("nothing for a second", "nothing");
for (const kind of ["ParallelVectorIndex", "VectorIndex"]) {
  await page.evaluate((kind) => globalThis.steps.fill(kind), kind);
  await measure(`${kind}: toStream to a Blob`, "toBlob");
  await measure(`${kind}: fromStream of the Blob`, "fromBlob");
  for (const place of ["IndexedDB", "OPFS"]) {
    await measure(`${kind}: save to ${place}`, "save", place);
    await measure(`${kind}: load from ${place}`, "load", place);
  }
  await measure(`${kind}: one search`, "search");
  await page.evaluate(() => globalThis.steps.free());
}
console.table(rows);
await browser.close();
server.close();

const longest = (kind, step) => Math.ceil(rows.find(({ name }) => name === `${kind}: ${step}`).longestTaskCpuMs);
const line = (title, ...steps) =>
  `| ${title} | ${["ParallelVectorIndex", "VectorIndex"].map((kind) => steps.map((step) => longest(kind, step)).join(", ")).join(" | ")} |`;
const table = `${describeRun({ machine: describeMachine(), at: new Date().toISOString(), loads })}.

| longest task, ms | ParallelVectorIndex, one shard | VectorIndex |
|---|---|---|
${line("`toStream` to a Blob", "toStream to a Blob")}
${line("`fromStream` of a Blob", "fromStream of the Blob")}
${line("save to IndexedDB, load from it", "save to IndexedDB", "load from IndexedDB")}
${line("save to OPFS, load from it", "save to OPFS", "load from OPFS")}
${line("one search", "one search")}`;
const document = new URL("../docs/library.md", import.meta.url);
const marked = /(<!-- library-page -->\n)[\s\S]*(\n<!-- \/library-page -->)/;
writeFileSync(
  document,
  readFileSync(document, "utf8").replace(marked, (_, begin, end) => begin + table + end),
);
