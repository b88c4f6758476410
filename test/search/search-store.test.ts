import type { Worker } from "node:worker_threads";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { BranchRef } from "../../src/records/schema.ts";
import { openSearchStore, type SearchStoreOptions } from "../../src/search/open-search-store.ts";
import type { SearchStore, SimilarityFunction, VectorSearchRequest } from "../../src/search/search-store.ts";
import { startSearchWorker } from "../../src/search/worker-client.ts";
import { referenceSearch } from "../reference.ts";
import { ENGINES, type EngineFixture } from "./engines.ts";
import { type MemoryRecord, MemoryRecords, withId } from "./memory-records.ts";

const REF: BranchRef = { database: "db", branch: "main" };
const OPTIONS: SearchStoreOptions = { pollMs: 50, waitMs: 30_000 };

const invalid = (message: string | RegExp) => ({
  code: "INVALID",
  message: message instanceof RegExp ? expect.stringMatching(message) : message,
});

function reference(rows: readonly MemoryRecord[], query: number[], similarity: SimilarityFunction) {
  const vectors = rows.flatMap((row) => (row.embedding === null ? [] : [[row.id, row.embedding as number[]] as const]));
  return referenceSearch(vectors, query, { k: 1000, similarity });
}

const item = (id: string, embedding: number[] | null, more: object = {}): MemoryRecord => ({ id, embedding, ...more });

function recordsWithItems(): MemoryRecords {
  const records = new MemoryRecords();
  records.createBranch(REF);
  records.createTable(REF, "teams", [{ name: "name", type: "string" }]);
  records.createTable(REF, "items", [
    { name: "embedding", type: "vector", vector: { dimension: 3 } },
    { name: "color", type: "string" },
    { name: "price", type: "float" },
    { name: "team", type: "link", link: { table: "teams" } },
  ]);
  return records;
}

