import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fusion } from "../../src/full-text/fusion.ts";
import { parseQuery, queryTerms } from "../../src/full-text/query.ts";
import { Columns, ParallelVectorIndex, RowDirectory, TextColumns, type TextSearch, VectorIndex } from "../../src/index.ts";
import { referenceSearch, SIMILARITIES } from "../reference.ts";
import { runs } from "../support/random-runs.ts";
import { fusedScores, inOrder, type Texts, textScores } from "../support/text-oracle.ts";

type Index = VectorIndex | ParallelVectorIndex;
type Values = { title?: string | null | undefined; tags?: string[] | null | undefined; year?: number | null | undefined };

const TYPES = { title: "string", tags: "multiple", year: "int" } as const;
const WORDS = ["garden", "gardens", "time", "labyrinth", "river", "stone", "bee", "wasp"];
const METHODS = ["standardized", "rrf", "linear"] as const;
const stem = (word: string): string => word.replace(/s$/, "");

interface StoredRecord {
  readonly vector: readonly number[];
  readonly values: Values;
}

/** What scoring every record gives: all that are found, best first. */
function expected(records: ReadonlyMap<string, StoredRecord>, request: TextSearch, passes: (values: Values) => boolean) {
  const { text, vector, fusion, target = ["title", "tags"], fuzziness = 1, prefix = false, stemmer, similarity } = request;
  const targets = target.map((item) => (typeof item === "string" ? { column: item, weight: 1 } : { weight: 1, ...item }));
  const terms = queryTerms(parseQuery(text, "words"), { fuzziness, prefix });
  const texts = new Map([...records].map(([id, { values }]): [string, Texts] => [id, values as Texts]));
  const ids = [...records].filter(([, { values }]) => passes(values)).map(([id]) => id);
  const words = new Map(
    [...textScores(texts, targets as { column: string; weight: number }[], terms, stemmer)].filter(([id]) => ids.includes(id)),
  );
  if (vector === undefined) return inOrder(text === "" ? ids.map((id) => [id, 0]) : [...words]);
  const vectors = referenceSearch(
    [...records].map(([id, own]) => [id, own.vector] as const),
    vector,
    { k: records.size, similarity: similarity ?? "cosineSimilarity", filter: (id) => ids.includes(id) },
  );
  const byId = new Map(vectors.results.map(({ id, score }) => [id, score]));
  return fusedScores(ids, words, byId, { method: "standardized", vectorWeight: 0.5, k: 60, ...fusion } as Fusion);
}

const FILTERS: readonly [TextSearch["filter"], (values: Values) => boolean][] = [
  [undefined, () => true],
  [{ year: { $ge: 3 } }, ({ year }) => (year ?? -1) >= 3],
  [{ year: 1_000 }, () => false],
];

const text = fc.array(fc.constantFrom(...WORDS), { maxLength: 5 }).map((words) => words.join(" "));
const values: fc.Arbitrary<Values> = fc.record({
  title: fc.option(text),
  tags: fc.option(fc.array(text, { maxLength: 2 })),
  year: fc.option(fc.nat(6)),
});
const vector = fc.tuple(fc.integer({ min: -2, max: 2 }), fc.integer({ min: -2, max: 2 }), fc.constantFrom(0.5, 1)).map((own) => [...own]);
const id = fc.nat(24).map((n) => `r${n}`);
const change = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("upsert" as const), id, vector, values }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("move" as const), id, vector }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("delete" as const), id }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reload" as const) }) },
);
const search = fc.record({
  text: fc.oneof({ weight: 5, arbitrary: text }, { weight: 1, arbitrary: fc.constantFrom("", "?", "gardn tme", "riv") }),
  vector: fc.option(vector, { nil: undefined }),
  fusion: fc.record({ method: fc.constantFrom(...METHODS), vectorWeight: fc.constantFrom(0, 0.3, 0.5, 1), k: fc.constantFrom(1, 60) }),
  target: fc.constantFrom(undefined, ["title"], [{ column: "title", weight: 3 }, "tags"]),
  fuzziness: fc.constantFrom(0, 1, 2),
  prefix: fc.boolean(),
  stemmer: fc.constantFrom(undefined, stem),
  similarity: fc.constantFrom(...SIMILARITIES),
  filter: fc.nat(FILTERS.length - 1),
  k: fc.constantFrom(1, 3, 100),
  offset: fc.constantFrom(0, 2),
});

