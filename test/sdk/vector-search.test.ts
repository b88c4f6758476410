/**
 * Vector columns and vectorSearch through the published SDK, compared with a float64 oracle; 1536 dimensions
 * round trip.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, values, type World } from "./support/world.ts";

type Similarity = "cosineSimilarity" | "l1" | "l2";

/**
 * The formulas of the three similarities in float64, over float32 values: rows are stored in float32, and the
 * query is rounded the same way.
 */
function score(similarity: Similarity, given: readonly number[], stored: readonly number[]): number {
  const query = Float32Array.from(given);
  const row = Float32Array.from(stored);
  let [dot, qq, rr, l1, l2] = [0, 0, 0, 0, 0];
  for (let i = 0; i < row.length; i++) {
    const [q, r] = [query[i] ?? 0, row[i] ?? 0];
    dot += q * r;
    qq += q * q;
    rr += r * r;
    l1 += Math.abs(q - r);
    l2 += (q - r) ** 2;
  }
  if (similarity === "l1") return 1 / (1 + l1);
  if (similarity === "l2") return 1 / (1 + l2);
  return rr === 0 ? 1 : 1 + dot / Math.sqrt(qq * rr);
}

const COLOURS: [string, string, [number, number, number]][] = [
  ["black", "grey", [0, 0, 0]],
  ["white", "grey", [100, 0, 0]],
  ["red", "red", [53.24, 80.09, 67.2]],
  ["crimson", "red", [47.03, 70.94, 33.59]],
  ["lime", "green", [87.73, -86.18, 83.18]],
  ["forestgreen", "green", [50.59, -49.59, 45.02]],
  ["blue", "blue", [32.3, 79.19, -107.86]],
  ["navy", "blue", [12.97, 47.5, -64.7]],
  ["cyan", "blue", [91.11, -48.09, -14.13]],
  ["aqua", "blue", [91.11, -48.09, -14.13]],
];

let world: World;
let seed = 42;
const random = (): number => {
  seed = (seed * 1664525 + 1013904223) % 4294967296;
  return seed / 2147483648 - 1;
};
/**
 * Products, so that no element lies halfway between two float32. Rounding its decimal text and rounding the
 * number then give the same.
 */
const randomVector = (): number[] => Array.from({ length: 1536 }, () => random() * random());

beforeAll(async () => {
  world = await openWorld("vectors");
  await world.client.db.colours.create(COLOURS.map(([name, family, lab]) => ({ id: name, name, family, lab })));
  await world.client.db.colours.create({ id: "unknown", name: "no vector" });
  await settled("colours", "lab", COLOURS.length);
});
afterAll(() => world?.stop());

/**
 * The search store follows the records within milliseconds; a strong search guarantees that it has caught up.
 */
async function settled(table: string, column: string, totalCount: number): Promise<void> {
  const queryVector = Array.from({ length: column === "lab" ? 3 : 1536 }, () => 1);
  const answer = await world.plain("POST", `/tables/${table}/vectorSearch`, { column, queryVector, consistency: "strong" });
  expect(answer.body.totalCount).toBe(totalCount);
}

/** Vectors are stored as float32, and exactly that is returned. */
const float32 = (vector: readonly number[] | null | undefined): number[] => Array.from(vector ?? [], Math.fround);

const expected = (similarity: Similarity, query: readonly number[], keep = (_family: string): boolean => true) =>
  COLOURS.filter(([, family]) => keep(family))
    .map(([id, , lab]) => ({ id, score: score(similarity, query, lab) }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));

describe("vectorSearch", () => {
  test.each(["cosineSimilarity", "l1", "l2"] as const)("%s: ids, order and scores are those of the oracle", async (similarity) => {
    const query = [50, 60, 30];
    const { records, totalCount } = await world.client.db.colours.vectorSearch("lab", query, { similarityFunction: similarity, size: 100 });
    const oracle = expected(similarity, query);
    expect(totalCount).toBe(COLOURS.length);
    expect(records.map(({ id }) => id)).toEqual(oracle.map(({ id }) => id));
    records.forEach((record, i) => {
      expect(record.getMetadata().score).toBeCloseTo(oracle[i]?.score ?? Number.NaN, 12);
    });
  });

  test("by default ten by cosine; records are whole, with metadata, and can be updated", async () => {
    const { records } = await world.client.db.colours.vectorSearch("lab", [12.97, 47.5, -64.7]);
    expect(records).toHaveLength(10);
    const [navy] = records;
    expect(values(navy ?? null)).toEqual({ id: "navy", name: "navy", family: "blue", lab: navy?.lab });
    expect(float32(navy?.lab)).toEqual(float32([12.97, 47.5, -64.7]));
    expect(navy?.getMetadata()).toMatchObject({ version: 0, createdAt: expect.any(Date), updatedAt: expect.any(Date), table: "colours" });
    expect(navy?.getMetadata().score).toBeCloseTo(2, 6);
    expect((await navy?.update({ family: "dark blue" }))?.family).toBe("dark blue");
    await world.client.db.colours.update("navy", { family: "blue" });
    await settled("colours", "lab", COLOURS.length);
  });

  test("size limits, equal scores are ordered by id", async () => {
    const { records, totalCount } = await world.client.db.colours.vectorSearch("lab", [91.11, -48.09, -14.13], {
      similarityFunction: "l2",
      size: 2,
    });
    expect(records.map(({ id }) => id)).toEqual(["aqua", "cyan"]);
    expect(totalCount).toBe(COLOURS.length);
  });

  test("a filter is applied first, and totalCount counts what it lets through", async () => {
    const query = [50, 60, 30];
    const { records, totalCount } = await world.client.db.colours.vectorSearch("lab", query, {
      filter: { family: { $any: ["red", "green"] } } as never,
    });
    expect(totalCount).toBe(4);
    expect(records.map(({ id }) => id)).toEqual(
      expected("cosineSimilarity", query, (family) => ["red", "green"].includes(family)).map(({ id }) => id),
    );
  });

  test.each([
    ["a wrong dimension", "lab", [1, 2], {}, ["2", "3"]],
    ["an unknown column", "rgb", [1, 2, 3], {}, ["rgb"]],
    ["a column that is not a vector", "name", [1, 2, 3], {}, ["name"]],
    ["a zero vector with cosine", "lab", [0, 0, 0], {}, ["zero"]],
    ["an unknown function", "lab", [1, 2, 3], { similarityFunction: "l3" }, ["l3"]],
    ["size 0", "lab", [1, 2, 3], { size: 0 }, ["size"]],
    ["size 1001", "lab", [1, 2, 3], { size: 1001 }, ["size"]],
    ["a number too large", "lab", [1e300, 2, 3], {}, ["queryVector"]],
    ["text in the vector", "lab", ["1", 2, 3], {}, ["queryVector"]],
    ["a filter that is wrong", "lab", [1, 2, 3], { filter: { $all: [{ shoe: 1 }] } }, ["$all[0]", "shoe"]],
  ])("%s is a 400 that says so", async (_name, column, query, options, fragments) => {
    const failure = world.client.db.colours.vectorSearch(column as never, query as never, options as never);
    await expect(failure).rejects.toMatchObject({ status: 400 });
    const message = await failure.catch((error: Error) => error.message);
    for (const fragment of fragments) expect(message).toContain(fragment);
  });

  test("a zero vector is a query like any other for l1 and l2", async () => {
    for (const similarityFunction of ["l1", "l2"] as const) {
      const { records } = await world.client.db.colours.vectorSearch("lab", [0, 0, 0], { similarityFunction, size: 1 });
      expect(records[0]?.id).toBe("black");
      expect(records[0]?.getMetadata().score).toBe(1);
    }
  });
});

