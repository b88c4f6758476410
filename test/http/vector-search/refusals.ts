/** Invalid searches are refused, by every server in the same words, and the message names what is missing. */
import { beforeAll, describe, expect, it } from "vitest";
import { BASE, type SearchClient } from "./search-service.ts";

export function describeRefusals(client: SearchClient): void {
  describe("a search", () => {
    beforeAll(async () => {
      await client.createTable("refusing", [
        { name: "v", type: "vector", vector: { dimension: 2 } },
        { name: "group", type: "string" },
        { name: "n", type: "int" },
      ]);
      await client.put(`${BASE}/tables/refusing/data/a`, { v: [1, 1], group: "odd", n: 1 });
    });

    it.each([
      ["no column", { column: undefined }, "column: is required"],
      ["an unknown column", { column: "nothing" }, "nothing"],
      ["a column that is not a vector", { column: "n" }, 'column: column "n" is of type int, not vector; its vector columns are "v".'],
      ["no query", { queryVector: undefined }, "queryVector"],
      ["a query of the wrong dimension", { queryVector: [1, 2, 3] }, 'queryVector has 3 elements; column "v" has dimension 2.'],
      ["a text in the query", { queryVector: [1, "2"] }, 'queryVector[1]: expected a number, got "2"'],
      ["a null in the query", { queryVector: [1, null] }, "queryVector[1]: expected a number, got null"],
      ["an element beyond float32", { queryVector: [1, 1e300] }, "queryVector[1]: expected a finite number within the range of float32"],
      ["a NUL in the query", { queryVector: [1, "\u0000"] }, "queryVector[1]: expected a number, got "],
      ["half of a surrogate pair in the query", { queryVector: ["\ud800", 1] }, "queryVector[0]: expected a number, got "],
      [
        "lists without end in the query",
        { queryVector: [1, JSON.parse(`${"[".repeat(500)}${"]".repeat(500)}`)] },
        "queryVector[1]: expected a",
      ],
      ["__proto__ in the query", { queryVector: [1, JSON.parse('{"__proto__": 1}')] }, "queryVector[1]: expected a number"],
      ["__proto__ for the query", { queryVector: JSON.parse('{"__proto__": 1}') }, "__proto__"],
      [
        "a text in a second query",
        {
          queryVector: undefined,
          queryVectors: [
            [1, 1],
            [1, "2"],
          ],
        },
        "queryVectors[1][1]: expected a number",
      ],
      ["a query that is no list", { queryVector: undefined, queryVectors: [[1, 1], 2] }, "queryVectors[1]: expected an array, got 2"],
      ["the zero vector with cosine", { queryVector: [0, 0], similarityFunction: "cosineSimilarity" }, "queryVector"],
      [
        "an unknown function",
        { similarityFunction: "dot" },
        'similarityFunction: expected "cosineSimilarity", "l1", "l2" or "dotProduct", got "dot"',
      ],
      ["the cosine of another function", { similarityFunction: "l2", cosine: true }, "cosine: true is for cosineSimilarity alone, not l2"],
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
    ])("with %s is refused (400), strong or not", async (_what, body, message) => {
      for (const consistency of ["strong", "eventual"]) {
        for (let server = 0; server < client.servers; server++) {
          const asked = { column: "v", queryVector: [0, 1], similarityFunction: "l2", consistency, ...body };
          const answer = await client.search("refusing", asked);
          expect(answer).toMatchObject({ status: 400, body: { id: expect.any(String) } });
          if (typeof message === "string") expect(answer.body.message).toContain(message);
          else expect(answer.body.message).toMatch(message);
        }
      }
    });

    it.each([
      ["/db/nodb:main/tables/refusing", "nodb"],
      ["/db/vectors:nobranch/tables/refusing", "nobranch"],
      ["/db/vectors:main/tables/notable", "notable"],
    ])("at %s is 404, and says what is missing", async (path, missing) => {
      for (const consistency of ["strong", "eventual"]) {
        for (let server = 0; server < client.servers; server++) {
          const answer = await client.post(`${path}/vectorSearch`, { column: "v", queryVector: [1, 1], consistency });
          expect(answer).toMatchObject({ status: 404, body: { message: expect.stringContaining(missing) } });
        }
      }
    });
  });
}
