/**
 * Compares results bit for bit with the oracle, which scores every record in float64: the similarities
 * with filters, filters through links, pages, score limits, and several queries at once. Then the same after
 * records and the schema have changed.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { referenceSearch, SIMILARITIES, type Similarity } from "../../reference.ts";
import { Random } from "../../reliability/workload/random.ts";
import { BASE, type SearchClient } from "./search-service.ts";

const DIMENSION = 12;
const RECORDS = 600;

interface Item {
  readonly id: string;
  n: number;
  readonly title: string;
  v: number[] | null;
  /** The country of its maker. */
  readonly country: string | null;
}

const FILTERS: readonly (readonly [filter: object | undefined, passes: (item: Item) => boolean])[] = [
  [undefined, () => true],
  [{ n: { $lt: 100 } }, ({ n }) => n < 100],
  [{ title: "item 3" }, ({ title }) => title === "item 3"],
  [{ "maker.country": "be" }, ({ country }) => country === "be"],
  // Nothing is known of an item without a maker, so it is not known not to be "ch".
  [{ $not: { "maker.country": "ch" }, n: { $ge: 200 } }, ({ country, n }) => country !== null && country !== "ch" && n >= 200],
  [{ n: -1 }, () => false],
];

const PAGES: readonly { readonly size: number; readonly offset?: number; readonly minScore?: number }[] = [
  { size: 10 },
  { size: 100, offset: 35 },
  { size: 1_000, minScore: 0.2 },
  // Of dotProduct, scores may be negative.
  { size: 1_000, minScore: -1.5 },
];

const COUNTRIES = ["at", "be", "ch"];

export function describeExhaustive(client: SearchClient): void {
  describe("every bit of an answer", () => {
    const random = new Random(20_261_122);
    /** Few values each, so that many scores are equal. */
    const vector = (): number[] => Array.from({ length: DIMENSION }, (_, i) => (i === 0 ? 1 : random.below(3) - 1));
    let items: Item[];

    const sql = async (statement: string, params: readonly unknown[] = []): Promise<void> => {
      expect((await client.post(`${BASE}/sql`, { statement, params })).status).toBe(200);
    };

    beforeAll(async () => {
      await client.createTable("makers", [
        { name: "country", type: "string" },
        { name: "logo", type: "vector", vector: { dimension: 2 } },
      ]);
      await client.createTable("items", [
        { name: "v", type: "vector", vector: { dimension: DIMENSION } },
        { name: "n", type: "int" },
        { name: "title", type: "string" },
        { name: "maker", type: "link", link: { table: "makers" } },
      ]);
      const makers = COUNTRIES.map((country, i) => ({ id: `maker-${country}`, country, logo: [i, 1] }));
      expect((await client.post(`${BASE}/tables/makers/bulk`, { records: makers })).status).toBe(200);
      items = Array.from({ length: RECORDS }, (_, n) => ({
        id: `${["a", "b", "Z"][n % 3]}${n}`,
        n,
        title: `item ${n % 7}`,
        v: n % 11 === 0 ? null : vector(),
        country: n % 5 === 0 ? null : COUNTRIES[n % 3]!,
      }));
      const records = items.map(({ country, ...item }) => ({ ...item, maker: country === null ? null : `maker-${country}` }));
      expect((await client.post(`${BASE}/tables/items/bulk`, { records })).status).toBe(200);
      // Ids that only SQL can write, and equal scores.
      for (const prefix of ["é", "\u{1f600}"]) {
        await sql('INSERT INTO "items" ("id", "v", "n", "title") SELECT $1 || "id", "v", "n", "title" FROM "items" WHERE "n" < 50', [
          prefix,
        ]);
        items.push(...items.filter(({ n }) => n < 50).map((item) => ({ ...item, id: prefix + item.id, country: null })));
      }
    });

    /** What the oracle returns for the items that pass. */
    const expected = (similarity: Similarity, passes: (item: Item) => boolean, page: (typeof PAGES)[number], query: number[]) => {
      const vectors = items.filter(passes).flatMap(({ id, v }) => (v === null ? [] : [[id, v] as const]));
      const { totalCount, results } = referenceSearch(vectors, query, { k: 1_000, similarity });
      const { size, offset = 0, minScore = Number.NEGATIVE_INFINITY } = page;
      return { totalCount, results: results.slice(offset, offset + size).filter(({ score }) => score >= minScore) };
    };

    /** Sends one request of each kind. Each server gets some of them, or, with `everywhere`, all. */
    const compare = async (everywhere: boolean): Promise<void> => {
      for (const similarityFunction of SIMILARITIES) {
        for (const [filter, passes] of FILTERS) {
          for (const page of PAGES) {
            const queryVector = vector();
            const answer = expected(similarityFunction, passes, page, queryVector);
            for (let server = 0; server < (everywhere ? client.servers : 1); server++) {
              const { status, body } = await client.search("items", { column: "v", queryVector, similarityFunction, filter, ...page });
              expect([status, body]).toEqual([200, answer]);
            }
          }
          const queryVectors = [vector(), vector(), vector()];
          const page = { size: 7, offset: 2 };
          const { body } = await client.search("items", { column: "v", queryVectors, similarityFunction, filter, ...page });
          expect(body).toEqual({ answers: queryVectors.map((query) => expected(similarityFunction, passes, page, query)) });
        }
      }
    };

    it("is the oracle's", () => compare(true));

    it("is the oracle's for a table that links lead to", async () => {
      const makers = COUNTRIES.map((country, i) => [`maker-${country}`, [i, 1]] as const);
      for (const similarityFunction of SIMILARITIES) {
        for (let server = 0; server < client.servers; server++) {
          const { body } = await client.search("makers", { column: "logo", queryVector: [1, 1], similarityFunction });
          expect(body).toEqual(referenceSearch(makers, [1, 1], { k: 10, similarity: similarityFunction }));
        }
      }
    });

    it("comes with records, and with what their links lead to", async () => {
      const queryVector = vector();
      const answer = expected("cosineSimilarity", () => true, { size: 20 }, queryVector);
      const byId = new Map(items.map((item) => [item.id, item]));
      for (let server = 0; server < client.servers; server++) {
        const { body } = await client.search("items", { column: "v", queryVector, size: 20, columns: ["title", "maker.country"] });
        expect(body.totalCount).toBe(answer.totalCount);
        expect(body.results).toEqual(
          answer.results.map(({ id, score }) => {
            const { title, country } = byId.get(id)!;
            const maker = country === null ? {} : { maker: expect.objectContaining({ id: `maker-${country}`, country }) };
            return { id, score, record: { id, title, ...maker, xata: expect.objectContaining({ version: 0 }) } };
          }),
        );
      }
    });

    it("is the oracle's after changes of records, and of links between them", async () => {
      await sql('DELETE FROM "items" WHERE "n" % 13 = 0');
      await sql('UPDATE "items" SET "v" = NULL WHERE "n" % 17 = 0');
      await sql('UPDATE "items" SET "n" = "n" + 1000 WHERE "n" % 3 = 0');
      items = items.filter(({ n }) => n % 13 !== 0);
      for (const item of items) {
        if (item.n % 17 === 0) item.v = null;
        if (item.n % 3 === 0) item.n += 1_000;
      }
      await compare(false);
      // With a link to the table itself, filters may need any of its records.
      await client.addColumn("items", { name: "parent", type: "link", link: { table: "items" } });
      await compare(false);
      await client.dropColumn("items", "parent");
      await compare(false);
    });
  });
}