describe("1536 dimensions", () => {
  test("are stored and returned unchanged, to the last bit of float32", async () => {
    const embedding = randomVector();
    const stored = float32(embedding);
    const created = await world.client.db.documents.create("doc-1536", { title: "long", embedding });
    expect(float32(created.embedding)).toEqual(stored);
    expect(float32((await world.client.db.documents.read("doc-1536"))?.embedding)).toEqual(stored);
    const listed = await world.client.db.documents.select(["embedding"]).filter("id", "doc-1536").getFirst();
    expect(float32(listed?.embedding)).toEqual(stored);
    expect(float32((await world.plain("GET", "/tables/documents/data/doc-1536")).body.embedding)).toEqual(stored);
    const sql = await world.client.sql<{ embedding: number[] }>({
      statement: 'SELECT "embedding" FROM "documents" WHERE "id" = $1',
      params: ["doc-1536"],
    });
    expect(float32(sql.records[0]?.embedding)).toEqual(stored);
    await world.client.db.documents.delete("doc-1536");
  });

  test("100 of them, found in the oracle's order by each function", async () => {
    const rows = Array.from({ length: 100 }, (_, i) => ({
      id: `d${String(i).padStart(3, "0")}`,
      title: `t${i}`,
      embedding: randomVector(),
    }));
    await world.client.db.documents.create(rows);
    await settled("documents", "embedding", rows.length);
    const query = randomVector();
    for (const similarityFunction of ["cosineSimilarity", "l1", "l2"] as const) {
      const oracle = rows
        .map(({ id, embedding }) => ({ id, score: score(similarityFunction, query, embedding) }))
        .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
      const { records } = await world.client.db.documents.vectorSearch("embedding", query, { similarityFunction, size: 100 });
      expect(records.map(({ id }) => id)).toEqual(oracle.map(({ id }) => id));
      records.forEach((record, i) => {
        expect(record.getMetadata().score).toBeCloseTo(oracle[i]?.score ?? Number.NaN, 10);
      });
    }
  });

  test("a vector written by SQL as an array literal is the same vector", async () => {
    const embedding = randomVector();
    await world.client.sql`INSERT INTO "documents" ("id", "title", "embedding") VALUES (${"by-sql"}, ${"x"}, ${embedding})`;
    expect(float32((await world.client.db.documents.read("by-sql"))?.embedding)).toEqual(float32(embedding));
    await world.client.db.documents.delete("by-sql");
  });

  test.each([
    ["one element too few", Array.from({ length: 1535 }, () => 1), ["1535", "1536"]],
    ["an element beyond float32", [...Array.from({ length: 1535 }, () => 1), 1e39], ["embedding"]],
    ["null among the elements", [...Array.from({ length: 1535 }, () => 1), null], ["embedding"]],
    ["text", "not a vector", ["embedding"]],
  ])("%s is a 400 that says so, and nothing is written", async (_name, embedding, fragments) => {
    const failure = world.client.db.documents.create("refused", { embedding } as never);
    await expect(failure).rejects.toMatchObject({ status: 400 });
    const message = await failure.catch((error: Error) => error.message);
    for (const fragment of fragments) expect(message).toContain(fragment);
    expect(await world.client.db.documents.read("refused")).toBeNull();
  });

  test("a changed vector is found at its new place", async () => {
    const { colours } = world.client.db;
    await colours.create("moving", { name: "moving", lab: [10, 10, 10] });
    await colours.update("moving", { lab: [-90, 3, 5] });
    await settled("colours", "lab", COLOURS.length + 1);
    const { records } = await colours.vectorSearch("lab", [-90, 3, 5], { similarityFunction: "l2", size: 1 });
    expect(records[0]?.id).toBe("moving");
    await colours.delete("moving");
  });
});
