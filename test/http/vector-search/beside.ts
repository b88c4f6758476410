/**
 * Free text search, aggregations and queries beside the vectors: no engine changes their results, and every
 * server answers them.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { BASE, type SearchClient } from "./search-service.ts";

export function describeBeside(client: SearchClient): void {
  describe("beside its vectors, a table", () => {
    beforeAll(async () => {
      await client.createTable("films", [
        { name: "title", type: "string" },
        { name: "year", type: "int" },
        { name: "mood", type: "vector", vector: { dimension: 2 } },
      ]);
      const records = [
        { id: "alien", title: "Alien", year: 1979, mood: [1, 0] },
        { id: "aliens", title: "Aliens return", year: 1986, mood: [1, 1] },
        { id: "amelie", title: "Amélie", year: 2001, mood: [0, 1] },
        { id: "thing", title: "The Thing returns", year: 1982 },
      ];
      expect((await client.post(`${BASE}/tables/films/bulk`, { records })).status).toBe(200);
    });

    const ofAll = async (path: string, body: object): Promise<unknown[]> => {
      const answers: unknown[] = [];
      for (let server = 0; server < client.servers; server++) {
        const answer = await client.post(`${BASE}${path}`, body);
        expect(answer.status).toBe(200);
        answers.push(answer.body);
      }
      return answers;
    };

    it("is found by its words", async () => {
      const query = { query: "return", fuzziness: 0, prefix: "phrase" };
      for (const answer of await ofAll("/tables/films/search", { ...query, filter: { year: { $lt: 2_000 } } })) {
        expect(answer).toMatchObject({ totalCount: 2, records: expect.arrayContaining([expect.objectContaining({ id: "thing" })]) });
      }
      for (const answer of await ofAll("/search", { query: "amelie", tables: ["films"] })) {
        expect(answer).toMatchObject({ totalCount: 1, records: [{ id: "amelie", xata: { table: "films" } }] });
      }
    });

    it("is counted and summed up", async () => {
      const aggs = { all: { count: "*" }, last: { max: { column: "year" } }, old: { count: { filter: { year: { $lt: 1985 } } } } };
      for (const answer of await ofAll("/tables/films/aggregate", { aggs }))
        expect(answer).toEqual({ aggs: { all: 4, last: 2001, old: 2 } });
      const summaries = { n: { count: "*" } };
      for (const answer of await ofAll("/tables/films/summarize", { summaries })) expect(answer).toMatchObject({ summaries: [{ n: 4 }] });
    });

    it("is queried, with and without vectors", async () => {
      for (const answer of await ofAll("/tables/films/query", { filter: { $notExists: "mood" }, columns: ["title"] })) {
        expect(answer).toMatchObject({ records: [{ id: "thing", title: "The Thing returns" }] });
      }
      for (const answer of await ofAll("/tables/films/query", { filter: { year: 1979 }, columns: ["mood"] })) {
        expect(answer).toMatchObject({ records: [{ id: "alien", mood: [1, 0] }] });
      }
    });
  });
}
