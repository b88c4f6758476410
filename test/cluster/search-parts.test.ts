/**
 * What each server of search parts holds, keeps and follows. That their answers are right, bit for bit, is
 * shown by the suite of all engines, test/http/vector-search.test.ts.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { partCondition, partIndexOf } from "../../src/records/feed/part.ts";
import { SIMILARITIES } from "../reference.ts";
import { Random } from "../reliability/workload/random.ts";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import type { TestServer } from "../support/server.ts";
import { PartsCluster } from "./parts-cluster.ts";

const DIMENSION = 12;
const RECORDS = 600;
const TABLE = "/db/db:main/tables/items";
const SEARCH = `${TABLE}/vectorSearch`;

const random = new Random(20_261_122);
/** Few values each, so that many scores are equal. */
const vector = (): number[] => Array.from({ length: DIMENSION }, (_, i) => (i === 0 ? 1 : random.below(3) - 1));

async function fill(server: TestServer): Promise<void> {
  await server.put("/db/db:main");
  await server.put("/db/db:main/tables/makers", {
    columns: [
      { name: "country", type: "string" },
      { name: "logo", type: "vector", vector: { dimension: 2 } },
    ],
  });
  const columns = [
    { name: "v", type: "vector", vector: { dimension: DIMENSION } },
    { name: "n", type: "int" },
    { name: "title", type: "string" },
    { name: "maker", type: "link", link: { table: "makers" } },
  ];
  expect((await server.put("/db/db:main/tables/items", { columns })).status).toBe(201);
  const makers = ["at", "be", "ch"].map((country, i) => ({ id: `maker-${country}`, country, logo: [i, 1] }));
  expect((await server.post("/db/db:main/tables/makers/bulk", { records: makers })).status).toBe(200);
  const records = Array.from({ length: RECORDS }, (_, n) => ({
    id: `${["a", "b", "Z"][n % 3]}${n}`,
    n,
    title: `item ${n % 7}`,
    ...(n % 11 === 0 ? {} : { v: vector() }),
    ...(n % 5 === 0 ? {} : { maker: makers[n % 3]!.id }),
  }));
  expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
  // Ids that only SQL can write, and equal scores.
  const statement = `INSERT INTO "items" ("id", "v", "n", "title") SELECT $1 || "id", "v", "n", "title" FROM "items" WHERE "n" < 50`;
  for (const prefix of ["é", "\u{1f600}"]) expect((await server.post("/db/db:main/sql", { statement, params: [prefix] })).status).toBe(200);
}

function requests(): object[] {
  return SIMILARITIES.flatMap((similarityFunction) => {
    const base = { column: "v", similarityFunction, consistency: "strong" };
    return [
      { ...base, queryVector: vector(), size: 10 },
      { ...base, queryVector: vector(), size: 100, offset: 35, filter: { n: { $lt: 100 } } },
      { ...base, queryVector: vector(), size: 1000, minScore: 0.2, filter: { "maker.country": "be" } },
      { ...base, queryVectors: [vector(), vector(), vector()], size: 7, offset: 2 },
    ];
  });
}

async function expectSame(cluster: PartsCluster, path: string, body: object): Promise<void> {
  const expected = await cluster.whole.post(path, body);
  const answers = await Promise.all(cluster.all.map((server) => server.post(path, body)));
  for (const { status, text } of answers) expect([status, text]).toEqual([expected.status, expected.text]);
}

