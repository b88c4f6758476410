import { expect, it } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { init, LodestoneError, RowDirectory, VectorIndex } from "../../src/index.ts";
import { SIMILARITIES } from "../reference.ts";
import { describeBuilds } from "./builds.ts";

describeBuilds("VectorIndex", () => {
  it("stores, reads back, replaces and deletes", async () => {
    const index = await VectorIndex.create({ dimension: 3 });
    index.upsert("a", [0.1, 2, 3]);
    expect(index.get("a")).toEqual(Float32Array.of(0.1, 2, 3));
    index.upsert("a", Float32Array.of(4, 5, 6));
    expect(index.get("a")).toEqual(Float32Array.of(4, 5, 6));
    expect([index.size, index.dimension, index.has("a"), index.has("b")]).toEqual([1, 3, true, false]);
    expect(index.delete("a")).toBe(true);
    expect(index.delete("a")).toBe(false);
    expect([index.size, index.has("a"), index.get("a")]).toEqual([0, false, undefined]);
    expect(index.search([1, 1, 1])).toEqual({ totalCount: 0, results: [] });
  });

  it("a deleted row never reappears when another id takes its place", async () => {
    const index = await VectorIndex.create({ dimension: 2 });
    index.upsert("a", [1, 0]);
    index.delete("a");
    index.upsert("b", [0, 1]);
    expect(index.search([1, 0]).results.map((r) => r.id)).toEqual(["b"]);
    expect(index.capacity).toBe(1);
  });

  it("results have the cosine itself where it is asked for", async () => {
    const index = await VectorIndex.create({ dimension: 2 });
    const rows = { same: [2, 0], "at 60°": [1, Math.sqrt(3)], right: [0, 1], zero: [0, 0], opposite: [-1, 0] };
    for (const [id, vector] of Object.entries(rows)) index.upsert(id, vector);
    const { results } = index.search([1, 0], { cosine: true, similarity: "cosineSimilarity" });
    expect(results.map(({ id, cosine }) => [id, cosine])).toEqual([
      ["same", 1],
      ["at 60°", expect.closeTo(0.5, 7)],
      ["right", 0],
      ["zero", 0],
      ["opposite", -1],
    ]);
    for (const { score, cosine } of results) expect(1 + cosine!).toBe(score);
    expect(index.searchMany([[1, 0]], { cosine: true, k: 1 })[0]!.results).toEqual([{ id: "same", score: 2, cosine: 1 }]);
    expect(index.search([1, 0], { k: 1, cosine: false }).results).toEqual([{ id: "same", score: 2 }]);
    index.free();
  });

  it("ids named like properties of Object are ordinary ids", async () => {
    const index = await VectorIndex.create({ dimension: 1 });
    for (const id of ["__proto__", "constructor", "toString"]) index.upsert(id, [1]);
    expect(index.size).toBe(3);
    expect(index.search([1]).results.map((r) => r.id)).toEqual(["__proto__", "constructor", "toString"]);
  });

  it("upsertMany takes a row-major matrix, and an id given twice keeps the last", async () => {
    const index = await VectorIndex.create({ dimension: 2 });
    index.upsertMany(["a", "b", "a"], Float32Array.of(1, 2, 3, 4, 5, 6));
    expect(index.size).toBe(2);
    expect(index.get("a")).toEqual(Float32Array.of(5, 6));
    expect(index.get("b")).toEqual(Float32Array.of(3, 4));
  });

  it("k larger than the number of rows returns all; the default is 10", async () => {
    const index = await VectorIndex.create({ dimension: 1 });
    index.upsertMany(
      Array.from({ length: 20 }, (_, i) => `id${i}`),
      Float32Array.from({ length: 20 }, (_, i) => i),
    );
    expect(index.search([0], { similarity: "l1" }).results.length).toBe(10);
    expect(index.search([0], { similarity: "l1", k: 100_000 }).results.map((r) => r.id)).toEqual(
      Array.from({ length: 20 }, (_, i) => `id${i}`),
    );
  });

  it("a filter is a function of ids or a bit mask over rows, and totalCount counts what passes", async () => {
    const index = await VectorIndex.create({ dimension: 1 });
    const ids = Array.from({ length: 100 }, (_, i) => `id${i}`);
    index.upsertMany(
      ids,
      Float32Array.from(ids, (_, i) => i),
    );
    const mask = new Uint32Array(Math.ceil(index.capacity / 32));
    for (const id of ["id7", "id64", "id99"]) {
      const row = index.rows.rowOf(id)!;
      mask[row >> 5]! |= 1 << (row & 31);
    }
    const expected = { totalCount: 3, ids: ["id64", "id99", "id7"] };
    for (const filter of [mask, (id: string) => ["id7", "id64", "id99"].includes(id)]) {
      const { totalCount, results } = index.search([66], { similarity: "l2", filter });
      expect({ totalCount, ids: results.map((r) => r.id) }).toEqual(expected);
    }
    expect(index.search([66], { filter: mask.slice(0, 1), similarity: "l2" }).results.map((r) => r.id)).toEqual(["id7"]);
    expect(index.search([66], { filter: new Uint32Array(1000).fill(2 ** 32 - 1), similarity: "l2" }).totalCount).toBe(100);
    expect(index.search([66], { filter: new Uint32Array(0), similarity: "l2" })).toEqual({ totalCount: 0, results: [] });
  });

  it("searchMany returns for each query what search returns", async () => {
    const random = seededRandom(3);
    const index = await VectorIndex.create({ dimension: 64 });
    const ids = Array.from({ length: 500 }, (_, i) => `id${i}`);
    index.upsertMany(
      ids,
      Float32Array.from({ length: 500 * 64 }, () => random() - 0.5),
    );
    const queries = Array.from({ length: 37 }, () => Array.from({ length: 64 }, () => random() - 0.5));
    for (const similarity of SIMILARITIES) {
      const options = { similarity, k: 7, filter: (id: string) => !id.endsWith("3") };
      expect(index.searchMany(queries, options)).toEqual(queries.map((query) => index.search(query, options)));
    }
    for (const similarity of SIMILARITIES) expect(index.searchMany([], { similarity, k: 1 })).toEqual([]);
  });

  it("indexes that share a directory share rows; delete removes one vector, release removes the id everywhere", async () => {
    const rows = new RowDirectory();
    const title = await VectorIndex.create({ dimension: 2, rows });
    const body = await VectorIndex.create({ dimension: 3, rows });
    title.upsert("a", [1, 0]);
    body.upsert("a", [1, 0, 0]);
    body.upsert("b", [0, 1, 0]);
    expect(rows.size).toBe(2);
    expect(title.delete("a")).toBe(true);
    expect([title.has("a"), body.has("a"), rows.rowOf("a")]).toEqual([false, true, 0]);
    expect(title.delete("a")).toBe(false);
    expect(rows.release("a")).toBe(true);
    expect([body.has("a"), body.size, rows.size]).toEqual([false, 1, 1]);
    title.upsert("c", [1, 1]);
    expect(rows.rowOf("c")).toBe(0);
    expect(body.has("c")).toBe(false);
    body.free();
    expect(rows.release("b")).toBe(true);
  });

  it("bad input is refused with what was given and what was expected, and changes nothing", async () => {
    const index = await VectorIndex.create({ dimension: 3 });
    index.upsert("a", [1, 2, 3]);
    const refused: [() => unknown, typeof TypeError | typeof RangeError, RegExp][] = [
      [() => index.upsert("b", [1, 2]), RangeError, /^vector has 2 elements; expected 3, the dimension of the index\.$/],
      [() => index.upsert("b", [1, Number.NaN, 3]), RangeError, /^vector\[1\] is NaN; expected a finite number/],
      [() => index.upsert("b", [1, 2, 1e300]), RangeError, /^vector\[2\] is 1e\+300; expected/],
      [() => index.upsert("b", Float32Array.of(1, 2, Infinity)), RangeError, /^vector\[2\] is Infinity/],
      [() => index.upsert("a", ["1", 2, 3] as unknown as number[]), TypeError, /^vector\[0\] is "1"; expected a finite number/],
      [() => index.upsert("b", null as unknown as number[]), TypeError, /^vector is null; expected an array of 3 numbers/],
      [() => index.upsert(5 as unknown as string, [1, 2, 3]), TypeError, /^id is of type number; expected a string/],
      [() => index.upsert("\uD800", [1, 2, 3]), RangeError, /lone surrogate/],
      [() => index.upsertMany(["b", "c"], Float32Array.of(1, 2, 3, 4, 5)), RangeError, /^matrix has 5 elements; expected 2 × 3 = 6/],
      [() => index.upsertMany(["b", "c"], Float32Array.of(1, 2, 3, 4, NaN, 6)), RangeError, /^matrix row 1, element 1 is NaN/],
      [() => index.upsertMany(["b", 7 as unknown as string], new Float32Array(6)), TypeError, /^id is of type number/],
      [
        () => index.upsertMany(["b"], [1, 2, 3] as unknown as Float32Array),
        TypeError,
        /^matrix is an array of 3 elements; expected a Float32Array/,
      ],
      [() => index.search([0, 0, -0]), RangeError, /^query is the zero vector/],
      [() => index.search([1, 2, 3, 4]), RangeError, /^query has 4 elements; expected 3/],
      [() => index.searchMany([[1, 2, 3], [1]]), RangeError, /^queries\[1\] has 1 element; expected 3/],
      [() => index.search([1, 2, 3], { k: 0 }), RangeError, /^k is 0; expected an integer of at least 1/],
      [() => index.search([1, 2, 3], { k: 1.5 }), RangeError, /^k is 1\.5/],
      [() => index.search([1, 2, 3], { k: "3" as unknown as number }), TypeError, /^k is "3"; expected/],
      [() => index.search([1, 2, 3], { similarity: "dot" as "l1" }), RangeError, /^similarity is "dot"; expected/],
      [() => index.search([1, 2, 3], { similarity: "__proto__" as "l1" }), RangeError, /^similarity is "__proto__"/],
      [() => index.search([1, 2, 3], { cosine: 1 as never }), TypeError, /^cosine is 1, similarity cosineSimilarity; expected true with/],
      [
        () => index.search([1, 2, 3], { cosine: true, similarity: "dotProduct" }),
        TypeError,
        /^cosine is true, similarity dotProduct; expected true with cosineSimilarity alone, or false\.$/,
      ],
      [
        () => index.search([1, 2, 3], { filter: "x" as unknown as Uint32Array }),
        TypeError,
        /^filter is "x"; expected a Uint32Array over rows, /,
      ],
      [() => index.search([1, 2, 3], { filter: async () => false } as never), TypeError, /^filter answered .* cannot be asynchronous/],
      [() => index.search([1, 2, 3], { topK: 2 } as never), TypeError, /^"topK" is not an option here; expected "k", "similarity", /],
      [() => index.search([1, 2, 3], null as never), TypeError, /^options is null; expected an object/],
      [() => index.search([1, 2, 3], [5] as never), TypeError, /^options is an array of 1 element; expected an object/],
      [() => index.search([1, 2, 3], { offset: "1" as never }), TypeError, /^offset is "1"; expected an integer of at least 0/],
      [() => index.search([1, 2, 3], { scoreThreshold: "1" as never }), RangeError, /^scoreThreshold is "1"; expected a finite number/],
      [() => index.searchMany(undefined as never), TypeError, /^queries is nothing; expected an array of vectors/],
      [() => index.searchMany(new Float32Array(6) as never), TypeError, /^queries is a Float32Array; expected an array of vectors/],
      [() => index.toStream({ onProgress: 5 } as never), TypeError, /^onProgress is 5; expected a function/],
      [() => init({ build: "fast" as never }), RangeError, /^build is "fast"; expected "relaxed"/],
      [
        () => index.toStream({ onprogress: () => {} } as never),
        TypeError,
        /^"onprogress" is not an option here; expected "signal", "onProgress"/,
      ],
      [() => index.toStream({ signal: 5 } as never), TypeError, /^signal is 5; expected an AbortSignal/],
      [() => index.get(5 as never), TypeError, /^id is of type number; expected a string/],
      [() => index.has(undefined as never), TypeError, /^id is of type undefined/],
      [() => index.delete(null as never), TypeError, /^id is of type object/],
    ];
    for (const [act, type, message] of refused) {
      expect(act).toThrow(type);
      expect(act).toThrow(message);
    }
    expect([index.size, index.rows.size, index.get("a")]).toEqual([1, 1, Float32Array.of(1, 2, 3)]);
    for (const dimension of [0, -1, 1.5, 10_001, Number.NaN]) {
      await expect(VectorIndex.create({ dimension })).rejects.toThrow(/^dimension is .*; expected an integer from 1 to 10000/);
    }
    await expect(VectorIndex.create({ dimension: "3" as unknown as number })).rejects.toThrow(TypeError);
    await expect(VectorIndex.create(undefined as never)).rejects.toThrow(/^options is nothing; expected an object/);
    await expect(VectorIndex.create({ dimension: 3, threads: 2 } as never)).rejects.toThrow(/^"threads" is not an option here/);
    for (const maximumMemoryBytes of [-1, 0, Number.NaN, Infinity, 2 ** 33, null as never, "1 GB" as never]) {
      await expect(VectorIndex.create({ dimension: 3, maximumMemoryBytes })).rejects.toThrow(
        /^maximumMemoryBytes is .*; expected a number of bytes up to 4294967296/,
      );
    }
    await expect(VectorIndex.create({ dimension: 3, maximumMemoryBytes: null as never })).rejects.toThrow(TypeError);
    await expect(VectorIndex.create({ dimension: 3, rows: {} as never })).rejects.toThrow(/^rows is an object .*; expected a RowDirectory/);
    await expect(VectorIndex.create({ dimension: 3, columns: { year: "int" } as never })).rejects.toThrow(
      /^columns is an object with "year"; expected Columns or TextColumns/,
    );
    await expect(VectorIndex.fromBytes(index.toBytes(), { dimension: 3 } as never)).rejects.toThrow(/^"dimension" is not an option here/);
    await expect(VectorIndex.fromBytes(index.toBytes(), null as never)).rejects.toThrow(/^options is null; expected an object/);
  });

  it("grows as needed; at the memory limit it says so, changes nothing and still answers", async () => {
    const index = await VectorIndex.create({ dimension: 512, maximumMemoryBytes: 16 * 2 ** 20 });
    const vector = new Float32Array(512).fill(1);
    let stored = 0;
    const fill = () => {
      for (; stored < 100_000; stored++) index.upsert(`id${stored}`, vector);
    };
    expect(fill).toThrow(LodestoneError);
    expect(fill).toThrow(expect.objectContaining({ code: "OUT_OF_MEMORY" }));
    expect(stored).toBeGreaterThan(3000);
    expect([index.size, index.rows.size, index.has(`id${stored}`)]).toEqual([stored, stored, false]);
    expect(() => index.upsertMany(["x", "id0"], new Float32Array(1024))).toThrow(
      /^No room for \d+ rows of dimension 512: the index holds \d+ rows and may use 16 MiB/,
    );
    expect([index.has("x"), index.get("id0")]).toEqual([false, vector]);
    expect(index.search(vector, { k: 2 })).toEqual({
      totalCount: stored,
      results: [
        { id: "id0", score: 2 },
        { id: "id1", score: 2 },
      ],
    });
    index.delete("id0");
    index.upsert("again", vector);
    expect(index.has("again")).toBe(true);
  });

  it("reads, removes and goes over many", async () => {
    const rows = new RowDirectory();
    for (const shared of [undefined, rows]) {
      const index = await VectorIndex.create({ dimension: 2, rows: shared });
      index.upsertMany(["a", "b", "c"], Float32Array.of(1, 2, 3, 4, 5, 6));
      rows.add("without a vector");
      expect(index.getMany(["c", "x", "a", "c"])).toEqual([Float32Array.of(5, 6), undefined, Float32Array.of(1, 2), Float32Array.of(5, 6)]);
      expect([...index]).toEqual([...index.entries()]);
      expect(new Map(index)).toEqual(
        new Map([
          ["a", Float32Array.of(1, 2)],
          ["b", Float32Array.of(3, 4)],
          ["c", Float32Array.of(5, 6)],
        ]),
      );
      expect(index.deleteMany(["b", "x", "b"])).toBe(1);
      expect(() => index.deleteMany(["a", 5 as never])).toThrow(/^id is of type number/);
      expect([index.size, index.has("a")]).toEqual([2, true]);
      index.clear();
      expect([index.size, [...index], index.search([1, 2]).totalCount]).toEqual([0, [], 0]);
      index.upsert("again", [1, 2]);
      if (shared === undefined) expect([index.rows.size, index.rows.rowOf("again")]).toEqual([1, 0]);
      index.free();
    }
    expect(rows.size).toBe(5);
  });

  it("a freed index refuses to be used", async () => {
    const index = await VectorIndex.create({ dimension: 2 });
    index.upsert("a", [1, 2]);
    index.free();
    expect(() => index.upsert("a", [1, 2])).toThrow(/^The index was freed; create another one\.$/);
    expect(() => index.search([1, 2])).toThrow(/freed/);
    const uses = ["a", "nobody"].flatMap((id) => [() => index.has(id), () => index.get(id), () => index.delete(id)]);
    for (const use of [() => index.size, ...uses]) expect(use).toThrow(/freed/);
  });
});
