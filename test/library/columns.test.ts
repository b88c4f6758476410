import { describe, expect, it } from "vitest";
import { Columns, ParallelVectorIndex, RowDirectory, VectorIndex } from "../../src/index.ts";

const TYPES = { title: "string", year: "int", rating: "float", seen: "bool", at: "datetime", tags: "multiple", extra: "json" } as const;

const FILMS: Record<string, Record<string, unknown>> = {
  alien: { title: "Alien", year: 1979, rating: 8.5, seen: true, at: "1979-05-25T00:00:00Z", tags: ["horror", "space"], extra: { cast: 7 } },
  brazil: { title: "Brazil", year: 1985, rating: 7.9, seen: false, at: new Date("1985-02-20"), tags: ["satire"], extra: [1, null] },
  amelie: { title: "Amélie", year: 2001, tags: [] },
  solaris: { title: "Solaris", year: 2n ** 60n },
  untold: {},
};
const IDS = Object.keys(FILMS);
const MATRIX = Float32Array.from(IDS.flatMap((_, i) => [i + 1, 1]));

const FILTERS: [Record<string, unknown>, string[]][] = [
  [{ year: { $gte: 1985, $lte: 2001 } }, ["amelie", "brazil"]],
  [{ year: { $ge: 1985, $lt: 2001 } }, ["brazil"]],
  [{ title: { $startsWith: "A" } }, ["alien", "amelie"]],
  [{ tags: { $includes: "space" } }, ["alien"]],
  [{ seen: true, rating: { $gt: 8 } }, ["alien"]],
  [{ at: { $lt: "1980-01-01T00:00:00Z" } }, ["alien"]],
  [{ "extra->cast": 7 }, ["alien"]],
  [{ $notExists: "year" }, ["untold"]],
  [{ $not: { title: "Alien" } }, ["amelie", "brazil", "solaris"]],
  [{ id: "untold" }, ["untold"]],
  [{ $any: [{ title: "Alien" }, { year: 2001 }] }, ["alien", "amelie"]],
];