describeWith("postgresql", "Search parts", (bin) => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres(bin);
  });
  afterAll(() => postgres.stop());

  it("PostgreSQL and this process put each record in the same part", async () => {
    const client = new pg.Client({ connectionString: await postgres.createDatabase() });
    await client.connect();
    try {
      const ids = ["", "a", "rec_1", "é", "\u{1f600}", "x".repeat(10_000), ...Array.from({ length: 300 }, (_, n) => `id-${n}`)];
      for (const of of [1, 2, 3, 4, 256]) {
        for (let index = 0; index < Math.min(of, 4); index++) {
          const { rows } = await client.query(`SELECT "id" FROM unnest($1::text[]) AS t("id") WHERE ${partCondition({ index, of })}`, [
            ids,
          ]);
          expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(ids.filter((id) => partIndexOf(id, of) === index)));
        }
      }
    } finally {
      await client.end();
    }
  });

  it("read each page of a table along its index, wherever the page begins", async () => {
    const client = new pg.Client({ connectionString: await postgres.createDatabase() });
    await client.connect();
    try {
      await client.query(
        `CREATE TABLE t AS SELECT lpad(n::text, 6, '0') COLLATE "C" AS "id", repeat('x', 500) AS v FROM generate_series(1, 50000) AS n`,
      );
      await client.query('ALTER TABLE t ADD PRIMARY KEY ("id")');
      await client.query("ANALYZE t");
      for (const of of [2, 4, 64]) {
        for (const after of ["", "020000", "040000", "049000"]) {
          const page = `SELECT * FROM t WHERE "id" > '${after}' AND ${partCondition({ index: 1, of })} ORDER BY "id" LIMIT 2000`;
          const { rows } = await client.query(`EXPLAIN (COSTS OFF) ${page}`);
          const plan = rows.map((row) => row["QUERY PLAN"].trim()).join("\n");
          expect(plan, `of ${of} parts, after ${after}`).toMatch(/^Limit\n-> {2}Index Scan using t_pkey on t\n/);
        }
      }
    } finally {
      await client.end();
    }
  });

  it("start again from snapshots of their own part only", async () => {
    const cluster = await PartsCluster.start(postgres, { replicas: [1, 1], args: ["--snapshot-interval", "1"] });
    try {
      await fill(cluster.all[0]!);
      // Smaller tables have no snapshots.
      const statement = `INSERT INTO "items" ("id", "v", "n") SELECT 'x' || "id" || s, "v", "n" FROM "items", generate_series(1, 5) AS s`;
      expect((await cluster.whole.post("/db/db:main/sql", { statement })).status).toBe(200);
      const body = { column: "v", queryVector: vector(), size: 1000, consistency: "strong" };
      await expectSame(cluster, SEARCH, body);
      const snapshots = (): boolean =>
        cluster.all.every(({ dataDir }) => readdirSync(join(dataDir, "search")).some((name) => name.endsWith(".snapshot")));
      await expect.poll(snapshots).toBe(true);
      await cluster.restart({ turned: false });
      await expectSame(cluster, SEARCH, body);
      await cluster.restart({ turned: true });
      for (const asked of [body, { ...body, consistency: "eventual" }]) await expectSame(cluster, SEARCH, asked);
    } finally {
      await cluster.stop();
    }
  });

  for (const count of [2, 4]) {
    describe(`${count} parts`, () => {
      let cluster: PartsCluster;
      beforeAll(async () => {
        cluster = await PartsCluster.start(postgres, { replicas: Array(count).fill(1) });
        await fill(cluster.all[0]!);
      });
      afterAll(() => cluster.stop());

      it("hold a part each, and whole tables if links lead to them", async () => {
        // A strong search of each table, so that all servers have read everything.
        await expectSame(cluster, SEARCH, requests()[0]!);
        await expectSame(cluster, "/db/db:main/tables/makers/vectorSearch", { column: "logo", queryVector: [1, 1], consistency: "strong" });
        const rows = await Promise.all([cluster.whole, ...cluster.all].map(async (server) => (await server.get("/readyz")).body.rows));
        const [all, ...ofParts] = rows as number[];
        const makers = 3;
        expect(ofParts.reduce((sum, held) => sum + held - makers, 0)).toBe(all! - makers);
        for (const held of ofParts) expect(held).toBeLessThan(all! * (1.5 / count));
        expect((await cluster.all[0]!.get("/metrics")).text).toMatch(/^lodestone_search_whole_tables 1$/m);
      });

      it("follow changes of records and of the schema", async () => {
        const [first] = cluster.all as [TestServer];
        await first.post("/db/db:main/sql", { statement: 'DELETE FROM "items" WHERE "n" % 13 = 0' });
        await first.post("/db/db:main/sql", { statement: 'UPDATE "items" SET "v" = NULL WHERE "n" % 17 = 0' });
        await first.post("/db/db:main/sql", { statement: 'UPDATE "items" SET "n" = "n" + 1000 WHERE "n" % 3 = 0' });
        for (const body of requests()) await expectSame(cluster, SEARCH, body);
        // A link to the table itself: from now on every server holds it whole.
        expect((await first.post(`${TABLE}/columns`, { name: "parent", type: "link", link: { table: "items" } })).status).toBe(200);
        for (const body of requests().slice(0, 6)) await expectSame(cluster, SEARCH, body);
        const rows = async (server: TestServer): Promise<number> => (await server.get("/readyz")).body.rows;
        await expect.poll(() => rows(first)).toBe(await rows(cluster.whole));
        expect((await first.delete(`${TABLE}/columns/parent`)).status).toBe(200);
        for (const body of requests().slice(6, 12)) await expectSame(cluster, SEARCH, body);
        await expect.poll(() => rows(first)).toBeLessThan(0.9 * (await rows(cluster.whole)));
      });
    });
  }
});
