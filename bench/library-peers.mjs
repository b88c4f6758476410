/**
 * The library beside others that search vectors in a page: the size of an install and of a bundle, the time
 * of building and of one search (CPU time of the thread), and the share of the exact ten nearest that is found.
 * Data: 10,000 × 384 vectors in 64 clusters, cosine, one thread of Chromium. usearch, which has no build for
 * pages, runs in Node. MiniSearch searches only text: sizes alone. Writes the table into
 * docs/library.md. What each of the library's features takes in a bundle: library-sizes.mjs.
 *
 * First run `npm ci --prefix bench/library-peers --ignore-scripts` and `npm run build`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { bundlePage, installedBytes, PEERS, ROOT } from "./library-bundles.mjs";
import { describeMachine, describeRun, loadNow } from "./machine.mjs";

const COUNT = 10_000;
const DIMENSION = 384;
const QUERIES = 50;
const K = 10;

const OURS = (init) => `import { init, VectorIndex } from "lodestone";
    export async function open(dimension) {
      init(${init});
      const index = await VectorIndex.create({ dimension });
      return {
        add: (vectors) => vectors.forEach((vector, i) => index.upsert(String(i), vector)),
        search: (query, k) => index.search(query, { k }).results.map(({ id }) => Number(id)),
      };
    }`;
/** Where WebAssembly is forbidden, and what it has to be faster than: no packages of their own. */
const WITHOUT_WASM = "lodestone without WebAssembly";
const LOOP = "a plain loop over Float32Arrays";

/**
 * Each used as its README shows: `add` takes Float32Arrays, `search` returns positions. Text, because esbuild
 * bundles it.
 */
const CONTENDERS = {
  lodestone: OURS("{}"),
  [WITHOUT_WASM]: OURS('{ build: "scalar" }'),
  [LOOP]: `export async function open(dimension) {
      let rows;
      const norm = (x) => { let sum = 0; for (let i = 0; i < dimension; i++) sum += x[i] * x[i]; return Math.sqrt(sum); };
      return {
        add(vectors) { rows = vectors.map((vector) => ({ vector, norm: norm(vector) })); },
        search(query, k) {
          const best = [];
          const own = norm(query);
          for (let row = 0; row < rows.length; row++) {
            const { vector, norm } = rows[row];
            let dot = 0;
            for (let i = 0; i < dimension; i++) dot += vector[i] * query[i];
            const score = dot / (norm * own);
            if (best.length === k && score <= best[k - 1].score) continue;
            let at = best.length;
            while (at > 0 && best[at - 1].score < score) at--;
            best.splice(at, 0, { row, score });
            best.length = Math.min(best.length, k);
          }
          return best.map(({ row }) => row);
        },
      };
    }`,
  "@orama/orama": `import { create, insert, searchVector } from "@orama/orama";
    export async function open(dimension) {
      const database = await create({ schema: { embedding: "vector[" + dimension + "]" } });
      return {
        async add(vectors) { for (const [i, vector] of vectors.entries()) await insert(database, { id: String(i), embedding: Array.from(vector) }); },
        search: async (query, k) => (await searchVector(database, { vector: { value: query, property: "embedding" }, similarity: 0, limit: k })).hits.map(({ id }) => Number(id)),
      };
    }`,
  "hnswlib-wasm": `import { loadHnswlib } from "hnswlib-wasm";
    export async function open(dimension) {
      const { HierarchicalNSW } = await loadHnswlib();
      const index = new HierarchicalNSW("cosine", dimension, "");
      return {
        add(vectors) { index.initIndex(vectors.length, 16, 200, 100); vectors.forEach((vector, i) => index.addPoint(vector, i, false)); index.setEfSearch(64); },
        search: (query, k) => Array.from(index.searchKnn(query, k, undefined).neighbors),
      };
    }`,
  "voy-search": `import * as glue from "voy-search/voy_search_bg.js";
    import bytes from "voy-search/voy_search_bg.wasm";
    export async function open() {
      const { instance } = await WebAssembly.instantiate(bytes, { "./voy_search_bg.js": glue });
      glue.__wbg_set_wasm(instance.exports);
      let index;
      return {
        add(vectors) { index = new glue.Voy({ embeddings: vectors.map((vector, i) => ({ id: String(i), title: "", url: "", embeddings: Array.from(vector) })) }); },
        search: (query, k) => index.search(query, k).neighbors.map(({ id }) => Number(id)),
      };
    }`,
  minisearch: `import MiniSearch from "minisearch"; export const open = undefined; globalThis.kept = MiniSearch;`,
};

/** Runs in the page (and, for usearch, here). Seeded unit vectors around 64 centres. */
function makeData(count, dimension, queries) {
  let state = 7;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  };
  const centres = Array.from({ length: 64 }, () => Float32Array.from({ length: dimension }, random));
  const near = () => {
    const centre = centres[Math.floor(Math.abs(random()) * 64) % 64];
    const vector = centre.map((x) => x + 0.7 * random());
    const norm = Math.hypot(...vector);
    return vector.map((x) => x / norm);
  };
  return { vectors: Array.from({ length: count }, near), queries: Array.from({ length: queries }, near) };
}

/** Cosines with all vectors (which have unit length), sorted. */
function exactAnswers({ vectors, queries }, k) {
  return queries.map((query) => {
    const scores = vectors.map((vector) => vector.reduce((sum, x, d) => sum + x * query[d], 0));
    return [...scores.keys()].sort((a, b) => scores[b] - scores[a]).slice(0, k);
  });
}

