import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SEARCH_SERVERS, type SearchServer } from "../support/pgvector.ts";
import { startServer, type TestServer } from "../support/server.ts";

const base = "/db/vectors:main";

const HOLDERS: readonly (readonly [name: string, start: (() => Promise<SearchServer>) | undefined])[] = [
  ["memory", undefined],
  ...SEARCH_SERVERS,
];

describe.each(HOLDERS)("Vector search over %s", (_, start) => {
  let server: TestServer;
  let searchServer: SearchServer | undefined;

  beforeAll(async () => {
    searchServer = await start?.();
    server = await startServer(searchServer === undefined ? {} : { args: ["--search-url", await searchServer.emptyDatabase()] });
    await server.put(base);
  });
  afterAll(async () => {
    await server?.stop();
    await searchServer?.stop();
  });

  const search = (table: string, body: object, headers = {}) =>
    server.post(`${base}/tables/${table}/vectorSearch`, { consistency: "strong", ...body }, headers);

  describe("the scores", () => {
    const query = [1, 2, 3, 4];
    const rows: Record<string, number[]> = { a: [0.1, 0.2, 0.3, 0.5], b: [4, 3, 2, 1], c: [0.5, 0.2, 0.3, 0.1], d: [1, 2, 3, 4] };

    beforeAll(async () => {
      await server.put(`${base}/tables/scores`, { columns: [{ name: "v", type: "vector", vector: { dimension: 4 } }] });
      for (const [id, v] of Object.entries(rows)) await server.put(`${base}/tables/scores/data/${id}`, { v });
    });

    // The formulas of the documentation over the stored float32 values, in plain float64.
    const stored = (id: string) => Array.from(new Float32Array(rows[id] as number[]));
    const sum = (terms: number[]) => terms.reduce((total, term) => total + term, 0);
    const dot = (x: number[], y: number[]) => sum(x.map((xi, i) => xi * (y[i] as number)));
    const formulas = {
      cosineSimilarity: (x: number[]) => 1 + dot(query, x) / Math.sqrt(dot(query, query) * dot(x, x)),
      l1: (x: number[]) => 1 / (1 + sum(x.map((xi, i) => Math.abs((query[i] as number) - xi)))),
      l2: (x: number[]) => 1 / (1 + sum(x.map((xi, i) => ((query[i] as number) - xi) ** 2))),
    };

    it.each([
      ["cosineSimilarity", ["d", "a", "b", "c"]],
      ["l1", ["d", "b", "c", "a"]],
      ["l2", ["d", "b", "a", "c"]],
    ] as const)("of %s are those of its formula, best first", async (similarityFunction, _order) => {
      const { status, body } = await search("scores", { column: "v", queryVector: query, similarityFunction });
      const expected = Object.keys(rows)
        .map((id) => ({ id, score: formulas[similarityFunction](stored(id)) }))
        .toSorted((x, y) => y.score - x.score || (x.id < y.id ? -1 : 1));
      expect(status).toBe(200);
      expect(body.totalCount).toBe(4);
      expect(body.results.map(({ id }: { id: string }) => id)).toEqual(expected.map(({ id }) => id));
      for (const [i, { score }] of expected.entries()) expect(body.results[i].score).toBeCloseTo(score, 12);
    });

    it("of known vectors are the documented values", async () => {
      const scores = async (similarityFunction: string) => {
        const { body } = await search("scores", { column: "v", queryVector: query, similarityFunction });
        return Object.fromEntries(body.results.map(({ id, score }: { id: string; score: number }) => [id, score]));
      };
      const cosine = await scores("cosineSimilarity");
      expect(cosine.d).toBeCloseTo(2, 12);
      expect(cosine.b).toBeCloseTo(1 + 20 / 30, 12);
      expect(cosine.a).toBeCloseTo(1 + 3.4 / Math.sqrt(30 * 0.39), 6);
      expect(cosine.c).toBeCloseTo(1 + 2.2 / Math.sqrt(30 * 0.39), 6);
      const l1 = await scores("l1");
      expect(l1.d).toBe(1);
      expect(l1.b).toBeCloseTo(1 / 9, 12);
      expect(l1.a).toBeCloseTo(1 / 9.9, 6);
      expect(l1.c).toBeCloseTo(1 / 9.9, 6);
      const l2 = await scores("l2");
      expect(l2.d).toBe(1);
      expect(l2.b).toBeCloseTo(1 / 21, 12);
      expect(l2.a).toBeCloseTo(1 / (1 + 0.81 + 3.24 + 7.29 + 12.25), 6);
      expect(l2.c).toBeCloseTo(1 / (1 + 0.25 + 3.24 + 7.29 + 15.21), 6);
    });

    it("default to cosineSimilarity", async () => {
      const byDefault = await search("scores", { column: "v", queryVector: query });
      const named = await search("scores", { column: "v", queryVector: query, similarityFunction: "cosineSimilarity" });
      expect(byDefault.body).toEqual(named.body);
    });
  });

  describe("a search", () => {
    beforeAll(async () => {
      const columns = [
        { name: "v", type: "vector", vector: { dimension: 2 } },
        { name: "group", type: "string" },
        { name: "n", type: "int" },
      ];
      await server.put(`${base}/tables/many`, { columns });
      const operations = Array.from({ length: 30 }, (_, i) => ({
        insert: {
          table: "many",
          record: { id: `r${String(i).padStart(2, "0")}`, v: i < 25 ? [i, 1] : null, group: i % 2 === 0 ? "even" : "odd", n: i },
        },
      }));
      await server.post(`${base}/transaction`, { operations });
    });
    const l2 = (body: object, headers = {}) =>
      search("many", { column: "v", queryVector: [0, 1], similarityFunction: "l2", ...body }, headers);
    const ids = (answer: { body: { results: { id: string }[] } }) => answer.body.results.map(({ id }) => id);

    it("gives 10 results when size is not said, and counts the records that have a vector", async () => {
      const answer = await l2({});
      expect(ids(answer)).toEqual(["r00", "r01", "r02", "r03", "r04", "r05", "r06", "r07", "r08", "r09"]);
      expect(answer.body.totalCount).toBe(25);
    });

    it("applies the filter first, and counts what passes it", async () => {
      const answer = await l2({ filter: { group: "odd", n: { $gt: 3 } }, size: 3 });
      expect(ids(answer)).toEqual(["r05", "r07", "r09"]);
      expect(answer.body.totalCount).toBe(10);
    });

    it("orders equal scores by id", async () => {
      await server.put(`${base}/tables/ties`, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
      for (const id of ["z", "a", "m", "B"]) await server.put(`${base}/tables/ties/data/${id}`, { v: [1, 1] });
      expect(ids(await search("ties", { column: "v", queryVector: [1, 0] }))).toEqual(["B", "a", "m", "z"]);
    });

    it("leaves out the first results with offset, and weak ones with minScore", async () => {
      expect(ids(await l2({ offset: 2, size: 2 }))).toEqual(["r02", "r03"]);
      const strong = await l2({ minScore: 0.1 });
      expect(ids(strong)).toEqual(["r00", "r01", "r02", "r03"]);
    });

    it("brings the records with columns", async () => {
      const answer = await l2({ columns: ["n"], size: 2 });
      expect(answer.body.results).toEqual([
        { id: "r00", score: 1, record: { id: "r00", n: 0, xata: expect.objectContaining({ version: 0 }) } },
        { id: "r01", score: 0.5, record: { id: "r01", n: 1, xata: expect.objectContaining({ version: 0 }) } },
      ]);
      expect(answer.body).not.toHaveProperty("records");
    });

    it("brings whole records, with score and table, to clients of the SDK", async () => {
      const answer = await l2({ size: 2 }, { "x-xata-agent": "client=TS_SDK; version=0.30.1" });
      expect(answer.body.records).toEqual([
        {
          id: "r00",
          v: [0, 1],
          group: "even",
          n: 0,
          xata: expect.objectContaining({ version: 0, score: 1, table: "many", createdAt: expect.any(String) }),
        },
        { id: "r01", v: [1, 1], group: "odd", n: 1, xata: expect.objectContaining({ version: 0, score: 0.5, table: "many" }) },
      ]);
      expect(answer.body.totalCount).toBe(25);
    });

    it("answers several queries one by one", async () => {
      const { status, body } = await search("many", {
        column: "v",
        queryVectors: [
          [0, 1],
          [24, 1],
        ],
        similarityFunction: "l2",
        size: 2,
        columns: ["n"],
      });
      expect(status).toBe(200);
      expect(body.answers.map((answer: { results: { id: string }[] }) => answer.results.map(({ id }) => id))).toEqual([
        ["r00", "r01"],
        ["r24", "r23"],
      ]);
      expect(body.answers[1].totalCount).toBe(25);
      expect(body.answers[1].results[0].record).toMatchObject({ n: 24 });
    });

    it("reflects every write that was acknowledged before it, when strong consistency is asked for", async () => {
      await server.put(`${base}/tables/fresh`, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
      for (let i = 0; i < 20; i++) {
        await server.put(`${base}/tables/fresh/data/x`, { v: [i, 1] });
        const found = await search("fresh", { column: "v", queryVector: [i, 1], similarityFunction: "l2" });
        expect(found.body).toEqual({ totalCount: 1, results: [{ id: "x", score: 1 }] });
        await server.delete(`${base}/tables/fresh/data/x`);
        expect((await search("fresh", { column: "v", queryVector: [i, 1] })).body).toEqual({ totalCount: 0, results: [] });
      }
    });

    it("sees within moments, also without asking for it, what the API, SQL and transactions have changed", async () => {
      await server.put(`${base}/tables/eventual`, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
      const eventually = async (expected: string[]) => {
        const deadline = Date.now() + 10_000;
        for (;;) {
          const { body } = await server.post(`${base}/tables/eventual/vectorSearch`, {
            column: "v",
            queryVector: [1, 0],
            similarityFunction: "l2",
          });
          const found = body.results.map(({ id }: { id: string }) => id);
          if (found.join() === expected.join() || Date.now() > deadline) {
            expect(found).toEqual(expected);
            return;
          }
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      };
      await server.put(`${base}/tables/eventual/data/a`, { v: [1, 0] });
      await server.put(`${base}/tables/eventual/data/b`, { v: [2, 0] });
      await server.put(`${base}/tables/eventual/data/c`, { v: [3, 0] });
      await server.put(`${base}/tables/eventual/data/d`, { v: [4, 0] });
      await eventually(["a", "b", "c", "d"]);
      await server.delete(`${base}/tables/eventual/data/b`);
      await eventually(["a", "c", "d"]);
      await server.post(`${base}/sql`, { statement: 'DELETE FROM "eventual" WHERE "id" = $1', params: ["c"] });
      await eventually(["a", "d"]);
      await server.post(`${base}/transaction`, { operations: [{ delete: { table: "eventual", id: "a" } }] });
      await eventually(["d"]);
    });

    it("takes a size of 1 to 1,000", async () => {
      expect((await l2({ size: 1 })).body.results).toHaveLength(1);
      expect((await l2({ size: 1000 })).body.results).toHaveLength(25);
    });

    it.each([
      ["no column", { column: undefined }, "column: is required"],
      ["an unknown column", { column: "nothing" }, "nothing"],
      ["a column that is no vector", { column: "n" }, "n"],
      ["no query", { queryVector: undefined }, "queryVector"],
      ["a query of the wrong dimension", { queryVector: [1, 2, 3] }, /3 elements.*dimension 2/],
      ["a text in the query", { queryVector: [1, "2"] }, 'queryVector[1]: expected a number, got "2"'],
      ["a null in the query", { queryVector: [1, null] }, "queryVector[1]: expected a number, got null"],
      ["an element beyond float32", { queryVector: [1, 1e300] }, "queryVector[1]"],
      ["the zero vector with cosine", { queryVector: [0, 0], similarityFunction: "cosineSimilarity" }, "queryVector"],
      ["an unknown function", { similarityFunction: "dot" }, 'similarityFunction: expected "cosineSimilarity", "l1" or "l2", got "dot"'],
      ["size 0", { size: 0 }, "size: expected an integer from 1 to 1,000, got 0"],
      ["size 1,001", { size: 1001 }, "size: expected an integer from 1 to 1,000, got 1001"],
      ["size 1e9", { size: 1e9 }, "size: expected an integer from 1 to 1,000, got 1000000000"],
      ["size 1.5", { size: 1.5 }, "size: expected an integer from 1 to 1,000, got 1.5"],
      ["a filter with an unknown operator", { filter: { n: { $near: 3 } } }, /n.*\$near|\$near.*n/],
      ["a filter on an unknown column", { filter: { $all: [{ group: "odd" }, { nothing: 1 }] } }, "nothing"],
      ["a filter that is a list", { filter: [] }, "filter: expected an object"],
      ["an unknown member", { k: 5 }, 'k: is not known here; expected "column", "queryVector"'],
      [
        "101 queries",
        { queryVector: undefined, queryVectors: Array.from({ length: 101 }, () => [1, 1]) },
        "queryVectors: expected at most 100 elements, got 101",
      ],
      ["an empty list of queries", { queryVector: undefined, queryVectors: [] }, "queryVectors: expected at least 1"],
      ["both one query and several", { queryVectors: [[1, 1]] }, "queryVector: expected one of"],
    ])("with %s is refused (400)", async (_what, body, message) => {
      const answer = await l2(body);
      expect(answer).toMatchObject({ status: 400, body: { id: expect.any(String) } });
      if (typeof message === "string") expect(answer.body.message).toContain(message);
      else expect(answer.body.message).toMatch(message);
    });

    it.each([
      ["/db/nodb:main/tables/many", "nodb"],
      ["/db/vectors:nobranch/tables/many", "nobranch"],
      ["/db/vectors:main/tables/notable", "notable"],
    ])("at %s is 404, and says what is missing", async (path, missing) => {
      const answer = await server.post(`${path}/vectorSearch`, { column: "v", queryVector: [1, 1] });
      expect(answer).toMatchObject({ status: 404, body: { message: expect.stringContaining(missing) } });
    });

    it("takes a query against a stored zero vector (cosine 0)", async () => {
      await server.put(`${base}/tables/zero`, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
      await server.put(`${base}/tables/zero/data/z`, { v: [0, 0] });
      expect((await search("zero", { column: "v", queryVector: [1, 0] })).body.results).toEqual([{ id: "z", score: 1 }]);
    });
  });
});