describe.each(["one", "shards"] as const)("values beside the vectors (%s)", (kind) => {
  async function create(columns: Columns, rows?: RowDirectory): Promise<VectorIndex | ParallelVectorIndex> {
    return kind === "one"
      ? VectorIndex.create({ dimension: 2, columns, rows })
      : ParallelVectorIndex.create({ dimension: 2, shards: 2, columns, rows });
  }
  async function films(): Promise<VectorIndex | ParallelVectorIndex> {
    const index = await create(new Columns(TYPES));
    await index.upsertMany(IDS, MATRIX, Object.values(FILMS));
    return index;
  }
  const found = async (index: VectorIndex | ParallelVectorIndex, filter: Record<string, unknown>) =>
    (await index.search([1, 1], { filter, k: 100 })).results.map(({ id }) => id).sort();

  it("are filtered with the service's grammar", async () => {
    const index = await films();
    for (const [filter, expected] of FILTERS) expect([filter, await found(index, filter)]).toEqual([filter, expected]);
    await index.free();
  });

  it("come with results as they were given; int as a number if that is exact", async () => {
    const index = await films();
    const { results } = await index.search([1, 1], { similarity: "l2", columns: ["title", "year", "at", "tags", "extra"], k: 5 });
    expect(results.map(({ columns }) => columns)).toEqual([
      { title: "Alien", year: 1979, at: "1979-05-25T00:00:00.000000Z", tags: ["horror", "space"], extra: { cast: 7 } },
      { title: "Brazil", year: 1985, at: "1985-02-20T00:00:00.000000Z", tags: ["satire"], extra: [1, null] },
      { title: "Amélie", year: 2001, at: null, tags: [], extra: null },
      { title: "Solaris", year: 2n ** 60n, at: null, tags: null, extra: null },
      { title: null, year: null, at: null, tags: null, extra: null },
    ]);
    expect(await index.getColumns("alien", ["seen", "rating"])).toEqual({ seen: true, rating: 8.5 });
    expect(await index.getColumns("nobody")).toBeUndefined();
    await index.free();
  });

  it("an upsert with values replaces all of them, one without keeps them, a delete removes them", async () => {
    const index = await films();
    await index.upsert("alien", [1, 2]);
    expect(await index.getColumns("alien", ["title", "seen"])).toEqual({ title: "Alien", seen: true });
    await index.upsert("alien", [1, 2], { title: "Aliens" });
    expect(await index.getColumns("alien", ["title", "seen"])).toEqual({ title: "Aliens", seen: null });
    await index.delete("alien");
    expect(await found(index, { title: "Aliens" })).toEqual([]);
    await index.upsert("alien", [1, 2]);
    expect(await index.getColumns("alien", ["title"])).toEqual({ title: null });
    expect(await found(index, { $notExists: "title" })).toEqual(["alien", "untold"]);
    await index.free();
  });

  it("refuses what a column cannot hold, names the fault, and changes nothing", async () => {
    const index = await films();
    const before = await index.toBytes();
    const refused: [Record<string, unknown>, RegExp][] = [
      [{ year: 1.5 }, /^year: expected a whole number of 64 bits .*, got 1\.5/],
      [{ year: 2n ** 63n }, /^year: /],
      [{ title: 3 }, /^title: expected a well-formed string, got 3/],
      [{ title: "\ud800" }, /^title: /],
      [{ at: "yesterday" }, /^at: expected a Date/],
      [{ at: new Date(Number.NaN) }, /^at: /],
      [{ tags: [1] }, /^tags: /],
      [{ rating: Number.NaN }, /^rating: /],
      [{ seen: 1 }, /^seen: /],
      [{ extra: () => 0 }, /^extra: /],
      [{ nothing: 1 }, /^There is no column "nothing"; the index has "title"/],
    ];
    for (const [values, message] of refused) {
      const upsert = (async () => index.upsert("new", [1, 1], values))();
      await expect(upsert).rejects.toMatchObject({ name: "LodestoneError", code: "INVALID", message: expect.stringMatching(message) });
    }
    await expect((async () => index.upsertMany(["a", "b"], MATRIX.slice(0, 4), [{}]))()).rejects.toThrow(
      /values has 1 elements; expected 2/,
    );
    await expect((async () => index.search([1, 1], { filter: { nothing: 1 } }))()).rejects.toMatchObject({ code: "INVALID" });
    await expect((async () => index.search([1, 1], { filter: { "xata.version": 1 } }))()).rejects.toMatchObject({ code: "INVALID" });
    await expect((async () => index.search([1, 1], { columns: ["nothing"] }))()).rejects.toMatchObject({ code: "INVALID" });
    await expect((async () => index.search([1, 1], { columns: "title" as never }))()).rejects.toThrow(
      /^columns is "title"; expected an array/,
    );
    await expect((async () => index.getColumns("alien", 5 as never))()).rejects.toThrow(/^columns is 5; expected an array of names/);
    expect(Buffer.compare(await index.toBytes(), before)).toBe(0);
    await index.free();
  });

  it("go through snapshots, which are read only with the same columns", async () => {
    const index = await films();
    await index.delete("brazil");
    const bytes = await index.toBytes();
    const read = (source: Uint8Array, columns?: Columns) =>
      kind === "one" ? VectorIndex.fromBytes(source, { columns }) : ParallelVectorIndex.fromBytes(source, { columns, shards: 3 });
    const copy = await read(bytes, new Columns(TYPES));
    for (const id of IDS) expect(await copy.getColumns(id)).toEqual(await index.getColumns(id));
    expect(await found(copy, { year: { $gt: 1900 } })).toEqual(["alien", "amelie", "solaris"]);
    expect(Buffer.compare(await copy.toBytes(), bytes)).toBe(0);
    await expect(read(bytes)).rejects.toMatchObject({ code: "INVALID", message: expect.stringMatching(/option `columns`/) });
    await expect(read(bytes, new Columns({ title: "string" }))).rejects.toMatchObject({ code: "INVALID" });
    // Workers take a while to start.
    for (let at = 24; at < bytes.length; at += kind === "one" ? 1 : 97) {
      const damaged = bytes.slice();
      damaged[at]! ^= 4;
      await expect(read(damaged, new Columns(TYPES)), `byte ${at}`).rejects.toMatchObject({ code: "CORRUPT" });
    }
    await copy.free();
    await index.free();
  });

  it("a failed load leaves a shared directory and its columns unchanged", async () => {
    const bytes = await (await films()).toBytes();
    bytes[bytes.length - 1]! ^= 1;
    const rows = new RowDirectory();
    const columns = new Columns(TYPES);
    const other = await create(columns, rows);
    await other.upsert("alien", [1, 1], { title: "Mine" });
    const load =
      kind === "one" ? VectorIndex.fromBytes(bytes, { rows, columns }) : ParallelVectorIndex.fromBytes(bytes, { rows, columns, shards: 1 });
    await expect(load).rejects.toMatchObject({ code: "CORRUPT" });
    expect([rows.size, await other.getColumns("alien", ["title", "year"])]).toEqual([1, { title: "Mine", year: null }]);
    await other.free();
  });
});

describe("Columns", () => {
  it("refuses names that mean something else, unknown types, and a second owner", async () => {
    for (const name of ["id", "", "$x", "xata.version", "a->b"]) expect(() => new Columns({ [name]: "int" })).toThrow(/cannot be the name/);
    for (const types of [undefined, 5, ["year"]])
      expect(() => new Columns(types as never)).toThrow(/^types is .*; expected an object such as/);
    expect(() => new Columns({ a: "number" as "int" })).toThrow(/has the unknown type "number"/);
    const columns = new Columns({ a: "int" });
    await VectorIndex.create({ dimension: 1, columns });
    await expect(VectorIndex.create({ dimension: 1, columns })).rejects.toThrow(/belong to another index/);
  });

  it("__proto__ and constructor are names like any other", async () => {
    const columns = new Columns(JSON.parse('{"__proto__": "int", "constructor": "string"}') as Record<string, "int">);
    const index = await VectorIndex.create({ dimension: 1, columns });
    index.upsert("a", [1], JSON.parse('{"__proto__": 5, "constructor": "x"}') as Record<string, unknown>);
    index.upsert("b", [1], {});
    expect(index.search([1], { filter: JSON.parse('{"__proto__": 5}') as Record<string, unknown> }).results.map(({ id }) => id)).toEqual([
      "a",
    ]);
    expect(Object.entries(index.getColumns("b") ?? {})).toEqual([
      ["__proto__", null],
      ["constructor", null],
    ]);
  });

  it("an index without columns says so", async () => {
    const index = await VectorIndex.create({ dimension: 1 });
    expect(() => index.upsert("a", [1], { a: 1 })).toThrow(/values needs columns; give the option/);
    expect(() => index.search([1], { filter: { a: 1 } })).toThrow(/needs columns/);
    expect(() => index.search([1], { columns: ["a"] })).toThrow(/needs columns/);
    expect(index.has("a")).toBe(false);
  });
});
