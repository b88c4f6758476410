import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import type * as Lodestone from "../../src/index.ts";
import { IndexedDbStore, OpfsStore, VectorIndex } from "../../src/index.ts";
import { describeWith } from "../support/requirements.ts";
import { launchChromium, newPage } from "./launch.ts";
import { serveStatic } from "./static-server.ts";

declare const lodestone: typeof Lodestone;

const LIBRARY = readFileSync(fileURLToPath(new URL("../../dist/packages/library/dist/index.js", import.meta.url)));
const PAGE = `<!doctype html><title>p</title><script type="module">globalThis.lodestone = await import("./lodestone.js");</script>`;

it.each([IndexedDbStore, OpfsStore])("%o refuses what is no index, and what makes none", async (Store) => {
  await expect(new Store().save("name", {} as never)).rejects.toThrow(/^index is an object .*; expected a VectorIndex or a Parallel/);
  await expect(new Store().load("name", undefined as never)).rejects.toThrow(/^kind is nothing; expected VectorIndex or Parallel/);
  await expect(new Store().load(5 as never, VectorIndex)).rejects.toThrow(/^name is 5; expected a text of at least one character/);
});

describeWith("chromium", "indexes kept in a browser", (executablePath) => {
  let server: Awaited<ReturnType<typeof serveStatic>>;
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    server = await serveStatic(
      new Map([
        ["/", { type: "text/html", body: PAGE }],
        ["/lodestone.js", { type: "text/javascript", body: LIBRARY }],
      ]),
    );
    browser = await launchChromium(executablePath);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });
  beforeEach(async () => {
    page = await newPage(browser);
    await page.goto(server.url);
    await page.waitForFunction(() => "lodestone" in globalThis);
  });
  afterEach(() => page.close());

  it.each(["IndexedDbStore", "OpfsStore"] as const)("%s: saves, lists, replaces, loads after a reload, deletes", async (kind) => {
    const saved = await page.evaluate(async (kind) => {
      const store = new lodestone[kind]("test");
      const columns = () => new lodestone.Columns({ year: "int" });
      const one = await lodestone.VectorIndex.create({ dimension: 300, columns: columns() });
      const matrix = Float32Array.from({ length: 3000 * 300 }, (_, i) => Math.sin(i));
      one.upsertMany(
        Array.from({ length: 3000 }, (_, i) => `id${i}`),
        matrix,
        Array.from({ length: 3000 }, (_, i) => ({ year: 2000 + (i % 20) })),
      );
      const small = await lodestone.VectorIndex.create({ dimension: 1 });
      small.upsert("small", [1]);
      await store.save("ä/ name", small);
      await store.save("small", small);
      const progress: number[] = [];
      await store.save("ä/ name", one, { onProgress: ({ rows, totalRows }) => progress.push(rows / totalRows) });
      const options = { k: 7, filter: { year: 2007 }, columns: ["year"] as const };
      return { names: await store.names(), progress, answer: one.search(matrix.subarray(0, 300), options) };
    }, kind);
    expect(saved.names).toEqual(["small", "ä/ name"]);
    expect(saved.progress.length).toBeGreaterThan(2);
    expect(saved.progress.at(-1)).toBe(1);
    expect(saved.answer.totalCount).toBe(150);
    await page.reload();
    await page.waitForFunction(() => "lodestone" in globalThis);
    const loaded = await page.evaluate(async (kind) => {
      const store = new lodestone[kind]("test");
      const query = Float32Array.from({ length: 300 }, (_, i) => Math.sin(i));
      const options = { k: 7, filter: { year: 2007 }, columns: ["year"] as const };
      const one = await store.load("ä/ name", lodestone.VectorIndex, { columns: new lodestone.Columns({ year: "int" }) });
      const many = await store.load("ä/ name", lodestone.ParallelVectorIndex, {
        shards: 2,
        columns: new lodestone.Columns({ year: "int" }),
      });
      const answers = [one.search(query, options), await many.search(query, options)];
      const unknown = await store.load("unknown", lodestone.VectorIndex).catch((error: Lodestone.LodestoneError) => error.code);
      const deleted = [await store.delete("ä/ name"), await store.delete("ä/ name"), await store.delete("small")];
      return { answers, unknown, deleted, names: await store.names() };
    }, kind);
    expect(loaded).toEqual({ answers: [saved.answer, saved.answer], unknown: "NOT_FOUND", deleted: [true, false, true], names: [] });
  });

  it("vectors stay in files of the origin private file system, and are there after a reload", async () => {
    const ask = async (isLoading: boolean) => {
      const dimension = 96;
      const rows = 5_000;
      const matrix = Float32Array.from({ length: rows * dimension }, (_, i) => Math.sin(i * i));
      const root = await navigator.storage.getDirectory();
      const vectors = await root.getDirectoryHandle("vectors", { create: true });
      const store = new lodestone.OpfsStore("images");
      const index = isLoading
        ? await store.load("index", lodestone.ParallelVectorIndex, { vectors })
        : await lodestone.ParallelVectorIndex.create({ dimension, shards: 2, vectors });
      const ids = Array.from({ length: rows }, (_, i) => `id${i}`);
      if (!isLoading) await index.upsertMany(ids, matrix);
      if (!isLoading) await store.save("index", index);
      const inMemory = await lodestone.VectorIndex.create({ dimension });
      inMemory.upsertMany(ids, matrix);
      const query = matrix.slice(7 * dimension, 8 * dimension);
      const answers = [await index.search(query), inMemory.search(query)];
      const sizes = [index.size, await index.fileBytes(), index.build !== "scalar"];
      await index.free();
      return { answers, sizes };
    };
    const created = await page.evaluate(ask, false);
    expect(created.answers[0]).toEqual(created.answers[1]);
    expect(created.sizes).toEqual([5_000, 5_000 * 96 * 4, true]);
    await page.reload();
    await page.waitForFunction(() => "lodestone" in globalThis);
    expect(await page.evaluate(ask, true)).toEqual(created);
  });

  it.each(["IndexedDbStore", "OpfsStore"] as const)(
    "%s: a save that is given up leaves what was there, and nothing besides",
    async (kind) => {
      const outcome = await page.evaluate(async (kind) => {
        const store = new lodestone[kind]("test");
        const index = await lodestone.VectorIndex.create({ dimension: 300 });
        index.upsert("first", new Float32Array(300).fill(1));
        await store.save("name", index);
        index.upsertMany(
          Array.from({ length: 3000 }, (_, i) => `id${i}`),
          new Float32Array(900_000).fill(1),
        );
        const abort = new AbortController();
        const given = await Promise.allSettled([
          store.save("name", index, { signal: abort.signal, onProgress: () => abort.abort("enough") }),
          store.save("new", index, { signal: abort.signal }),
        ]);
        const kept = await store.load("name", lodestone.VectorIndex);
        return {
          reasons: given.map((result) => result.status === "rejected" && result.reason),
          size: kept.size,
          names: await store.names(),
        };
      }, kind);
      expect(outcome).toEqual({ reasons: ["enough", "enough"], size: 1, names: ["name"] });
    },
  );

  it("a file that the user picks is a Blob: an index is saved to one and read from one", async () => {
    const size = await page.evaluate(async () => {
      const index = await lodestone.ParallelVectorIndex.create({ dimension: 2, shards: 1 });
      await index.upsertMany(["a", "b"], Float32Array.of(1, 2, 3, 4));
      const blob = await new Response(index.toStream()).blob();
      const copy = await lodestone.VectorIndex.fromStream(blob);
      await index.free();
      return copy.size;
    });
    expect(size).toBe(2);
  });

  it("timers of the page run while an index is loaded and saved in it", async () => {
    const turns = await page.evaluate(async () => {
      const index = await lodestone.VectorIndex.create({ dimension: 256 });
      index.upsertMany(
        Array.from({ length: 30_000 }, (_, i) => `id${i}`),
        new Float32Array(30_000 * 256).fill(1),
      );
      const bytes = index.toBytes();
      const counts: number[] = [];
      for (const work of [() => lodestone.VectorIndex.fromBytes(bytes), () => new Response(index.toStream()).blob()]) {
        let turns = 0;
        const timer = setInterval(() => turns++);
        await work();
        clearInterval(timer);
        counts.push(turns);
      }
      return counts;
    });
    for (const count of turns) expect(count).toBeGreaterThan(2);
  });
});