/**
 * Runs in the page (and here). Returns the steps between which CPU time is read. The first search counts as
 * building, because some libraries finish their index with it.
 */
function makeSteps(open, data, exact, k) {
  let index;
  return {
    async open() {
      index = await open(data.vectors[0].length);
    },
    async add() {
      await index.add(data.vectors);
      await index.search(data.queries[0], k);
    },
    async search() {
      let found = 0;
      for (const [i, query] of data.queries.entries()) {
        const answer = await index.search(query, k);
        found += answer.filter((row) => exact[i].includes(row)).length;
      }
      return found / (data.queries.length * k);
    },
  };
}

/**
 * @param step  runs one of makeSteps.
 * @param cpuMs  of the thread so far.
 */
async function measure(step, cpuMs) {
  await step("open");
  const began = await cpuMs();
  await step("add");
  const built = await cpuMs();
  const recall = await step("search");
  return { buildMs: built - began, searchMs: ((await cpuMs()) - built) / QUERIES, recall };
}

async function measureInPage(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpuMs = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1000 * metrics.find(({ name }) => name === "ThreadTime").value;
  };
  await page.addScriptTag({ type: "module", content: `globalThis.parts = { makeData: ${makeData}, makeSteps: ${makeSteps} };` });
  await page.evaluate(
    async ([count, dimension, queries, k, exact]) => {
      const { open } = await import("/bundle.js");
      const { makeData, makeSteps } = globalThis.parts;
      globalThis.steps = makeSteps(open, makeData(count, dimension, queries), exact, k);
    },
    [COUNT, DIMENSION, QUERIES, K, exact],
  );
  return measure((name) => page.evaluate((name) => globalThis.steps[name](), name), cpuMs);
}

const data = makeData(COUNT, DIMENSION, QUERIES);
const exact = exactAnswers(data, K);
const rows = [];
const loads = [loadNow()];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});
for (const [name, source] of Object.entries(CONTENDERS)) {
  const text = await bundlePage(source);
  const isPackage = name !== WITHOUT_WASM && name !== LOOP;
  const sizes = { name, installBytes: isPackage ? installedBytes(name) : undefined, bundleBytes: gzipSync(text, { level: 9 }).length };
  if (name === "minisearch") {
    rows.push({ ...sizes, note: "text only" });
    continue;
  }
  const page = await browser.newPage();
  await page.route("**/*", (route) =>
    route.fulfill(
      route.request().url().endsWith("/bundle.js")
        ? { contentType: "text/javascript", body: Buffer.from(text) }
        : { contentType: "text/html", body: "<!doctype html>" },
    ),
  );
  await page.goto("http://127.0.0.1:9/");
  const limit = new Promise((resolve) => setTimeout(resolve, 180_000, undefined));
  const result = await Promise.race([measureInPage(page).catch((error) => ({ note: String(error).split("\n")[0] })), limit]);
  rows.push({ ...sizes, ...(result ?? { note: "not built after three minutes" }) });
  await page.close().catch(() => {});
  loads.push(loadNow());
  console.log(rows.at(-1));
}
await browser.close();

const usearch = createRequire(PEERS)("usearch");
async function openUsearch(dimensions) {
  const index = new usearch.Index({ dimensions, metric: usearch.MetricKind.Cos, quantization: usearch.ScalarKind.F32 });
  return {
    add(vectors) {
      for (const [i, vector] of vectors.entries()) index.add(BigInt(i), vector);
    },
    search: (query, k) => Array.from(index.search(query, k, 0).keys, Number),
  };
}
const steps = makeSteps(openUsearch, data, exact, K);
const native = await measure(
  (name) => steps[name](),
  () => (process.cpuUsage().user + process.cpuUsage().system) / 1000,
).catch((error) => ({ note: String(error).split("\n")[0] }));
rows.push({ name: "usearch", installBytes: installedBytes("usearch"), ...native, note: native.note ?? "native, Node only" });
console.log(rows.at(-1));

const kilobytes = (bytes) => (bytes === undefined ? "" : `${Math.round(bytes / 1000).toLocaleString("en")}`);
const time = (ms) => (ms === undefined ? "" : ms < 10 ? ms.toFixed(2) : Math.round(ms).toLocaleString("en"));
const lines = rows.map(
  ({ name, installBytes, bundleBytes, buildMs, searchMs, recall, note = "" }) =>
    `| ${name === "lodestone" ? "**lodestone**, VectorIndex" : name} | ${kilobytes(installBytes)} | ${kilobytes(bundleBytes)} | ${time(buildMs)} | ${time(searchMs)} | ${recall === undefined ? "" : `${(100 * recall).toFixed(1)} %`} | ${note} |`,
);
const run = describeRun({ machine: describeMachine(), at: new Date().toISOString(), loads });
const table = `10,000 × 384 vectors in 64 clusters, cosine, top 10; CPU times, in one thread of Chromium ${browser.version()}. ${run}. \`npm run bench:library\` measures on your machine.

| | install, kB | bundle, kB gzipped | build, ms | one search, ms | recall@10 | |
|---|---|---|---|---|---|---|
${lines.join("\n")}`;
const path = `${ROOT}docs/library.md`;
const text = readFileSync(path, "utf8");
writeFileSync(
  path,
  text.replace(/<!-- library-sizes -->[\s\S]*<!-- \/library-sizes -->/, `<!-- library-sizes -->\n${table}\n<!-- /library-sizes -->`),
);
