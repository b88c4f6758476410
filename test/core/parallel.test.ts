import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { ParallelVectorIndex, RowDirectory, VectorIndex } from "../../src/index.ts";
import { SIMILARITIES } from "../reference.ts";
import { describeBuilds } from "./builds.ts";
import { source } from "./data-kinds.ts";

function dataOf(kind: string, dimension: number, count: number): { ids: string[]; matrix: Float32Array; query: Float32Array } {
  const data = source(kind, dimension, 3);
  const matrix = new Float32Array(count * dimension);
  for (let i = 0; i < count; i++) matrix.set(data.next(), i * dimension);
  return { ids: Array.from({ length: count }, (_, i) => `id${(i * 7919) % count}`), matrix, query: data.next() };
}

describeBuilds("ParallelVectorIndex", (build) => {
  it.each([1, 2, 3])("%i shards give the answers of one index, with masks, deletions, updates and ties", async (shards) => {
    for (const kind of ["small whole numbers, many zeros and ties"]) {
      const { ids, matrix, query } = dataOf(kind, 50, 9000);
      const one = await VectorIndex.create({ dimension: 50 });
      const many = await ParallelVectorIndex.create({ dimension: 50, shards });
      expect([many.build, many.shards]).toEqual([build, shards]);
      one.upsertMany(ids, matrix);
      await many.upsertMany(ids, matrix);
      const changes: Promise<unknown>[] = [];
      for (let i = 0; i < 9000; i += 11) {
        one.delete(`id${i}`);
        changes.push(many.delete(`id${i}`));
      }
      for (let i = 0; i < 300; i++) {
        one.upsert(`new${i}`, matrix.subarray(i * 50, i * 50 + 50));
        changes.push(many.upsert(`new${i}`, matrix.subarray(i * 50, i * 50 + 50)));
      }
      await Promise.all(changes);
      expect([many.size, many.capacity]).toEqual([one.size, one.capacity]);
      const mask = new Uint32Array(Math.ceil(one.capacity / 32)).map((_, i) => Math.imul(i + 1, 0x9e3779b1));
      for (const similarity of SIMILARITIES) {
        for (const filter of [undefined, mask, mask.subarray(0, 100), (id: string) => id.endsWith("9")]) {
          expect(await many.search(query, { similarity, filter, k: 25 })).toEqual(one.search(query, { similarity, filter, k: 25 }));
        }
        const queries = [query, matrix.subarray(0, 50), matrix.subarray(50, 100)].filter((q) => q.some((x) => x !== 0));
        expect(await many.searchMany(queries, { similarity, k: 3 })).toEqual(one.searchMany(queries, { similarity, k: 3 }));
      }
      expect(await many.get("new7")).toEqual(one.get("new7"));
      expect([await many.has("id11"), await many.has("id12"), await many.get("id11")]).toEqual([false, true, undefined]);
      expect(Buffer.compare(await many.toBytes(), one.toBytes())).toBe(0);
      const copy = await ParallelVectorIndex.fromBytes(one.toBytes(), { shards });
      expect(await copy.search(query, { k: 25 })).toEqual(one.search(query, { k: 25 }));
      await copy.free();
      await many.free();
    }
  });

  it("operations take effect in the order of the calls, awaited or not", async () => {
    const index = await ParallelVectorIndex.create({ dimension: 2, shards: 2 });
    const first = index.upsert("a", [1, 0]);
    const before = index.search([0, 1], { similarity: "l2" });
    const second = index.upsert("a", [0, 1]);
    const after = index.search([0, 1], { similarity: "l2" });
    const gone = index.delete("a");
    const other = index.upsert("b", [5, 5]);
    const last = index.search([0, 1], { similarity: "l2" });
    expect((await before).results).toEqual([{ id: "a", score: 1 / 3 }]);
    expect((await after).results).toEqual([{ id: "a", score: 1 }]);
    expect((await last).results).toEqual([{ id: "b", score: 1 / (1 + 25 + 16) }]);
    expect(await gone).toBe(true);
    await Promise.all([first, second, other]);
    await index.free();
  });

  it("holds more than one shard's memory; when all shards are full it says so and still answers", async () => {
    const limit = 8 * 2 ** 20;
    const vector = new Float32Array(512).fill(1);
    const alone = await VectorIndex.create({ dimension: 512, maximumMemoryBytes: limit });
    let fits = 0;
    const fill = () => {
      for (; fits < 100_000; fits++) alone.upsert(`${fits}`, vector);
    };
    expect(fill).toThrow(/^No room/);
    const index = await ParallelVectorIndex.create({ dimension: 512, shards: 3, maximumMemoryBytes: limit });
    const count = 2 * 2048 + 1000;
    expect(count).toBeGreaterThan(fits);
    await index.upsertMany(
      Array.from({ length: count }, (_, i) => `${i}`),
      new Float32Array(count * 512).fill(1),
    );
    expect((await index.search(vector, { k: 1 })).totalCount).toBe(count);
    const more = Array.from({ length: 9000 }, (_, i) => `more${i}`);
    await expect(index.upsertMany(more, new Float32Array(9000 * 512).fill(1))).rejects.toMatchObject({
      name: "LodestoneError",
      code: "OUT_OF_MEMORY",
    });
    const { totalCount, results } = await index.search(vector, { k: 2 });
    expect(totalCount).toBe(index.size);
    expect(results).toEqual([
      { id: "0", score: 2 },
      { id: "1", score: 2 },
    ]);
    expect(index.rows.size).toBe(index.size);
    // The rows of those that found no room are used again from the lowest one: there is room in the last pages.
    for (let i = 0; i < 20; i++) await index.upsert(`new${i}`, vector);
    expect(index.size).toBe(totalCount + 20);
    await index.free();
  });

  it("shares a directory: releasing an id clears it in the workers", async () => {
    const rows = new RowDirectory();
    const a = await ParallelVectorIndex.create({ dimension: 1, rows, shards: 2 });
    const b = await VectorIndex.create({ dimension: 1, rows });
    await a.upsert("x", [1]);
    b.upsert("x", [2]);
    expect(await a.delete("x")).toBe(true);
    expect([rows.rowOf("x"), b.has("x"), await a.has("x")]).toEqual([0, true, false]);
    await a.upsert("x", [3]);
    rows.release("x");
    rows.add("y");
    expect(await a.search([1])).toEqual({ totalCount: 0, results: [] });
    expect(await a.getMany(["y"])).toEqual([undefined]);
    await a.free();
    rows.release("y");
  });

  it("reads, removes and goes over many, like VectorIndex", async () => {
    const index = await ParallelVectorIndex.create({ dimension: 1, shards: 2 });
    const ids = Array.from({ length: 3000 }, (_, i) => `id${i}`);
    await index.upsertMany(
      ids,
      Float32Array.from(ids, (_, i) => i + 1),
    );
    expect(await index.getMany(["id2999", "x", "id0"])).toEqual([Float32Array.of(3000), undefined, Float32Array.of(1)]);
    const read = new Map<string, number>();
    for await (const [id, [value]] of index) read.set(id, value!);
    expect(read).toEqual(new Map(ids.map((id, i) => [id, i + 1])));
    const removed = index.deleteMany([...ids.slice(1000), "x", "id1000"]);
    const after = index.search([1]);
    expect([await removed, (await after).totalCount, index.size]).toEqual([2000, 1000, 1000]);
    await expect(index.deleteMany(["id0", 5 as never])).rejects.toThrow(/^id is of type number/);
    await index.clear();
    expect([index.size, await index.search([1])]).toEqual([0, { totalCount: 0, results: [] }]);
    await index.upsert("again", [1]);
    expect([index.rows.size, index.rows.rowOf("again")]).toEqual([1, 0]);
    await index.free();
  });

  it("refuses bad input like VectorIndex, and any use after free", async () => {
    const index = await ParallelVectorIndex.create({ dimension: 2, shards: 1 });
    await expect(index.upsert("a", [1])).rejects.toThrow(/^vector has 1 element; expected 2/);
    await expect(index.search([0, 0])).rejects.toThrow(/^query is the zero vector/);
    await expect(index.searchMany([[1, 2], [1]])).rejects.toThrow(/^queries\[1\] has 1 element/);
    await expect(ParallelVectorIndex.create({ dimension: 2, shards: 0 })).rejects.toThrow(
      /^shards is 0; expected an integer from 1 to 1024/,
    );
    await expect(ParallelVectorIndex.create({ dimension: 2, shards: "2" as never })).rejects.toThrow(/^shards is "2"; expected an integer/);
    await expect(ParallelVectorIndex.create({ dimension: 2, rows: 5 as never })).rejects.toThrow(/^rows is 5; expected a RowDirectory/);
    await expect(index.searchMany(5 as never)).rejects.toThrow(/^queries is 5; expected an array of vectors/);
    await expect(index.search([1, 2], { signal: 5 } as never)).rejects.toThrow(/^signal is 5; expected an AbortSignal/);
    await expect(index.search([1, 2], { topK: 2 } as never)).rejects.toThrow(/^"topK" is not an option here/);
    await expect(index.get(5 as never)).rejects.toThrow(/^id is of type number/);
    await expect(ParallelVectorIndex.create({ dimension: 2, maximumMemoryBytes: -1 })).rejects.toThrow(/^maximumMemoryBytes is -1/);
    await expect(ParallelVectorIndex.create({ dimension: 2, threads: 2 } as never)).rejects.toThrow(/^"threads" is not an option here/);
    await index.upsert("a", [1, 2]);
    await index.free();
    await expect(index.search([1, 2])).rejects.toThrow(/freed/);
    for (const use of [() => index.has("a"), () => index.get("a"), () => index.delete("a"), () => index.upsert("b", [1, 2])])
      await expect(use()).rejects.toThrow(/freed/);
    expect(() => index.size).toThrow(/freed/);
  });
});

it("a program that only awaits the end of an index finishes, even if replies come late", async () => {
  const program = `
    import { init, ParallelVectorIndex } from "${new URL("../../dist/index.js", import.meta.url)}";
    init({ build: "scalar" });
    for (let i = 0; i < 10; i++) {
      const index = await ParallelVectorIndex.create({ dimension: 2, shards: 2 });
      await index.upsert("a", [1, 2]);
      const late = [index.search([1, 2]), index.delete("a")].map((answer) => answer.catch(() => "freed"));
      const until = performance.now() + i;
      while (performance.now() < until);
      await index.free();
      await Promise.all(late);
    }
    console.log("all freed");`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  expect(stdout).toBe("all freed\n");
});