describe.each(["one", "shards"] as const)("words beside the vectors (%s)", (kind) => {
  const create = async (columns: Columns, rows?: RowDirectory): Promise<Index> =>
    kind === "one"
      ? VectorIndex.create({ dimension: 3, columns, rows })
      : ParallelVectorIndex.create({ dimension: 3, shards: 2, columns, rows });
  const load = async (bytes: Uint8Array, columns: Columns): Promise<Index> =>
    kind === "one" ? VectorIndex.fromBytes(bytes, { columns }) : ParallelVectorIndex.fromBytes(bytes, { columns, shards: 2 });
  const find = async (index: Index, request: TextSearch) => {
    const { totalCount, results } = await index.search(request);
    return { totalCount, results: results.map((hit) => [hit.id, hit.score] as const) };
  };

  it("are found as scoring every record finds them, in every bit, after any changes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 60 }), fc.array(search, { minLength: 1, maxLength: 4 }), async (changes, searches) => {
        let index = await create(new TextColumns(TYPES));
        const records = new Map<string, StoredRecord>();
        for (const step of changes) {
          if (step.kind === "upsert") {
            await index.upsert(step.id, step.vector, step.values);
            records.set(step.id, step);
          } else if (step.kind === "move") {
            await index.upsert(step.id, step.vector);
            records.set(step.id, { vector: step.vector, values: records.get(step.id)?.values ?? {} });
          } else if (step.kind === "delete") {
            expect(await index.delete(step.id)).toBe(records.delete(step.id));
          } else {
            const bytes = await index.toBytes();
            await index.free();
            index = await load(bytes, new TextColumns(TYPES));
          }
        }
        for (const { filter: place, k, offset, ...rest } of searches) {
          const [filter, passes] = FILTERS[place]!;
          const request: TextSearch = { ...rest, filter };
          const all = expected(records, request, passes);
          expect(await find(index, { ...request, k, offset })).toEqual({ totalCount: all.length, results: all.slice(offset, offset + k) });
        }
        await index.free();
      }),
      { numRuns: runs(kind === "one" ? 300 : 20) },
    );
  });

  describe("of many records", () => {
    // More than are looked at for the spread of the vectors, in several blocks of rows of each shard.
    const COUNT = 2_500;
    const records = new Map<string, StoredRecord>();
    let index: Index;
    let state = 7;
    const next = (): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return (state >>> 8) / 2 ** 24;
    };
    const someText = (length: number): string => Array.from({ length }, () => WORDS[Math.floor(next() ** 2 * WORDS.length)]).join(" ");

    beforeAll(async () => {
      index = await create(new TextColumns(TYPES));
      for (let i = 0; i < COUNT; i++) {
        const own = {
          vector: [next() - 0.5, next() - 0.5, Math.round(next() * 4) + 0.5],
          values: { title: next() < 0.4 ? someText(1 + Math.floor(next() * 6)) : null, year: Math.floor(next() * 6) },
        };
        records.set(`r${i}`, own);
      }
      const all = [...records.values()];
      await index.upsertMany(
        [...records.keys()],
        Float32Array.from(all.flatMap((own) => own.vector)),
        all.map((own) => own.values),
      );
      for (const gone of [...records.keys()].filter((_, i) => i % 7 === 0)) {
        await index.delete(gone);
        records.delete(gone);
      }
    });
    afterAll(() => index.free());

    it.each(METHODS)("are found as scoring every record finds them (%s)", async (method) => {
      for (const [filter, passes] of FILTERS) {
        const request: TextSearch = { text: "garden labyrinth", vector: [0.1, 0.4, 1], similarity: "l2", fusion: { method }, filter };
        const all = expected(records, request, passes);
        for (const k of [10, 700])
          expect(await find(index, { ...request, k })).toEqual({ totalCount: all.length, results: all.slice(0, k) });
      }
    });

    it("explain their scores: the parts add up", async () => {
      for (const method of METHODS) {
        const { results } = await index.search({ text: "garden time", vector: [1, 0, 0], fusion: { method }, explain: true, k: 50 });
        expect(results.some(({ explanation }) => explanation?.text?.words.length)).toBe(true);
        for (const { score, explanation } of results) {
          expect((explanation?.vector?.contribution ?? 0) + (explanation?.text?.contribution ?? 0)).toBe(score);
          expect(explanation?.text?.words.reduce((sum, word) => sum + word.score, 0) ?? 0).toBe(explanation?.text?.score ?? 0);
        }
      }
      const { results } = await index.search({ text: "garden time", explain: true });
      for (const { score, explanation } of results) expect(explanation?.text?.words.reduce((sum, word) => sum + word.score, 0)).toBe(score);
    });

    it("are searched in the state at the call, whatever is written meanwhile", async () => {
      if (index instanceof VectorIndex) return;
      const shards = index;
      const requests = METHODS.map((method): TextSearch => ({ text: "garden time", vector: [1, 0.2, 0.5], fusion: { method }, k: 100 }));
      const vectorsAlone = { k: 100 };
      const before = [
        await Promise.all(requests.map((request) => find(shards, request))),
        await shards.search([1, 0.2, 0.5], vectorsAlone),
      ];
      const during = requests.map((request) => find(shards, request));
      // The best of all lose their rows to others, before anything has been answered.
      const best = before[0] as Awaited<ReturnType<typeof find>>[];
      const gone = [...new Set(best.flatMap(({ results }) => results.map(([own]) => own)))];
      const changed = shards.deleteMany(gone);
      const again = shards.upsertMany(
        gone.map((own) => `z${own}`),
        Float32Array.from(gone.flatMap(() => [1, 0.2, 0.5])),
        gone.map(() => ({ title: "garden time" })),
      );
      const after = find(shards, requests[0]!);
      const plain = shards.search([1, 0.2, 0.5], vectorsAlone);
      expect(await Promise.all(during)).toEqual(before[0]);
      expect(await changed).toBe(gone.length);
      await again;
      expect((await after).results.every(([own]) => own.startsWith("z"))).toBe(true);
      expect((await plain).results.every(({ id: own }) => own.startsWith("z"))).toBe(true);
      const now = new Map([...records].filter(([own]) => !gone.includes(own)));
      for (const own of gone) now.set(`z${own}`, { vector: [1, 0.2, 0.5], values: { title: "garden time" } });
      const all = expected(now, requests[0]!, () => true);
      expect(await after).toEqual({ totalCount: all.length, results: all.slice(0, 100) });
      // As it was, for the others.
      await shards.deleteMany(gone.map((own) => `z${own}`));
      const restored = gone.map((own) => records.get(own)!);
      await shards.upsertMany(
        gone,
        Float32Array.from(restored.flatMap((own) => own.vector)),
        restored.map((own) => own.values),
      );
      expect(await Promise.all(requests.map((request) => find(shards, request)))).toEqual(before[0]);
    });

    it("a search that is cancelled, or fails, holds nobody back", async () => {
      if (index instanceof VectorIndex) return;
      const request: TextSearch = { text: "garden", vector: [1, 0, 0] };
      const whole = await find(index, request);
      for (const abortAfter of [0, 1]) {
        const controller = new AbortController();
        const cancelled = index.search({ ...request, signal: controller.signal });
        if (abortAfter === 1) await Promise.resolve();
        controller.abort(new Error("enough"));
        await expect(cancelled).rejects.toThrow("enough");
      }
      await expect(index.search({ ...request, vector: [1, 0] })).rejects.toThrow(RangeError);
      expect(await find(index, request)).toEqual(whole);
      await index.upsert("new", [1, 0, 0], { title: "garden" });
      expect((await find(index, { ...request, k: 1_000 })).results.some(([own]) => own === "new")).toBe(true);
      await index.delete("new");
    });
  });

  it("come from snapshots of plain Columns, too, and give none of their own", async () => {
    const plain = await create(new Columns(TYPES));
    await plain.upsertMany(["a", "b"], Float32Array.of(1, 0, 0, 0, 1, 0), [{ title: "a river" }, { title: "a stone", tags: ["river"] }]);
    const bytes = await plain.toBytes();
    const index = await load(bytes, new TextColumns(TYPES));
    expect((await find(index, { text: "river" })).results.map(([own]) => own).sort()).toEqual(["a", "b"]);
    expect(Buffer.compare(await index.toBytes(), bytes)).toBe(0);
    await plain.free();
    await index.free();
  });

  it("a record that shares the rows, but has no vector here, is found by its words", async () => {
    const rows = new RowDirectory();
    const columns = new TextColumns(TYPES);
    const [index, other] = [await create(columns, rows), await create(columns, rows)];
    await index.upsert("a", [1, 0, 0], { title: "stone" });
    await other.upsert("b", [1, 0, 0], { title: "river bee" });
    expect((await find(index, { text: "bee" })).results.map(([own]) => own)).toEqual(["b"]);
    expect(await find(index, { text: "bee", vector: [1, 0, 0], fusion: { method: "linear", vectorWeight: 0.1 } })).toEqual({
      totalCount: 2,
      results: [
        ["b", expect.any(Number)],
        ["a", 0.1 * 2],
      ],
    });
    await index.free();
    await other.free();
  });

  it("offset, scoreThreshold, columns and masks work as in a search by vector", async () => {
    const index = await create(new TextColumns(TYPES, ["title"]));
    const ids = ["a", "b", "c"];
    await index.upsertMany(ids, new Float32Array(9).fill(1), [
      { title: "bee" },
      { title: "bee bee", tags: ["wasp"] },
      { title: "bee stone stone" },
    ]);
    const all = (await find(index, { text: "bee" })).results;
    expect(all.map(([own]) => own)).toEqual(["b", "a", "c"]);
    expect(await find(index, { text: "bee", offset: 1, k: 1 })).toEqual({ totalCount: 3, results: all.slice(1, 2) });
    expect(await find(index, { text: "bee", scoreThreshold: all[1]![1] })).toEqual({ totalCount: 3, results: all.slice(0, 2) });
    expect((await index.search({ text: "bee", columns: ["tags"], k: 1 })).results[0]!.columns).toEqual({ tags: ["wasp"] });
    const mask = new Uint32Array(1).fill(1 << index.rows.rowOf("c")!);
    expect(await find(index, { text: "bee", filter: mask })).toEqual({ totalCount: 1, results: all.slice(2) });
    expect(await find(index, { text: "bee", filter: (own) => own === "c" })).toEqual({ totalCount: 1, results: all.slice(2) });
    expect(await find(index, { text: "bee", filter: new Uint32Array(0) })).toEqual({ totalCount: 0, results: [] });
    expect(await find(index, { text: "wasp" })).toEqual({ totalCount: 0, results: [] });
    await index.free();
    await expect((async () => index.search({ text: "bee" }))()).rejects.toThrow("The index was freed");
  });

  it("refuses what it does not understand, and names it", async () => {
    const index = await create(new TextColumns(TYPES, ["title"]));
    await index.upsert("a", [1, 0, 0], { title: "bee" });
    const refused: [object, RegExp][] = [
      [{ text: 5 }, /^text is 5; expected a string/],
      [{ text: "bee", vector: [1, 0, 0], cosine: true }, /^"cosine" is not an option here/],
      [{ text: "bee", vektor: [1] }, /^"vektor" is not an option here; expected "text", "vector"/],
      [{ text: "bee", vector: [1, 2] }, /^vector has 2 elements; expected 3/],
      [{ text: "bee", vector: [0, 0, 0] }, /^vector is the zero vector/],
      [{ text: "bee", k: 0 }, /^k is 0/],
      [{ text: "bee", fuzziness: 3 }, /^fuzziness is 3; expected 0, 1 or 2/],
      [{ text: "bee", prefix: "yes" }, /^prefix is "yes"; expected true or false/],
      [{ text: "bee", explain: 1 }, /^explain is 1; expected true or false/],
      [{ text: "bee", stemmer: "english" }, /^stemmer is "english"; expected a function/],
      [{ text: "bee", target: "title" }, /^target is "title"; expected an array/],
      [{ text: "bee", target: ["tags"] }, /^target\[0\]: column "tags" has no words; those that have are "title"/],
      [{ text: "bee", target: [null] }, /^target\[0\] is null; expected a column/],
      [{ text: "bee", target: [{ column: "title", weight: 0 }] }, /^target\[0\].weight is 0; expected a number above 0/],
      [{ text: "bee", target: ["title", "title"] }, /^target\[1\]: column "title" is given twice/],
      [{ text: "bee", fusion: { method: "sum" } }, /^fusion.method is "sum"; expected "standardized", "rrf", "linear"/],
      [{ text: "bee", fusion: { vectorWeight: 2 } }, /^fusion.vectorWeight is 2; expected a number from 0 to 1/],
      [{ text: "bee", fusion: { k: 0 } }, /^fusion.k is 0; expected an integer of at least 1/],
      [{ text: "bee", fusion: 5 }, /^fusion is 5; expected an object/],
      [{ text: "bee", fusion: { weight: 1 } }, /^"weight" is not an option here/],
      [{ text: "bee", filter: { nothing: 1 } }, /There is no column|nothing/],
    ];
    for (const [request, message] of refused) {
      await expect((async () => index.search(request as TextSearch))(), JSON.stringify(request)).rejects.toThrow(message);
    }
    await index.free();
    const plain = await create(new Columns(TYPES));
    await expect((async () => plain.search({ text: "bee" }))()).rejects.toThrow(/^A search for words needs TextColumns/);
    await plain.free();
    expect(() => new TextColumns(TYPES, 5 as never)).toThrow(/^words is 5; expected an array of names/);
    expect(() => new TextColumns(TYPES, ["year"])).toThrow(/^words: "year" is no column of type "string" or "multiple"/);
  });
});