describe.each(ENGINES)("search store over %s", (_, start) => {
  let engine: EngineFixture;
  let records: MemoryRecords;
  let store: SearchStore;

  beforeAll(async () => {
    engine = await start();
  });
  afterAll(() => engine.stop());
  beforeEach(async () => {
    await engine.reset();
    records = recordsWithItems();
    store = await engine.open(records, OPTIONS);
  });
  afterEach(() => store.close());

  const search = (request: Partial<VectorSearchRequest>, table = "items") =>
    store.vectorSearch(REF, table, { column: "embedding", queryVector: [1, 2, 3], consistency: "strong", ...request });
  const ids = async (request: Partial<VectorSearchRequest>) => (await search(request)).results.map(({ id }) => id);

  test("answers as the exhaustive computation does, with filters, ties, offset and minScore", async () => {
    let seed = 7;
    const random = (): number => {
      seed = (seed * 48271) % 2147483647;
      return seed / 2147483647;
    };
    records.write(REF, "teams", [
      { id: "t1", name: "red" },
      { id: "t2", name: "blue" },
    ]);
    const rows = Array.from({ length: 500 }, (_, i) => {
      // Few distinct vectors, so that equal scores are ordered by id.
      const embedding = i % 17 === 0 ? null : [0, 1, 2].map(() => Math.round(random() * 4 - 2));
      return item(`i${(i * 7919) % 500}`, embedding, {
        color: ["red", "green", null][i % 3],
        price: i % 5 === 0 ? null : i,
        team: ["t1", "t2", null][i % 3],
      });
    });
    records.write(REF, "items", rows);
    for (const similarityFunction of ["cosineSimilarity", "l1", "l2"] as const) {
      for (const [filter, passes] of [
        [undefined, () => true],
        [{ color: "red" }, (r: MemoryRecord) => r.color === "red"],
        [
          { "team.name": "blue", price: { $gt: 100 } },
          (r: MemoryRecord) => r.team === "t2" && r.price !== null && (r.price as number) > 100,
        ],
        [
          { $none: [{ color: "red" }, { $notExists: "price" }] },
          (r: MemoryRecord) => r.color !== null && r.color !== "red" && r.price !== null,
        ],
        [{ color: "purple" }, () => false],
      ] as const) {
        const { results: expected } = reference(rows.filter(passes), [1, 2, 3], similarityFunction);
        const all = await search({ similarityFunction, filter, size: 1000 });
        expect(all).toEqual({ totalCount: expected.length, results: expected });
        const page = await search({ similarityFunction, filter, size: 7, offset: 5, minScore: 0.9 });
        expect(page.results).toEqual(expected.slice(5, 12).filter(({ score }) => score >= 0.9));
        expect(page.totalCount).toBe(expected.length);
      }
    }
  });

  test("answers several queries at once as it answers each one", async () => {
    records.write(REF, "items", [item("a", [1, 0, 0]), item("b", [0, 1, 0]), item("c", [0, 0, 1], { color: "red" })]);
    const queryVectors = [
      [1, 2, 3],
      [3, 2, 1],
    ];
    const answers = await store.vectorSearchMany(REF, "items", {
      column: "embedding",
      queryVectors,
      filter: { $notExists: "color" },
      consistency: "strong",
    });
    const single = await Promise.all(queryVectors.map((queryVector) => search({ queryVector, filter: { $notExists: "color" } })));
    expect(answers).toEqual(single);
    expect(answers.map(({ results }) => results.map(({ id }) => id))).toEqual([
      ["b", "a"],
      ["a", "b"],
    ]);
  });

  test("follows inserts, updates and deletes; strong answers reflect every write made before", async () => {
    expect(await search({})).toEqual({ totalCount: 0, results: [] });
    for (let i = 0; i < 50; i++) {
      records.write(REF, "items", [item("a", [i, 1, 0]), item(`b${i}`, [1, i, 0])], i > 0 ? [`b${i - 1}`] : []);
      const { totalCount, results } = await search({ queryVector: [i, 1, 0], similarityFunction: "l2" });
      expect(totalCount).toBe(2);
      expect(results[0]!).toEqual({ id: i === 1 ? "a" : "a", score: 1 });
      expect(results.map(({ id }) => id).sort()).toEqual(["a", `b${i}`]);
    }
    records.write(REF, "items", [item("a", null)]);
    expect(await ids({})).toEqual(["b49"]);
  });

  test("catches up by itself, even when a notification was lost", async () => {
    await search({});
    records.isSilent = true;
    records.write(REF, "items", [item("a", [1, 2, 3])]);
    await expect.poll(async () => (await search({ consistency: "eventual" })).totalCount).toBe(1);
  });

  test.each([
    ["is told of", false],
    ["is not told of", true],
  ])("follows what it %s after the clock was set back", async (_, isSilent) => {
    records.write(REF, "items", [item("a", [1, 2, 3])]);
    await search({});
    const { now } = Date;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
    try {
      records.isSilent = isSilent;
      records.write(REF, "items", [item("b", [1, 2, 3])]);
      await expect.poll(async () => (await search({ consistency: "eventual" })).totalCount, { timeout: 20_000 }).toBe(2);
    } finally {
      clock.mockRestore();
    }
  });

  test("applies a transaction that comes in several reads as one", async () => {
    records.readLimit = 7;
    await search({});
    const half = (n: number) => Array.from({ length: 40 }, (_, i) => item(`i${i}`, [n, 0, 1]));
    let isWriting = true;
    const seen = new Set<number>();
    const reader = (async () => {
      while (isWriting) {
        const { results, totalCount } = await search({ queryVector: [1, 0, 0], size: 1000, consistency: "eventual" });
        expect(new Set(results.map(({ score }) => score)).size).toBeLessThanOrEqual(1);
        seen.add(totalCount);
      }
    })();
    for (let n = 1; n < 40; n++) {
      records.write(REF, "items", half(n));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    isWriting = false;
    await reader;
    expect([...seen].every((count) => count === 0 || count === 40)).toBe(true);
  });

  test("shares one read among concurrent strong searches", async () => {
    await store.close();
    // Polls read too.
    store = await engine.open(records, { ...OPTIONS, pollMs: 60_000 });
    await search({});
    const before = records.reads.since;
    await Promise.all(Array.from({ length: 50 }, () => search({})));
    expect(records.reads.since - before).toBeLessThanOrEqual(4);
  });

  test("reads the branch again when the position is too old", async () => {
    records.write(REF, "items", [item("a", [1, 2, 3]), item("b", [1, 2, 3])]);
    expect(await ids({})).toEqual(["a", "b"]);
    records.isSilent = true;
    records.write(REF, "items", [], ["a"]);
    records.trimmedBelow = 3;
    expect(await ids({})).toEqual(["b"]);
  });

  describe("when the schema changes", () => {
    beforeEach(async () => {
      records.write(REF, "items", [item("a", [1, 2, 3], { color: "red" }), item("b", [3, 2, 1], { color: "blue" })]);
      expect(await ids({})).toEqual(["a", "b"]);
    });

    test("a new table and a new column can be searched at once, also by eventual searches", async () => {
      records.createTable(REF, "more", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
      records.write(REF, "more", [{ id: "x", v: [1, 1] }]);
      expect(await store.vectorSearch(REF, "more", { column: "v", queryVector: [1, 1], consistency: "strong" })).toEqual({
        totalCount: 1,
        results: [{ id: "x", score: 2 }],
      });
      records.alter(REF, (tables) => {
        const items = tables.find((t) => t.name === "items")!;
        items.columns.push(withId({ name: "second", type: "vector", vector: { dimension: 2 } }), withId({ name: "size", type: "int" }));
        // A default: rows get a value that no change announces.
        for (const record of items.records.values()) record.size = 5n;
      });
      expect(await search({ column: "second", queryVector: [1, 0], consistency: "eventual" })).toEqual({ totalCount: 0, results: [] });
      expect(await ids({ filter: { size: 5 }, consistency: "eventual" })).toEqual(["a", "b"]);
      expect(records.reads.all).toBe(3);
    });

    test("renamed columns and tables keep their data, even when two swap their names", async () => {
      records.alter(REF, (tables) => {
        const items = tables.find((t) => t.name === "items")!;
        items.name = "things";
        items.columns = items.columns.map((column) =>
          column.name === "embedding" ? { ...column, name: "color" } : column.name === "color" ? { ...column, name: "embedding" } : column,
        );
        for (const record of items.records.values()) [record.color, record.embedding] = [record.embedding, record.color];
      });
      const reads = records.reads.all;
      const request = { column: "color", queryVector: [1, 2, 3], filter: { embedding: "blue" } };
      expect((await store.vectorSearch(REF, "things", request)).results.map(({ id }) => id)).toEqual(["b"]);
      expect(records.reads.all).toBe(reads);
      await expect(search({})).rejects.toMatchObject({ code: "NOT_FOUND", message: "table [db:main/items] not found" });
      records.write(REF, "things", [{ id: "c", color: [9, 9, 9], embedding: "blue" }]);
      expect((await store.vectorSearch(REF, "things", { ...request, consistency: "strong" })).totalCount).toBe(2);
    });

    test("a column that was dropped and created again is another one", async () => {
      records.alter(REF, (tables) => {
        const items = tables.find((t) => t.name === "items")!;
        items.columns = items.columns.filter((column) => column.name !== "embedding");
        items.columns.push(withId({ name: "embedding", type: "vector", vector: { dimension: 2 } }));
        for (const record of items.records.values()) record.embedding = null;
      });
      records.write(REF, "items", [item("a", [1, 1])]);
      await expect(search({ consistency: "eventual" })).rejects.toMatchObject(
        invalid('queryVector has 3 elements; column "embedding" has dimension 2.'),
      );
      expect(await ids({ queryVector: [1, 1] })).toEqual(["a"]);
    });

    test("a branch that was dropped and created again is another one", async () => {
      records.dropBranch(REF);
      await expect(search({})).rejects.toMatchObject({ code: "NOT_FOUND", message: 'Branch "main" does not exist in database "db".' });
      records.createBranch(REF);
      records.createTable(REF, "items", [{ name: "embedding", type: "vector", vector: { dimension: 3 } }]);
      records.write(REF, "items", [item("z", [1, 2, 3])]);
      expect(await ids({ consistency: "eventual" })).toEqual(["z"]);
      records.dropBranch(REF);
      await expect.poll(() => store.status().rows).toBe(0);
    });

    test("changes while the schema changes are not lost", async () => {
      let isWriting = true;
      const writer = (async () => {
        for (let i = 0; isWriting && i < 6_000; i++) {
          records.write(REF, "items", [item(`w${i}`, [1, i, 0], { [`extra${i % 7}`]: `${i}` })]);
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        return records;
      })();
      for (let n = 0; n < 12; n++) {
        records.alter(REF, (tables) => {
          const items = tables.find((t) => t.name === "items")!;
          const name = `extra${n % 7}`;
          if (items.columns.some((column) => column.name === name)) items.columns = items.columns.filter((column) => column.name !== name);
          else items.columns.push(withId({ name, type: "string" }));
        });
        await search({});
      }
      isWriting = false;
      await writer;
      const info = await records.branch(REF);
      for (const column of info.tables.get("items")!.columns.values()) {
        if (!column.name.startsWith("extra")) continue;
        const expected = await expectedIds(column.name);
        expect((await ids({ size: 1000, filter: { $exists: column.name } })).sort()).toEqual(expected);
      }
    });

    const expectedIds = async (column: string): Promise<string[]> => {
      const found: string[] = [];
      await records.feed.readAll(REF, [{ table: "items", columns: [column] }], async (batch) => {
        const values = batch.columns.get(column)!;
        batch.ids.forEach((id, i) => {
          if (values.kind === "text" && values.values[i] !== null) found.push(id);
        });
      });
      return found.sort();
    };
  });

  test("is ready when every branch has been read, and names what is not", async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    await expect.poll(() => store.status().ready, { timeout: 20_000 }).toBe(true);
    await store.close();
    await engine.reset();
    records.beforeRead = (kind) => (kind === "all" ? gate : undefined);
    store = await engine.open(records, { ...OPTIONS, waitMs: 100 });
    await expect.poll(() => store.status()).toMatchObject({ ready: false, pending: ["db:main"] });
    await expect(search({ consistency: "eventual" })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "The search store is still reading branch db:main; try again in a moment.",
    });
    release();
    await expect.poll(() => store.status().ready, { timeout: 20_000 }).toBe(true);
    expect(store.status()).toMatchObject({ pending: [], rows: 0 });
  });

  test("reads many branches a few at a time, and follows them all", async () => {
    await store.close();
    await engine.reset();
    const refs = Array.from({ length: 120 }, (_, i) => ({ database: "many", branch: `b${i}` }));
    for (const [i, ref] of refs.entries()) {
      records.createBranch(ref);
      records.createTable(ref, "items", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
      records.write(ref, "items", [{ id: `i${i}`, v: [1, i] }]);
    }
    let reading = 0;
    let most = 0;
    records.beforeRead = async (kind) => {
      if (kind === "since") return;
      most = Math.max(most, ++reading);
      await new Promise((resolve) => setTimeout(resolve, 1));
      reading--;
    };
    store = await engine.open(records, OPTIONS);
    await expect.poll(() => store.status().ready, { timeout: 100_000 }).toBe(true);
    expect(most).toBeLessThanOrEqual(2);
    expect(store.status().rows).toBe(120);
    // Without notifications, polling must reach all of them.
    records.isSilent = true;
    for (const ref of refs) records.write(ref, "items", [{ id: "second", v: [1, 1] }]);
    await expect.poll(() => store.status().rows, { timeout: 20_000 }).toBe(240);
  });

  test("continues after reads that fail", async () => {
    let failures = 3;
    records.beforeRead = () => {
      if (failures-- > 0) throw new Error("the database is away");
    };
    records.write(REF, "items", [item("a", [1, 2, 3])]);
    await expect.poll(async () => (await search({ consistency: "eventual" })).totalCount).toBe(1);
  });

  describe("refuses", () => {
    test.each([
      ["a missing column", { column: undefined as unknown as string }, "column: expected the name of a vector column, got nothing."],
      ["an unknown column", { column: "nope" }, 'column: table "items" has no column "nope"; its vector columns are "embedding".'],
      [
        "a column named __proto__",
        { column: "__proto__" },
        'column: table "items" has no column "__proto__"; its vector columns are "embedding".',
      ],
      [
        "a column of another type",
        { column: "color" },
        'column: column "color" is of type string, not vector; its vector columns are "embedding".',
      ],
      ["a wrong dimension", { queryVector: [1, 2] }, 'queryVector has 2 elements; column "embedding" has dimension 3.'],
      ["no vector", { queryVector: undefined as unknown as number[] }, "queryVector: expected a list of 3 numbers, got nothing."],
      [
        "a NaN",
        { queryVector: [1, Number.NaN, 3] },
        "queryVector[1]: expected a finite number within the range of float32 (±3.4028235e38), got NaN.",
      ],
      [
        "a number beyond float32",
        { queryVector: [1, 2, 1e300] },
        "queryVector[2]: expected a finite number within the range of float32 (±3.4028235e38), got 1e+300.",
      ],
      ["a string in the vector", { queryVector: [1, "2" as unknown as number, 3] }, 'queryVector[1]: expected a number, got "2".'],
      ["a zero vector with cosine", { queryVector: [0, -0, 1e-60] }, /^queryVector: the zero vector has no direction/],
      [
        "an unknown similarity function",
        { similarityFunction: "dot" as never },
        'similarityFunction: expected "cosineSimilarity", "l1", "l2", got "dot".',
      ],
      ["size 0", { size: 0 }, "size: expected an integer from 1 to 1,000, got 0."],
      ["size 1001", { size: 1001 }, "size: expected an integer from 1 to 1,000, got 1001."],
      ["half a size", { size: 1.5 }, "size: expected an integer from 1 to 1,000, got 1.5."],
      ["a negative offset", { offset: -1 }, "offset: expected an integer from 0 to 10,000, got -1."],
      ["an offset beyond the limit", { offset: 10_001 }, "offset: expected an integer from 0 to 10,000, got 10001."],
      ["minScore NaN", { minScore: Number.NaN }, "minScore: expected a finite number, got NaN."],
      ["an unknown consistency", { consistency: "weak" as never }, 'consistency: expected "strong" or "eventual".'],
      [
        "a filter with a fault",
        { filter: { $any: [{ color: "x" }, { price: { $gt: "abc" } }] } },
        'filter.$any[1].price.$gt: expected a number, got "abc"',
      ],
      ["a filter that is not an object", { filter: [] }, "filter: expected an object of conditions, got an array of 0 elements"],
    ])("%s", async (_, request, message) => {
      await expect(search(request)).rejects.toMatchObject(invalid(message));
    });

    test("too many or no query vectors", async () => {
      const many = (queryVectors: number[][]) => store.vectorSearchMany(REF, "items", { column: "embedding", queryVectors });
      await expect(many([])).rejects.toMatchObject(invalid("queryVectors: expected 1 to 100 vectors, got 0."));
      await expect(many(Array.from({ length: 101 }, () => [1, 2, 3]))).rejects.toMatchObject(
        invalid("queryVectors: expected 1 to 100 vectors, got 101."),
      );
      await expect(
        many([
          [1, 2, 3],
          [1, 2],
        ]),
      ).rejects.toMatchObject(invalid('queryVectors[1] has 2 elements; column "embedding" has dimension 3.'));
      expect(await many(Array.from({ length: 100 }, () => [1, 2, 3]))).toHaveLength(100);
    });

    test("an unknown table, a table without vectors, and an unknown branch", async () => {
      await expect(search({}, "nope")).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: "table [db:main/nope] not found",
      });
      await expect(search({}, "teams")).rejects.toMatchObject(
        invalid('column: table "teams" has no column "embedding"; the table has no vector column.'),
      );
      await expect(
        store.vectorSearch({ database: "db", branch: "x" }, "items", { column: "embedding", queryVector: [1, 2, 3] }),
      ).rejects.toMatchObject({ code: "NOT_FOUND" });
    });
  });

  test("ignores stored vectors that are not finite", async () => {
    records.write(REF, "items", [item("a", [1, 2, 3]), item("b", [Number.NaN, 0, 0]), item("c", [0, Infinity, 0])]);
    expect(await search({})).toMatchObject({ totalCount: 1, results: [{ id: "a" }] });
    records.write(REF, "items", [item("b", [1, 0, 0]), item("a", [Number.NaN, 0, 0])]);
    expect(await ids({})).toEqual(["b"]);
  });

  test("is UNAVAILABLE once closed", async () => {
    await store.close();
    await expect(search({})).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("search store in memory", () => {
  test("starts another worker when one dies, and reads everything again; searches wait for it", async () => {
    const records = recordsWithItems();
    const workers: Worker[] = [];
    const faults: unknown[] = [];
    const startWorker = (): Worker => {
      workers.push(startSearchWorker());
      return workers.at(-1)!;
    };
    const store = await openSearchStore(records, { ...OPTIONS, startWorker, onFault: (error) => faults.push(error) });
    const ids = async (consistency: "strong" | "eventual" = "strong"): Promise<string[]> => {
      const { results } = await store.vectorSearch(REF, "items", { column: "embedding", queryVector: [1, 2, 3], consistency });
      return results.map(({ id }) => id);
    };
    records.write(REF, "items", [item("a", [1, 2, 3]), item("b", [3, 2, 1])]);
    expect(await ids()).toEqual(["a", "b"]);
    for (let crash = 1; crash <= 3; crash++) {
      const inFlight = store.vectorSearchMany(REF, "items", {
        column: "embedding",
        queryVectors: Array.from({ length: 100 }, () => [1, 2, 3]),
      });
      // Answered before the worker ended, or refused; never left hanging.
      const outcome = inFlight.then(
        (answers) => expect(answers).toHaveLength(100),
        (error) => expect(error).toMatchObject({ code: "UNAVAILABLE", retryAfterSeconds: 1 }),
      );
      await workers.at(-1)!.terminate();
      await outcome;
      expect(store.status().ready).toBe(false);
      records.write(REF, "items", [item(`c${crash}`, [0, 0, 1])], [`c${crash - 1}`]);
      expect(await ids("eventual")).toEqual(["a", `c${crash}`, "b"]);
      await expect.poll(() => store.status().ready, { timeout: 20_000 }).toBe(true);
      expect(workers).toHaveLength(crash + 1);
    }
    expect(faults.length).toBeGreaterThanOrEqual(3);
    await store.close();
  });
});
