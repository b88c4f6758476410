/** What vector searches answer, and what they refuse. */
import { describe, expect, test } from "vitest";
import type { SimilarityFunction } from "../../src/search/search-store.ts";
import { referenceSearch, SIMILARITIES } from "../reference.ts";
import { describeOnEngines } from "./engines.ts";
import { item, itemsStore, REF } from "./items-store.ts";
import type { MemoryRecord } from "./memory-records.ts";

const invalid = (message: string | RegExp) => ({
  code: "INVALID",
  message: message instanceof RegExp ? expect.stringMatching(message) : message,
});

function reference(rows: readonly MemoryRecord[], query: number[], similarity: SimilarityFunction) {
  const vectors = rows.flatMap((row) => (row.embedding === null ? [] : [[row.id, row.embedding as number[]] as const]));
  return referenceSearch(vectors, query, { k: 1000, similarity });
}

describeOnEngines("a vector search over", (start) => {
  const at = itemsStore(start);

  test("answers as the exhaustive computation does, with filters, ties, offset and minScore", async () => {
    let seed = 7;
    const random = (): number => {
      seed = (seed * 48271) % 2147483647;
      return seed / 2147483647;
    };
    at.records.write(REF, "teams", [
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
    at.records.write(REF, "items", rows);
    for (const similarityFunction of SIMILARITIES) {
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
        const all = await at.search({ similarityFunction, filter, size: 1000 });
        expect(all).toEqual({ totalCount: expected.length, results: expected });
        const page = await at.search({ similarityFunction, filter, size: 7, offset: 5, minScore: 0.9 });
        expect(page.results).toEqual(expected.slice(5, 12).filter(({ score }) => score >= 0.9));
        expect(page.totalCount).toBe(expected.length);
      }
    }
  });

  test("answers several queries at once as it answers each one", async () => {
    at.records.write(REF, "items", [item("a", [1, 0, 0]), item("b", [0, 1, 0]), item("c", [0, 0, 1], { color: "red" })]);
    const queryVectors = [
      [1, 2, 3],
      [3, 2, 1],
    ];
    const answers = await at.store.vectorSearchMany(REF, "items", {
      column: "embedding",
      queryVectors,
      filter: { $notExists: "color" },
      consistency: "strong",
    });
    const single = await Promise.all(queryVectors.map((queryVector) => at.search({ queryVector, filter: { $notExists: "color" } })));
    expect(answers).toEqual(single);
    expect(answers.map(({ results }) => results.map(({ id }) => id))).toEqual([
      ["b", "a"],
      ["a", "b"],
    ]);
  });

  test("ignores stored vectors that are not finite", async () => {
    at.records.write(REF, "items", [item("a", [1, 2, 3]), item("b", [Number.NaN, 0, 0]), item("c", [0, Infinity, 0])]);
    expect(await at.search({})).toMatchObject({ totalCount: 1, results: [{ id: "a" }] });
    at.records.write(REF, "items", [item("b", [1, 0, 0]), item("a", [Number.NaN, 0, 0])]);
    expect(await at.ids({})).toEqual(["b"]);
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
        'similarityFunction: expected "cosineSimilarity", "l1", "l2", "dotProduct", got "dot".',
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
      await expect(at.search(request)).rejects.toMatchObject(invalid(message));
    });

    test("too many or no query vectors", async () => {
      const many = (queryVectors: number[][]) => at.store.vectorSearchMany(REF, "items", { column: "embedding", queryVectors });
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
      await expect(at.search({}, "nope")).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: "table [db:main/nope] not found",
      });
      await expect(at.search({}, "teams")).rejects.toMatchObject(
        invalid('column: table "teams" has no column "embedding"; the table has no vector column.'),
      );
      await expect(
        at.store.vectorSearch({ database: "db", branch: "x" }, "items", { column: "embedding", queryVector: [1, 2, 3] }),
      ).rejects.toMatchObject({ code: "NOT_FOUND" });
    });
  });
});
