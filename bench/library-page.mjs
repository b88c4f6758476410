/**
 * Saving and loading 100,000 × 384 in a page: how long each takes, and the longest time that the page could not answer meanwhile (a timer that should fire
 * every millisecond). Runs the library's minified file in Chromium. `node bench/library-page.mjs`
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const COUNT = 100_000;
const DIMENSION = 384;
const library = readFileSync(new URL("../dist/packages/library/dist/lodestone.min.js", import.meta.url));
const server = createServer((request, response) => {
  if (request.url === "/lodestone.js") response.writeHead(200, { "content-type": "text/javascript" }).end(library);
  else response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>p</title>");
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${server.address().port}/`);
const rows = await page.evaluate(
  async ({ COUNT, DIMENSION }) => {
    const { VectorIndex, ParallelVectorIndex, IndexedDbStore, OpfsStore } = await import("/lodestone.js");
    const measured = [];
    async function measure(name, work) {
      let longest = 0;
      let last = performance.now();
      let isOver = false;
      const beat = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        if (!isOver) setTimeout(beat);
      };
      beat();
      await new Promise((resolve) => setTimeout(resolve, 20));
      longest = 0;
      const began = performance.now();
      const result = await work();
      const elapsed = performance.now() - began;
      await new Promise((resolve) => setTimeout(resolve, 5));
      isOver = true;
      measured.push({ name, elapsedMs: Math.round(elapsed), longestBlockMs: Math.round(longest) });
      return result;
    }
    await measure("nothing for two seconds", () => new Promise((resolve) => setTimeout(resolve, 2000)));
    const matrix = new Float32Array(COUNT * DIMENSION);
    for (let i = 0, x = 1; i < matrix.length; i++) {
      x = (Math.imul(x, 1664525) + 1013904223) | 0;
      matrix[i] = x / 2 ** 31;
    }
    const ids = Array.from({ length: COUNT }, (_, i) => `document-${i}`);
    for (const [kind, options] of [
      [ParallelVectorIndex, { shards: 1 }],
      [VectorIndex, {}],
    ]) {
      const index = await kind.create({ dimension: DIMENSION, ...options });
      for (let at = 0; at < COUNT; at += 1000)
        await index.upsertMany(ids.slice(at, at + 1000), matrix.subarray(at * DIMENSION, (at + 1000) * DIMENSION));
      const label = kind === VectorIndex ? "VectorIndex" : "ParallelVectorIndex, 1 shard";
      const blob = await measure(`${label}: toStream to a Blob`, () => new Response(index.toStream()).blob());
      for (const [place, Store] of [
        ["IndexedDB", IndexedDbStore],
        ["OPFS", OpfsStore],
      ]) {
        const store = new Store("bench");
        await measure(`${label}: save to ${place}`, () => store.save("index", index));
        const copy = await measure(`${label}: load from ${place}`, () => store.load("index", kind, options));
        await copy.free();
        await store.delete("index");
      }
      const copy = await measure(`${label}: fromStream of the Blob`, () => kind.fromStream(blob, options));
      if (kind === ParallelVectorIndex) await measure(`${label}: one search`, () => copy.search(matrix.subarray(0, DIMENSION)));
      await copy.free();
      await index.free();
    }
    return measured;
  },
  { COUNT, DIMENSION },
);
console.table(rows);
await browser.close();
server.close();
