/** The API over real HTTP: SQL. Run on both databases. */
import { beforeAll, describe, expect, it } from "vitest";
import type { Api } from "./api.ts";

export function describeSql(api: Api): void {
  describe("SQL", () => {
    const sql = (body: unknown) => api.post("/db/sqls:main/sql", body);
    beforeAll(async () => {
      await api.put("/db/sqls:main");
      await api.put("/db/sqls:main/tables/Users", {
        columns: [
          { name: "name", type: "string" },
          { name: "tags", type: "multiple" },
          { name: "n", type: "int" },
        ],
      });
      await api.post("/db/sqls:main/tables/Users/bulk", {
        records: Array.from({ length: 1200 }, (_, n) => ({ name: `u${n}`, n })).slice(0, 1000),
      });
    });

    it("deletes by id and by a list of ids", async () => {
      await api.put("/db/sqls:main/tables/Users/data/d1", { name: "d" });
      await api.put("/db/sqls:main/tables/Users/data/d2", { name: "d" });
      await api.put("/db/sqls:main/tables/Users/data/d3", { name: "d" });
      const one = await sql({ statement: 'DELETE FROM "Users" WHERE "id" = $1', params: ["d1"] });
      expect(one).toMatchObject({ status: 200, body: { records: [], columns: [], total: 0, rowCount: 1 } });
      expect(await sql({ statement: 'DELETE FROM "Users" WHERE "id" IN ($1, $2)', params: ["d2", "d3"] })).toMatchObject({
        status: 200,
        body: { rowCount: 2 },
      });
      expect((await api.get("/db/sqls:main/tables/Users/data/d2")).status).toBe(404);
    });

    it("returns objects or lists, with the columns and their PostgreSQL types", async () => {
      await api.put("/db/sqls:main/tables/Users/data/s1", { name: "s", tags: ["a", "b"], n: 3 });
      const statement = 'SELECT "id", "tags", "n", "xata.createdAt" FROM "Users" WHERE "id" = $1';
      const json = await sql({ statement, params: ["s1"] });
      expect(json).toMatchObject({
        status: 200,
        body: {
          records: [{ id: "s1", tags: ["a", "b"], n: 3 }],
          columns: [
            { name: "id", type: "text" },
            { name: "tags", type: "_text" },
            { name: "n", type: "int8" },
            { name: "xata.createdAt", type: "timestamptz" },
          ],
          total: 1,
          rowCount: 1,
        },
      });
      const array = await sql({ statement, params: ["s1"], responseType: "array" });
      expect(array.body.rows).toMatchObject([["s1", ["a", "b"], 3, expect.any(String)]]);
      expect(array.body).not.toHaveProperty("records");
    });

    it("accepts INSERT, UPDATE, DELETE, RETURNING, joins, CTEs and aggregates", async () => {
      const statement =
        'WITH gone AS (DELETE FROM "Users" WHERE "n" < $1 RETURNING "n"), counted AS (SELECT count(*)::int AS c FROM gone) SELECT c FROM counted';
      expect((await sql({ statement, params: [2] })).body.records).toEqual([{ c: 2 }]);
      const updated = await sql({ statement: 'UPDATE "Users" SET "name" = upper("name") WHERE "n" = 5 RETURNING "name"' });
      expect(updated.body).toMatchObject({ records: [{ name: "U5" }], rowCount: 1 });
      const joined = await sql({ statement: 'SELECT a."n" FROM "Users" a JOIN "Users" b ON a."n" = b."n" + 1 WHERE b."n" = 5' });
      expect(joined.body.records).toEqual([{ n: 6 }]);
    });

    it("accepts parameters as text, as the SDK sends them, and null", async () => {
      expect((await sql({ statement: 'SELECT "n" FROM "Users" WHERE "n" = $1', params: ["7"] })).body.records).toEqual([{ n: 7 }]);
      expect((await sql({ statement: "SELECT 1 AS one", params: null })).body.records).toEqual([{ one: 1 }]);
    });
  });
}
