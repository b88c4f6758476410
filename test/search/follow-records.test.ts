/**
 * The search store over the real record store, changed by SQL without its knowledge: strong results are those
 * of the records at that moment.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseFilter } from "../../src/filter/parse.ts";
import { compileToSql } from "../../src/filter/sql-condition.ts";
import { Catalog } from "../../src/records/catalog/catalog.ts";
import type { Connection } from "../../src/records/engine/engine.ts";
import { RecordFeed } from "../../src/records/feed/change-feed.ts";
import type { BranchRef, ColumnSchema } from "../../src/records/schema.ts";
import type { FollowedRecords } from "../../src/search/followed-schema.ts";
import type { SearchStore, SimilarityFunction } from "../../src/search/search-store.ts";
import { referenceSearch, SIMILARITIES } from "../reference.ts";
import { describeOnBothEngines } from "../support/record-engines.ts";
import { ENGINES, type EngineFixture } from "./engines.ts";

const DIMENSION = 3;

const COLUMNS: readonly ColumnSchema[] = [
  { name: "v", type: "vector", vector: { dimension: DIMENSION } },
  { name: "title", type: "string" },
  { name: "body", type: "text" },
  { name: "mail", type: "email" },
  { name: "count", type: "int" },
  { name: "price", type: "float" },
  { name: "done", type: "bool" },
  { name: "at", type: "datetime" },
  { name: "tags", type: "multiple" },
  { name: "config", type: "json" },
  { name: "team", type: "link", link: { table: "teams" } },
];

const FILTERS: unknown[] = [
  undefined,
  { title: { $iContains: "é" } },
  { title: { $pattern: "a*" }, $notExists: "count" },
  { count: { $ge: 0, $lt: "9007199254740993" } },
  { price: { $gt: 1.5 } },
  { $not: { price: { $le: 1.5 } } },
  { done: true },
  { at: { $ge: "2024-01-01T00:00:00.000001Z" } },
  { tags: { $includesAll: { $startsWith: "a" } } },
  { tags: { $includesNone: ["a", "b"] } },
  { "config->k": { $gt: 2 } },
  { "team.name": "red" },
  { $none: [{ "team.name": "red" }, { $exists: "mail" }] },
  { "team.boss.title": { $is: ["a", "é"] } },
  { "xata.version": { $ge: 1 } },
  { "xata.updatedAt": { $gt: "2020-01-01T00:00:00Z" }, id: { $startsWith: "r1" } },
];

describeOnBothEngines("The search store", (fixture, kind) => {
  // What a search database gets does not depend on where the records are.
  describe.each(kind === "embedded" ? ENGINES.slice(0, 1) : ENGINES)("in %s", (engineName, start) => {
    let engine: EngineFixture;
    let catalog: Catalog;
    let feed: RecordFeed;
    let records: FollowedRecords;
    let store: SearchStore;
    let branches = 0;

    beforeAll(async () => {
      catalog = await Catalog.open(fixture.engine);
      feed = await RecordFeed.open(fixture.engine, catalog);
      records = {
        feed,
        branch: (ref) => catalog.branch(ref),
        currentBranch: (ref) => catalog.current(ref),
        allBranches: () => catalog.allBranches(),
      };
      engine = await start();
      store = await engine.open(records);
    });
    afterAll(async () => {
      await store.close();
      await engine.stop();
      await feed.close();
      await catalog.close();
    });

    const newBranch = async (): Promise<BranchRef> => {
      const ref = { database: "search", branch: `b${branches++}-${engineName.replace(/\W/g, "-")}` };
      await catalog.createBranch(ref);
      await catalog.change(ref, async (editor) => {
        await editor.createTable("teams", [{ name: "name", type: "string" }]);
        await editor.createTable("items", COLUMNS);
        await editor.addColumn("teams", { name: "boss", type: "link", link: { table: "items" } });
      });
      return ref;
    };

    const inBranch = async <T>(ref: BranchRef, work: (connection: Connection) => Promise<T>): Promise<T> => {
      const { schemaName } = await catalog.branch(ref);
      return fixture.engine.transaction(async (connection) => {
        await connection.query("SELECT set_config('search_path', $1, true)", [`"${schemaName}"`]);
        return work(connection);
      });
    };
    const sql = (ref: BranchRef, text: string, values: unknown[] = []) => inBranch(ref, (connection) => connection.query(text, values));

    /** The expected result: SQL for the filter, the oracle for the scores. */
    const expected = async (ref: BranchRef, filter: unknown, query: number[], similarity: SimilarityFunction) => {
      const info = await catalog.branch(ref);
      const { text, values } = compileToSql(parseFilter(filter, info.tables.get("items")!, info.tables), {
        alias: "t",
        firstParameter: 1,
        column: (alias, _table, column) => `${alias}."${column}"`,
        relation: (table) => `"${table}"`,
      });
      const { rows } = await inBranch(ref, (connection) =>
        connection.query<{ id: string; v: string }>(`SELECT id, v::text AS v FROM items AS t WHERE v IS NOT NULL AND ${text}`, values),
      );
      const vectors = rows.map(({ id, v }) => [id, v.slice(1, -1).split(",").map(Number)] as const);
      return referenceSearch(vectors, query, { k: 1000, similarity });
    };

    const check = async (ref: BranchRef, filters: readonly unknown[]): Promise<void> => {
      const query = [1, -2, 0.5];
      for (const [i, filter] of filters.entries()) {
        const similarityFunction = SIMILARITIES[i % SIMILARITIES.length]!;
        const answer = await store.vectorSearch(ref, "items", {
          column: "v",
          queryVector: query,
          size: 1000,
          similarityFunction,
          filter,
          consistency: "strong",
        });
        expect(answer, JSON.stringify(filter)).toEqual(await expected(ref, filter, query, similarityFunction));
      }
    };

    const fill = (ref: BranchRef, from: number, to: number) =>
      sql(
        ref,
        `INSERT INTO items (id, v, title, body, mail, count, price, done, at, tags, config, team)
       SELECT 'r' || i, CASE WHEN i % 11 <> 0 THEN ARRAY[i % 5 - 2, i % 3 - 1, i % 7]::real[] END,
         (ARRAY['a', 'é', 'É', 'ab', NULL])[1 + i % 5], repeat('x', i % 4), CASE WHEN i % 4 = 0 THEN 'a@b.c' END,
         (ARRAY[NULL, -9223372036854775808, 9007199254740992, 9007199254740993, i])[1 + i % 5],
         (ARRAY[NULL, 'NaN', 'Infinity', 1.5, 2.25, -1])[1 + i % 6]::float8, (ARRAY[NULL, true, false])[1 + i % 3],
         (ARRAY[NULL, 'infinity', '2024-01-01T00:00:00.000001Z', '2024-01-01T00:00:00Z'])[1 + i % 4]::timestamptz,
         (ARRAY[NULL, '{}', '{a,ab}', '{a,NULL}', '{b}'])[1 + i % 5]::text[],
         (ARRAY[NULL, '{"k": 2.5}', '{"k": "3"}', 'null', '{"k": 12345678901234567890}'])[1 + i % 5]::jsonb,
         (ARRAY[NULL, 't1', 't2'])[1 + i % 3]
       FROM generate_series($1::int, $2::int) AS i`,
        [from, to],
      );

    test("answers as SQL and the oracle do, over every type of column", async () => {
      const ref = await newBranch();
      await sql(ref, "INSERT INTO teams (id, name) VALUES ('t1', 'red'), ('t2', 'blue')");
      await fill(ref, 1, 400);
      await sql(ref, "UPDATE teams SET boss = 'r4'");
      await check(ref, FILTERS);
    });

    test("follows what SQL changes: updates, deletes by statement and by cascade; nothing that is rolled back is seen", async () => {
      const ref = await newBranch();
      await sql(ref, "INSERT INTO teams (id, name) VALUES ('t1', 'red'), ('t2', 'blue')");
      await fill(ref, 1, 100);
      await check(ref, FILTERS);
      await sql(ref, "UPDATE items SET v = ARRAY[9, 9, 9]::real[], title = 'z' WHERE id IN ('r1', 'r2', 'r33')");
      await check(ref, FILTERS);
      await sql(ref, "DELETE FROM items WHERE id = ANY ($1)", [["r1", "r5", "nobody"]]);
      await check(ref, FILTERS);
      await sql(ref, "UPDATE items SET v = NULL WHERE id LIKE 'r2%'");
      await check(ref, FILTERS);
      // The link becomes null by the foreign key.
      await sql(ref, "DELETE FROM teams WHERE id = 't1'");
      await check(ref, FILTERS);
      const rolledBack = inBranch(ref, async (connection) => {
        await connection.query("DELETE FROM items");
        throw new Error("not meant");
      });
      await expect(rolledBack).rejects.toThrow("not meant");
      await check(ref, FILTERS);
      await sql(
        ref,
        "WITH gone AS (DELETE FROM items WHERE id LIKE 'r3%' RETURNING id) UPDATE items SET title = 'kept' WHERE id LIKE 'r4%'",
      );
      await check(ref, FILTERS);
      await sql(ref, "DELETE FROM items");
      await check(ref, FILTERS);
    });

    test("reads everything at start, and gives the same answers after a restart", async () => {
      const ref = await newBranch();
      await sql(ref, "INSERT INTO teams (id, name) VALUES ('t1', 'red'), ('t2', 'blue')");
      await fill(ref, 1, 5_000);
      await check(ref, FILTERS.slice(0, 4));
      await store.close();
      await sql(ref, "DELETE FROM items WHERE id LIKE 'r1%'");
      store = await engine.open(records);
      await expect.poll(() => store.status()).toMatchObject({ ready: true, pending: [] });
      await check(ref, FILTERS.slice(0, 4));
    });

    test("moves to a new schema: columns and tables added, renamed and dropped, while records change", async () => {
      const ref = await newBranch();
      await sql(ref, "INSERT INTO teams (id, name) VALUES ('t1', 'red'), ('t2', 'blue')");
      await fill(ref, 1, 50);
      await check(ref, FILTERS);
      await catalog.change(ref, (editor) => editor.addColumn("items", { name: "level", type: "int", defaultValue: "7", notNull: true }));
      await sql(ref, "UPDATE items SET level = 8 WHERE id < 'r3'");
      await check(ref, [...FILTERS, { level: 7 }, { level: 8 }]);
      await catalog.change(ref, (editor) => editor.renameColumn("items", "title", "name"));
      await fillRenamed(ref);
      await check(ref, [{ name: "new" }, { name: { $iContains: "É" } }]);
      await expect(
        store.vectorSearch(ref, "items", { column: "v", queryVector: [1, 2, 3], filter: { title: "a" }, consistency: "strong" }),
      ).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining('filter.title: table "items" has no column "title"') });
      await catalog.change(ref, async (editor) => {
        await editor.dropColumn("items", "level");
        await editor.addColumn("items", { name: "level", type: "string" });
        await editor.addColumn("items", { name: "w", type: "vector", vector: { dimension: 2 } });
      });
      await sql(ref, "UPDATE items SET level = 'x', w = '{1,0}' WHERE id < 'r2'");
      await check(ref, [{ level: "x" }, { $notExists: "level" }, { $exists: "w" }]);
      const byW = await store.vectorSearch(ref, "items", { column: "w", queryVector: [1, 0], consistency: "strong" });
      expect(byW.totalCount).toBe((await sql(ref, "SELECT 1 FROM items WHERE w IS NOT NULL")).rows.length);
    });

    const fillRenamed = (ref: BranchRef) =>
      sql(ref, "INSERT INTO items (id, v, name) SELECT 'n' || i, '{1,1,1}', 'new' FROM generate_series(1, 5) AS i");

    test("keeps up with many concurrent writers; each answer is from one moment", async () => {
      const ref = await newBranch();
      await sql(ref, "INSERT INTO items (id, v, count) SELECT 'r' || i, '{1,2,3}', 0 FROM generate_series(1, 20) AS i");
      let isWriting = true;
      const answers: number[] = [];
      // Every transaction changes all counts, so a mixture of two would show as a number other than 0 or 20.
      const reader = (async () => {
        for (let n = 0; isWriting; n++) {
          const { totalCount } = await store.vectorSearch(ref, "items", {
            column: "v",
            queryVector: [1, 2, 3],
            filter: { count: n % 30 },
            consistency: "eventual",
          });
          answers.push(totalCount);
        }
      })();
      const writers = Array.from({ length: 3 }, async (_, writer) => {
        for (let n = 0; n < 10; n++) await sql(ref, "UPDATE items SET count = $1", [writer * 10 + n]);
      });
      await Promise.all(writers);
      isWriting = false;
      await reader;
      expect(answers.filter((count) => count !== 0 && count !== 20)).toEqual([]);
      await check(ref, FILTERS);
    });
  });
});
