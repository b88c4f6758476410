import fc from "fast-check";
import { expect, test } from "vitest";
import { maximalMarginalRelevance, SIMILARITIES, type Similarity, VectorIndex } from "../../src/index.ts";
import { referenceSearch } from "../reference.ts";
import { runs } from "../support/random-runs.ts";

/** The definition, with the oracle's scores: every value is computed anew for every choice. */
function naive(query: number[], candidates: number[][], k: number, lambda: number, similarity: Similarity): number[] {
  const sim = (x: number[], y: number[]): number => {
    if (similarity === "cosineSimilarity" && x.every((element) => Math.fround(element) === 0)) return 1;
    return referenceSearch([["y", y]], x, { k: 1, similarity }).results[0]!.score;
  };
  const chosen: number[] = [];
  while (chosen.length < Math.min(k, candidates.length)) {
    const values = candidates.map((candidate, i) => {
      if (chosen.includes(i)) return Number.NaN;
      const relevance = sim(query, candidate);
      if (chosen.length === 0) return relevance;
      return lambda * relevance - (1 - lambda) * Math.max(...chosen.map((s) => sim(candidates[s]!, candidate)));
    });
    chosen.push(values.indexOf(Math.max(...values.filter((value) => !Number.isNaN(value)))));
  }
  return chosen;
}

test("the choice is the naive one, whatever the similarity, ties and zero vectors included", () => {
  const element = fc.oneof(fc.constantFrom(0, 1, -1, 2), fc.double({ min: -1e3, max: 1e3, noNaN: true }));
  const vector = fc.array(element, { minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(
      vector,
      fc.array(vector, { maxLength: 12 }),
      fc.integer({ min: 1, max: 14 }),
      fc.constantFrom(0, 0.3, 0.5, 1),
      fc.constantFrom(...SIMILARITIES),
      (query, candidates, k, lambda, similarity) => {
        expect(maximalMarginalRelevance(query, candidates, { k, lambda, similarity })).toEqual(
          naive(query, candidates, k, lambda, similarity),
        );
      },
    ),
    { numRuns: runs(500) },
  );
});

test("with lambda 1 a search's own order stays; with less, near duplicates come later", async () => {
  const index = await VectorIndex.create({ dimension: 2 });
  const vectors = { a: [1, 0], twin: [1, 0.001], other: [0.7, 0.7], far: [-1, 0] };
  for (const [id, vector] of Object.entries(vectors)) index.upsert(id, vector);
  const query = [1, 0.01];
  const { results } = index.search(query, { k: 4 });
  const found = index.getMany(results.map(({ id }) => id));
  const idsAt = (lambda: number) => maximalMarginalRelevance(query, found, { k: 3, lambda }).map((i) => results[i]!.id);
  expect(results.map(({ id }) => id)).toEqual(["twin", "a", "other", "far"]);
  expect(idsAt(1)).toEqual(["twin", "a", "other"]);
  expect(idsAt(0.5)).toEqual(["twin", "other", "a"]);
  expect(idsAt(0)).toEqual(["twin", "far", "other"]);
  index.free();
});

test("bad input is refused, and names what is wrong", () => {
  const choose = (query: unknown, candidates: unknown, options?: object) => () =>
    maximalMarginalRelevance(query as number[], candidates as number[][], options);
  expect(choose([1, 2], [[1, 2], [1]])).toThrow(/candidates\[1\]/);
  expect(choose([1, 2], [undefined])).toThrow(/candidates\[0\]/);
  expect(choose([1, Number.NaN], [])).toThrow(/query/);
  expect(choose(undefined, [])).toThrow(/^query is nothing; expected an array of numbers/);
  expect(choose([1, 2], undefined)).toThrow(/^candidates is nothing; expected an array of vectors/);
  expect(choose([1, 2], [], { lambda: 1.1 })).toThrow("lambda is 1.1");
  expect(choose([1, 2], [], { k: 0 })).toThrow(/k is 0/);
  expect(choose([1, 2], [], { similarity: "dot" })).toThrow(/similarity/);
  expect(choose([1, 2], [], { fetchK: 20 })).toThrow(/fetchK/);
});
