import { describe, expect, expectTypeOf, it } from "vitest";
import {
  type ColumnFilter,
  Columns,
  type ColumnType,
  ParallelVectorIndex,
  type RowColumns,
  type SearchFilter,
  type SearchResult,
  TextColumns,
  VectorIndex,
} from "../../src/index.ts";

/** `npm run check` compiles this: each line below `@ts-expect-error` must be refused by TypeScript. All of it is refused when it runs, too. */

const TYPES = { title: "string", year: "int", rating: "float", seen: "bool", at: "datetime", tags: "multiple", extra: "json" } as const;
const ALIEN = { title: "Alien", year: 1979, rating: 8.5, seen: true, at: new Date(0), tags: ["space"], extra: { cast: 7 } };

async function films() {
  const index = await VectorIndex.create({ dimension: 1, columns: new Columns(TYPES) });
  index.upsert("alien", [1], ALIEN);
  index.upsert("untold", [1], { title: null, year: undefined });
  return index;
}

describe("an index whose columns TypeScript knows", () => {
  it("takes values of their types, and no others", async () => {
    const index = await films();
    index.upsertMany(["brazil"], Float32Array.of(1), [{ year: 1985n, at: "1985-02-20T00:00:00Z" }]);
    // @ts-expect-error: an int
    expect(() => index.upsert("a", [1], { year: "1979" })).toThrow("year: expected a whole number");
    // @ts-expect-error: no such column
    expect(() => index.upsert("a", [1], { yeer: 1979 })).toThrow('no column "yeer"');
    // @ts-expect-error: texts
    expect(() => index.upsertMany(["a"], Float32Array.of(1), [{ tags: [1] }])).toThrow("tags: expected");
  });

  it("gives values of their types", async () => {
    const index = await films();
    const { results } = index.search([1], { columns: ["title", "year"], k: 1 });
    const columns = results[0]?.columns;
    expectTypeOf(columns?.title).toEqualTypeOf<string | null | undefined>();
    expectTypeOf(columns?.year).toEqualTypeOf<number | bigint | null | undefined>();
    expectTypeOf(columns?.at).toEqualTypeOf<string | null | undefined>();
    expectTypeOf(columns?.tags).toEqualTypeOf<string[] | null | undefined>();
    expectTypeOf(index.getColumns("alien")?.seen).toEqualTypeOf<boolean | null | undefined>();
    expect(columns).toEqual({ title: "Alien", year: 1979 });
    // @ts-expect-error: no such column
    expect(columns?.yeer).toBeUndefined();
    // @ts-expect-error: no such column
    expect(() => index.search([1], { columns: ["yeer"] })).toThrow('no column "yeer"');
    // @ts-expect-error: no such column
    expect(() => index.getColumns("alien", ["yeer"])).toThrow('no column "yeer"');
  });

  const found = async (filter: SearchFilter<Columns<typeof TYPES>>) => (await films()).search([1], { filter }).results.map(({ id }) => id);

  it.each<SearchFilter<Columns<typeof TYPES>>>([
    { year: 1979 },
    { year: [1979n, 1.5] },
    { year: { $ge: 1970, $lt: 1980n, $isNot: [1, 2], $not: { $any: [3, { $gt: 4000 }] } } },
    { title: { $contains: "lie", $iPattern: "a*", $none: ["x", { $endsWith: "y" }] } },
    { tags: { $includes: "space", $includesAll: [{ $startsWith: "s" }, "space"], $includesNone: "x" } },
    { tags: "space", seen: true, rating: { $le: 9 }, at: { $lte: new Date(1), $gte: "1970-01-01T00:00:00Z" } },
    { "extra->cast": 7, extra: { cast: { $gt: 6 } }, id: { $startsWith: "al" }, $exists: "extra->cast" },
    { $any: [{ year: 1 }, { title: "Alien" }], $all: { year: 1979 }, $none: { seen: false }, $not: { $notExists: "id" } },
    (id: string) => id === "alien",
    Uint32Array.of(1),
  ])("takes filters over them: %o", async (filter) => {
    expect(await found(filter)).toEqual(["alien"]);
  });

  it("takes no filters over others, and none with values or operators of other types", async () => {
    // @ts-expect-error: no such column
    await expect(found({ yeer: 1979 })).rejects.toThrow("yeer");
    // @ts-expect-error: an int
    await expect(found({ year: "old" })).rejects.toThrow("filter.year");
    // @ts-expect-error: an int
    await expect(found({ year: { $gt: true } })).rejects.toThrow("filter.year.$gt");
    // @ts-expect-error: no such operator
    await expect(found({ year: { $more: 1 } })).rejects.toThrow("$more");
    // @ts-expect-error: for text
    await expect(found({ rating: { $contains: "8" } })).rejects.toThrow("filter.rating.$contains");
    // @ts-expect-error: for lists
    await expect(found({ title: { $includes: "A" } })).rejects.toThrow("filter.title.$includes");
    // @ts-expect-error: has no order
    await expect(found({ seen: { $lt: true } })).rejects.toThrow("no order");
    // @ts-expect-error: null never equals anything
    await expect(found({ year: null })).rejects.toThrow("null never equals anything");
    // @ts-expect-error: within others, too
    await expect(found({ $any: [{ seen: true }, { yeer: 1 }] })).rejects.toThrow("yeer");
    // @ts-expect-error: no such column
    await expect(found({ $exists: "yeer" })).rejects.toThrow("yeer");
  });

  it("is the same with words, and in workers", async () => {
    const columns = new TextColumns({ title: "string", year: "int" }, ["title"]);
    const index = await ParallelVectorIndex.create({ dimension: 1, shards: 1, columns });
    await index.upsert("alien", [1], { title: "Alien", year: 1979 });
    const { results } = await index.search({ text: "alien", target: ["title"], filter: { year: { $lt: 1980 } }, columns: ["year"] });
    expectTypeOf(results[0]?.columns?.year).toEqualTypeOf<number | bigint | null | undefined>();
    expect(results[0]?.columns).toEqual({ year: 1979 });
    // @ts-expect-error: no such column
    await expect(index.search({ text: "alien", target: ["titel"] })).rejects.toThrow("titel");
    // @ts-expect-error: an int
    await expect(index.search([1], { filter: { year: true } })).rejects.toThrow("filter.year");
    // @ts-expect-error: no such column
    expect(() => new TextColumns({ title: "string" }, ["titel"])).toThrow("titel");
    const copy = await VectorIndex.fromBytes(await index.toBytes(), { columns: new Columns({ title: "string", year: "int" }) });
    expectTypeOf(copy).toEqualTypeOf<VectorIndex<Columns<{ title: "string"; year: "int" }>>>();
    await index.free();
  });
});

describe("where TypeScript does not know the columns", () => {
  it("any name and value is taken, and checked when it runs", async () => {
    const types: Record<string, ColumnType> = TYPES;
    const index = await VectorIndex.create({ dimension: 1, columns: new Columns(types) });
    const row: Record<string, unknown> = ALIEN;
    const filter: ColumnFilter = { year: 1979 };
    index.upsert("alien", [1], row);
    const names: string[] = ["title"];
    expect(index.search([1], { filter, columns: names }).results[0]?.columns?.title).toBe("Alien");
    expect(() => index.search([1], { filter: { yeer: 1 } })).toThrow("yeer");
  });

  it("an index of known columns, or of none, is one of unknown columns", async () => {
    const any: (VectorIndex | ParallelVectorIndex)[] = [await films(), await VectorIndex.create({ dimension: 1 })];
    const columns: Columns = new Columns(TYPES);
    expectTypeOf(columns).toExtend<RowColumns>();
    const answers: SearchResult[] = await Promise.all(any.map((index) => index.search([1], { k: 1 })));
    expect(answers.map(({ totalCount }) => totalCount)).toEqual([2, 0]);
  });
});
