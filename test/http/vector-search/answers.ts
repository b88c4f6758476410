/** What a search returns: which records, how many, in what order, with which data, and as of when. */
import { beforeAll, describe, expect, it } from "vitest";
import type { ColumnSchema } from "../../../src/records/schema.ts";
import { BASE, idsOf, type SearchClient } from "./search-service.ts";

export function describeAnswers(client: SearchClient): void {
  describe("a search", () => {
    beforeAll(async () => {
      const columns: ColumnSchema[] = [
        { name: "v", type: "vector", vector: { dimension: 2 } },
        { name: "group", type: "string" },
        { name: "n", type: "int" },
      ];
      await client.createTable("many", columns);
      const operations = Array.from({ length: 30 }, (_, i) => ({
        insert: {
          table: "many",
          record: { id: `r${String(i).padStart(2, "0")}`, v: i < 25 ? [i, 1] : null, group: i % 2 === 0 ? "even" : "odd", n: i },
        },
      }));
      await client.post(`${BASE}/transaction`, { operations });
    });
    const l2 = (body: object, headers = {}) =>
      client.search("many", { column: "v", queryVector: [0, 1], similarityFunction: "l2", ...body }, headers);

    it("returns 10 results by default, and counts the records that have a vector", async () => {
      const answer = await l2({});
      expect(idsOf(answer)).toEqual(["r00", "r01", "r02", "r03", "r04", "r05", "r06", "r07", "r08", "r09"]);
      expect(answer.body.totalCount).toBe(25);
    });

    it("applies the filter first, and counts what passes it", async () => {
      const answer = await l2({ filter: { group: "odd", n: { $gt: 3 } }, size: 3 });
      expect(idsOf(answer)).toEqual(["r05", "r07", "r09"]);
      expect(answer.body.totalCount).toBe(10);
    });

    it("orders equal scores by id", async () => {
      await client.createTable("ties", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
      for (const id of ["z", "a", "m", "B"]) await client.put(`${BASE}/tables/ties/data/${id}`, { v: [1, 1] });
      expect(idsOf(await client.search("ties", { column: "v", queryVector: [1, 0] }))).toEqual(["B", "a", "m", "z"]);
    });

    it("skips the first results with offset, and weak ones with minScore", async () => {
      expect(idsOf(await l2({ offset: 2, size: 2 }))).toEqual(["r02", "r03"]);
      const strong = await l2({ minScore: 0.1 });
      expect(idsOf(strong)).toEqual(["r00", "r01", "r02", "r03"]);
    });

    it("returns the records with columns", async () => {
      const answer = await l2({ columns: ["n"], size: 2 });
      expect(answer.body.results).toEqual([
        { id: "r00", score: 1, record: { id: "r00", n: 0, xata: expect.objectContaining({ version: 0 }) } },
        { id: "r01", score: 0.5, record: { id: "r01", n: 1, xata: expect.objectContaining({ version: 0 }) } },
      ]);
      expect(answer.body).not.toHaveProperty("records");
    });

    it("returns whole records, with score and table, to clients of the SDK", async () => {
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
      const { status, body } = await client.search("many", {
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

    it("with strong consistency, reflects every write that was acknowledged before it", async () => {
      await client.createTable("fresh", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
      for (let i = 0; i < 20; i++) {
        await client.put(`${BASE}/tables/fresh/data/x`, { v: [i, 1] });
        const found = await client.search("fresh", { column: "v", queryVector: [i, 1], similarityFunction: "l2" });
        expect(found.body).toEqual({ totalCount: 1, results: [{ id: "x", score: 1 }] });
        await client.delete(`${BASE}/tables/fresh/data/x`);
        expect((await client.search("fresh", { column: "v", queryVector: [i, 1] })).body).toEqual({ totalCount: 0, results: [] });
      }
    });

    it("without strong consistency, sees within moments what the API, SQL and transactions have changed", async () => {
      await client.createTable("eventual", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
      const query = { column: "v", queryVector: [1, 0], similarityFunction: "l2" };
      const found = async () => idsOf(await client.post(`${BASE}/tables/eventual/vectorSearch`, query));
      const eventually = (expected: string[]) => expect.poll(found, { interval: 5 }).toEqual(expected);
      await client.put(`${BASE}/tables/eventual/data/a`, { v: [1, 0] });
      await client.put(`${BASE}/tables/eventual/data/b`, { v: [2, 0] });
      await client.put(`${BASE}/tables/eventual/data/c`, { v: [3, 0] });
      await client.put(`${BASE}/tables/eventual/data/d`, { v: [4, 0] });
      await eventually(["a", "b", "c", "d"]);
      await client.delete(`${BASE}/tables/eventual/data/b`);
      await eventually(["a", "c", "d"]);
      await client.post(`${BASE}/sql`, { statement: 'DELETE FROM "eventual" WHERE "id" = $1', params: ["c"] });
      await eventually(["a", "d"]);
      await client.post(`${BASE}/transaction`, { operations: [{ delete: { table: "eventual", id: "a" } }] });
      await eventually(["d"]);
    });

    it("accepts a size of 1 to 1,000", async () => {
      expect((await l2({ size: 1 })).body.results).toHaveLength(1);
      expect((await l2({ size: 1000 })).body.results).toHaveLength(25);
    });

    it("accepts a query against a stored zero vector (cosine 0)", async () => {
      await client.createTable("zero", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
      await client.put(`${BASE}/tables/zero/data/z`, { v: [0, 0] });
      expect((await client.search("zero", { column: "v", queryVector: [1, 0] })).body.results).toEqual([{ id: "z", score: 1 }]);
    });
  });
}
