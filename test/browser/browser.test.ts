import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import type * as Lodestone from "../../src/index.ts";
import { referenceSearch } from "../reference.ts";
import { describeWith } from "../support/requirements.ts";
import { launchChromium, newPage } from "./launch.ts";
import { type StaticFile, serveStatic } from "./static-server.ts";

const LIBRARY = readFileSync(fileURLToPath(new URL("../../dist/packages/library/dist/index.js", import.meta.url)));
const PAGE = `<!doctype html><title>Lodestone</title><script type="module">
import * as lodestone from "./lodestone.js";
globalThis.lodestone = lodestone;
</script>`;

/** A page with these headers may share memory between threads. */
const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

declare const lodestone: typeof Lodestone;

/** The same small data on both sides. */
function vectorOf(i: number): number[] {
  return Array.from({ length: 19 }, (_, j) => Math.fround(Math.sin(i * 31 + j * 7)));
}

describeWith("chromium", "the library in a browser", (executablePath) => {
  let server: Awaited<ReturnType<typeof serveStatic>>;
  let browser: Browser;

  beforeAll(async () => {
    const library: StaticFile = { type: "text/javascript", body: LIBRARY };
    server = await serveStatic(
      new Map<string, StaticFile>([
        ["/", { type: "text/html", body: PAGE }],
        ["/no-wasm", { type: "text/html", body: PAGE, headers: { "content-security-policy": "script-src 'self' 'unsafe-inline'" } }],
        ["/isolated", { type: "text/html", body: PAGE, headers: ISOLATED }],
        ["/lodestone.js", library],
      ]),
    );
    browser = await launchChromium(executablePath);
  });

  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  async function open(path: string): Promise<Page> {
    const page = await newPage(browser);
    const failures: string[] = [];
    page.on("pageerror", (error) => failures.push(String(error)));
    await page.goto(server.url + path);
    await page.waitForFunction(() => "lodestone" in globalThis);
    expect(failures).toEqual([]);
    return page;
  }

  it.each([
    [1, 1],
    [4, 4],
    [6, 4],
    [8, 4],
    [16, 8],
  ])("of %i processors a page uses %i, if it does not say how many shards it wants", async (processors, shards) => {
    const page = await open("/");
    const started = await page.evaluate(async (processors) => {
      Object.defineProperty(navigator, "hardwareConcurrency", { value: processors });
      const index = await lodestone.ParallelVectorIndex.create({ dimension: 1 });
      await index.free();
      return index.shards;
    }, processors);
    expect(started).toBe(shards);
    await page.close();
  });

  /**
   * Inserts 300 rows, deletes every seventh, updates every eleventh, then searches with each similarity; runs
   * in the page.
   */
  async function exercise(page: Page): Promise<{ build: string; size: number; answers: Lodestone.SearchResult[] }> {
    return page.evaluate(
      async ({ vectors, updates, query }) => {
        const index = await lodestone.VectorIndex.create({ dimension: 19 });
        index.upsertMany(
          vectors.map((_, i) => `id${i}`),
          Float32Array.from(vectors.flat()),
        );
        for (let i = 0; i < 300; i += 7) index.delete(`id${i}`);
        for (const [id, vector] of updates) index.upsert(id, vector);
        const copy = await lodestone.VectorIndex.fromBytes(index.toBytes());
        const answers = (["cosineSimilarity", "l1", "l2", "dotProduct"] as const).map((similarity) =>
          copy.search(query, { k: 12, similarity }),
        );
        return { build: index.build, size: index.size, answers };
      },
      { vectors: Array.from({ length: 300 }, (_, i) => vectorOf(i)), updates: updates(), query: vectorOf(1000) },
    );
  }

  function updates(): [string, number[]][] {
    return Array.from({ length: 28 }, (_, i) => [`id${i * 11}`, vectorOf(5000 + i)]);
  }

  function expected(): Lodestone.SearchResult[] {
    const model = new Map(Array.from({ length: 300 }, (_, i) => [`id${i}`, vectorOf(i)]));
    for (let i = 0; i < 300; i += 7) model.delete(`id${i}`);
    for (const [id, vector] of updates()) model.set(id, vector);
    return (["cosineSimilarity", "l1", "l2", "dotProduct"] as const).map((similarity) =>
      referenceSearch(model, vectorOf(1000), { k: 12, similarity }),
    );
  }

  it("a plain page inserts, updates, deletes, snapshots and searches, with the oracle's answers", async () => {
    const page = await open("/");
    const { build, size, answers } = await exercise(page);
    expect(build).not.toBe("scalar");
    expect(size).toBe(expected()[0]!.totalCount);
    expect(answers).toEqual(expected());
    await page.close();
  });

  it("ParallelVectorIndex runs its shards in Web Workers, with the oracle's answers", async () => {
    const page = await open("/");
    const { shards, answers } = await page.evaluate(
      async ({ vectors, updates, query }) => {
        const index = await lodestone.ParallelVectorIndex.create({ dimension: 19, shards: 2 });
        await index.upsertMany(
          vectors.map((_, i) => `id${i}`),
          Float32Array.from(vectors.flat()),
        );
        for (let i = 0; i < 300; i += 7) await index.delete(`id${i}`);
        for (const [id, vector] of updates) await index.upsert(id, vector);
        const answers = [];
        for (const similarity of ["cosineSimilarity", "l1", "l2", "dotProduct"] as const)
          answers.push(await index.search(query, { k: 12, similarity }));
        await index.free();
        return { shards: index.shards, answers };
      },
      { vectors: Array.from({ length: 300 }, (_, i) => vectorOf(i)), updates: updates(), query: vectorOf(1000) },
    );
    expect(shards).toBe(2);
    expect(answers).toEqual(expected());
    await page.close();
  });

  it.each([
    ["/", false],
    ["/isolated", true],
  ])("shards of the page %s, where memory is shared: %s, give the oracle's answers", async (path, isShared) => {
    const page = await open(path);
    const vectors = Array.from({ length: 3000 }, (_, i) => vectorOf(i));
    const { isIsolated, answers } = await page.evaluate(
      async ({ vectors, query }) => {
        const index = await lodestone.ParallelVectorIndex.create({ dimension: 19, shards: 2 });
        await index.upsertMany(
          vectors.map((_, i) => `id${i}`),
          Float32Array.from(vectors.flat()),
        );
        const answers = [];
        for (const similarity of ["cosineSimilarity", "l1", "l2", "dotProduct"] as const)
          answers.push(await index.search(query, { similarity }));
        await index.free();
        return { isIsolated: crossOriginIsolated && typeof SharedArrayBuffer === "function", answers };
      },
      { vectors, query: vectorOf(7000) },
    );
    expect(isIsolated).toBe(isShared);
    const model = new Map(vectors.map((vector, i) => [`id${i}`, vector]));
    expect(answers).toEqual(
      (["cosineSimilarity", "l1", "l2", "dotProduct"] as const).map((similarity) =>
        referenceSearch(model, vectorOf(7000), { k: 10, similarity }),
      ),
    );
    await page.close();
  });

  it("where a Content-Security-Policy forbids WebAssembly, the scalar build gives the same answers", async () => {
    const page = await open("/no-wasm");
    const { build, answers } = await exercise(page);
    expect(build).toBe("scalar");
    expect(answers).toEqual(expected());
    await page.close();
  });
});
