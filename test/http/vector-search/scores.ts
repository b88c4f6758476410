/** The scores are those of the documented formulas, over the stored float32 values. */
import { beforeAll, describe, expect, it } from "vitest";
import { BASE, type SearchClient } from "./search-service.ts";

export function describeScores(client: SearchClient): void {
  describe("the scores", () => {
    const query = [1, 2, 3, 4];
    const rows: Record<string, number[]> = { a: [0.1, 0.2, 0.3, 0.5], b: [4, 3, 2, 1], c: [0.5, 0.2, 0.3, 0.1], d: [1, 2, 3, 4] };

    beforeAll(async () => {
      await client.createTable("scores", [{ name: "v", type: "vector", vector: { dimension: 4 } }]);
      for (const [id, v] of Object.entries(rows)) await client.put(`${BASE}/tables/scores/data/${id}`, { v });
    });

    // The formulas of the documentation over the stored float32 values, in plain float64.
    const stored = (id: string) => Array.from(new Float32Array(rows[id] as number[]));
    const sum = (terms: number[]) => terms.reduce((total, term) => total + term, 0);
    const dot = (x: number[], y: number[]) => sum(x.map((xi, i) => xi * (y[i] as number)));
    const formulas = {
      cosineSimilarity: (x: number[]) => 1 + dot(query, x) / Math.sqrt(dot(query, query) * dot(x, x)),
      l1: (x: number[]) => 1 / (1 + sum(x.map((xi, i) => Math.abs((query[i] as number) - xi)))),
      l2: (x: number[]) => 1 / (1 + sum(x.map((xi, i) => ((query[i] as number) - xi) ** 2))),
      dotProduct: (x: number[]) => dot(query, x),
    };

    it.each([
      ["cosineSimilarity", ["d", "a", "b", "c"]],
      ["l1", ["d", "b", "c", "a"]],
      ["l2", ["d", "b", "a", "c"]],
      ["dotProduct", ["d", "b", "a", "c"]],
    ] as const)("of %s are those of its formula, best first", async (similarityFunction, _order) => {
      const { status, body } = await client.search("scores", { column: "v", queryVector: query, similarityFunction });
      const expected = Object.keys(rows)
        .map((id) => ({ id, score: formulas[similarityFunction](stored(id)) }))
        .toSorted((x, y) => y.score - x.score || (x.id < y.id ? -1 : 1));
      expect(status).toBe(200);
      expect(body.totalCount).toBe(4);
      expect(body.results.map(({ id }: { id: string }) => id)).toEqual(expected.map(({ id }) => id));
      for (const [i, { score }] of expected.entries()) expect(body.results[i].score).toBeCloseTo(score, 12);
    });

    it("come with the cosine itself where it is asked for", async () => {
      const asked = { column: "v", cosine: true, columns: ["v"] };
      const withCosine = (results: { id: string; score: number; record: object }[]) =>
        results.map(({ id, score, record }) => ({ id, score, record, cosine: score - 1 }));
      const one = await client.search("scores", { ...asked, queryVector: query });
      expect(one.body.results.map(({ id }: { id: string }) => id)).toEqual(["d", "a", "b", "c"]);
      expect(one.body.results).toEqual(withCosine(one.body.results));
      const many = await client.search("scores", { ...asked, queryVectors: [query, [0, 0, 0, -1]] });
      expect(many.body.answers[0]).toEqual(one.body);
      expect(many.body.answers[1].results).toEqual(withCosine(many.body.answers[1].results));
      expect(many.body.answers[1].results.at(-1).cosine).toBeLessThan(0);
    });

    it("of known vectors are the documented values", async () => {
      const scores = async (similarityFunction: string) => {
        const { body } = await client.search("scores", { column: "v", queryVector: query, similarityFunction });
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
      const byDefault = await client.search("scores", { column: "v", queryVector: query });
      const named = await client.search("scores", { column: "v", queryVector: query, similarityFunction: "cosineSimilarity" });
      expect(byDefault.body).toEqual(named.body);
    });
  });
}
