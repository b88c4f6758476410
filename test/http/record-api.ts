/** Every row of the API's tables about databases, branches, schemas, records, queries, SQL and transactions, over real HTTP; run on both databases. */
import { beforeAll, describe, expect, it } from "vitest";
import type { TestServer } from "../support/server.ts";

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const NEW_METADATA = { version: 0, createdAt: expect.stringMatching(TIMESTAMP), updatedAt: expect.stringMatching(TIMESTAMP) };
const REQUEST_ID = expect.stringMatching(/^[\w-]{8,}$/);

export function describeRecordApi(server: () => TestServer): void {
  const api = {
    get: (path: string) => server().get(path),
    post: (path: string, body: unknown) => server().post(path, body),
    put: (path: string, body?: unknown) => server().put(path, body),
    patch: (path: string, body: unknown) => server().patch(path, body),
    delete: (path: string) => server().delete(path),
  };

  describe("databases and branches", () => {
    it("a branch is created with its database (201), and answered as it is the second time (200)", async () => {
      const created = await api.put("/db/shop:main", {});
      expect(created).toMatchObject({ status: 201, body: { databaseName: "shop", branchName: "main", status: "completed" } });
      expect((await api.put("/db/shop:main")).status).toBe(422);
    });

    it("databases and their branches are listed", async () => {
      await api.put("/db/lists:main");
      await api.put("/db/lists:dev");
      const databases = await api.get("/dbs");
      expect(databases.status).toBe(200);
      expect(databases.body.databases).toContainEqual({ name: "lists", createdAt: expect.stringMatching(TIMESTAMP) });
      const branches = await api.get("/dbs/lists");
      expect(branches.status).toBe(200);
      expect(branches.body.databaseName).toBe("lists");
      expect(branches.body.branches.map((branch: { name: string }) => branch.name).toSorted()).toEqual(["dev", "main"]);
    });

    it("a branch made from another has its tables and records, and its own life from then on", async () => {
      await api.put("/db/copies:main");
      await api.put("/db/copies:main/tables/t", { columns: [{ name: "n", type: "int" }] });
      await api.put("/db/copies:main/tables/t/data/a", { n: 1 });
      expect((await api.put("/db/copies:dev", { from: "main" })).status).toBe(201);
      expect((await api.put("/db/copies:test?from=main")).status).toBe(201);
      await api.patch("/db/copies:dev/tables/t/data/a", { n: 2 });
      expect((await api.get("/db/copies:dev/tables/t/data/a")).body.n).toBe(2);
      expect((await api.get("/db/copies:main/tables/t/data/a")).body.n).toBe(1);
      expect((await api.get("/db/copies:test/tables/t/data/a")).body.n).toBe(1);
    });

    it("a copy onto a branch that exists is refused (422), one of a branch that does not as well (400)", async () => {
      await api.put("/db/copyfail:main");
      await api.put("/db/copyfail:dev");
      expect(await api.put("/db/copyfail:dev", { from: "main" })).toMatchObject({
        status: 422,
        body: { message: expect.stringContaining("dev") },
      });
      expect(await api.put("/db/copyfail:new", { from: "nothing" })).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining("nothing") },
      });
    });

    it("a branch says its schema and state", async () => {
      await api.put("/db/state:main");
      await api.put("/db/state:main/tables/t", { columns: [{ name: "s", type: "string" }] });
      const { status, body } = await api.get("/db/state:main");
      expect(status).toBe(200);
      expect(body).toMatchObject({
        databaseName: "state",
        branchName: "main",
        createdAt: expect.stringMatching(TIMESTAMP),
        state: "active",
        schema: { tables: [{ name: "t", columns: [{ name: "s", type: "string" }] }] },
      });
      expect((await api.get("/db/state:main/schema")).body).toEqual({ schema: body.schema });
    });

    it("a dropped branch is gone, with its tables", async () => {
      await api.put("/db/drops:main");
      await api.put("/db/drops:dev");
      await api.put("/db/drops:dev/tables/t");
      expect(await api.delete("/db/drops:dev")).toMatchObject({ status: 200, body: { status: "completed" } });
      expect((await api.get("/db/drops:dev/tables/t/schema")).status).toBe(404);
      expect((await api.get("/db/drops:dev")).status).toBe(404);
      expect((await api.delete("/db/drops:dev")).status).toBe(404);
    });
  });

  describe("tables and columns", () => {
    beforeAll(async () => {
      await api.put("/db/schemas:main");
    });
    const base = "/db/schemas:main/tables";

    it("a table is created (201) with columns of every type", async () => {
      const columns = [
        { name: "a", type: "string" },
        { name: "b", type: "text" },
        { name: "c", type: "email" },
        { name: "d", type: "int", notNull: true, defaultValue: "7" },
        { name: "e", type: "float" },
        { name: "f", type: "bool" },
        { name: "g", type: "datetime" },
        { name: "h", type: "multiple" },
        { name: "i", type: "json" },
        { name: "j", type: "link", link: { table: "every" } },
        { name: "k", type: "vector", vector: { dimension: 3 } },
        { name: "l", type: "string", unique: true },
      ];
      const created = await api.put(`${base}/every`, { columns });
      expect(created).toMatchObject({ status: 201, body: { branchName: "main", tableName: "every", status: "completed" } });
      const schema = await api.get(`${base}/every/schema`);
      expect(schema.body.columns).toMatchObject(columns);
      expect((await api.get(`${base}/every/columns`)).body).toEqual(schema.body);
    });

    it("a table that exists is not created again (422)", async () => {
      await api.put(`${base}/twice`);
      expect(await api.put(`${base}/twice`)).toMatchObject({
        status: 422,
        body: { id: REQUEST_ID, message: expect.stringContaining("twice") },
      });
    });

    it("a table is renamed, and dropped", async () => {
      await api.put(`${base}/old`);
      expect(await api.patch(`${base}/old`, { name: "new" })).toMatchObject({
        status: 200,
        body: { status: "completed", migrationID: expect.any(String) },
      });
      expect((await api.get(`${base}/old/schema`)).status).toBe(404);
      expect((await api.get(`${base}/new/schema`)).status).toBe(200);
      expect(await api.delete(`${base}/new`)).toMatchObject({ status: 200, body: { status: "completed" } });
      expect((await api.get(`${base}/new/schema`)).status).toBe(404);
      expect((await api.delete(`${base}/new`)).status).toBe(404);
    });

    it("a column is added, read, renamed with its values, and dropped", async () => {
      await api.put(`${base}/cols`);
      expect((await api.post(`${base}/cols/columns`, { name: "n", type: "int" })).status).toBe(200);
      await api.put(`${base}/cols/data/x`, { n: 5 });
      expect((await api.get(`${base}/cols/columns/n`)).body).toMatchObject({ name: "n", type: "int" });
      expect((await api.patch(`${base}/cols/columns/n`, { name: "m" })).status).toBe(200);
      expect((await api.get(`${base}/cols/data/x`)).body).toMatchObject({ id: "x", m: 5 });
      expect((await api.delete(`${base}/cols/columns/m`)).status).toBe(200);
      expect((await api.get(`${base}/cols/columns/m`)).status).toBe(404);
      expect((await api.get(`${base}/cols/data/x`)).body).not.toHaveProperty("m");
    });

    it("a table's columns are set as a whole: missing ones are added, surplus ones dropped, a change of type is refused", async () => {
      await api.put(`${base}/set`, {
        columns: [
          { name: "a", type: "int" },
          { name: "b", type: "int" },
        ],
      });
      const columns = [
        { name: "b", type: "int" },
        { name: "c", type: "text" },
      ];
      expect((await api.put(`${base}/set/schema`, { columns })).status).toBe(200);
      expect((await api.get(`${base}/set/schema`)).body.columns).toMatchObject(columns);
      const refused = await api.put(`${base}/set/schema`, { columns: [{ name: "b", type: "text" }] });
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(refused.status).toBeLessThan(500);
      expect((await api.get(`${base}/set/schema`)).body.columns).toMatchObject(columns);
    });

    it.each([
      ["a type that there is not", { name: "x", type: "blob" }, 'type: expected "string", "text"'],
      ["a vector without dimension", { name: "x", type: "vector" }, "vector"],
      [
        "a vector of dimension 1",
        { name: "x", type: "vector", vector: { dimension: 1 } },
        "vector.dimension: expected an integer from 2 to 10,000, got 1",
      ],
      [
        "a vector of dimension 10,001",
        { name: "x", type: "vector", vector: { dimension: 10_001 } },
        "vector.dimension: expected an integer from 2 to 10,000, got 10001",
      ],
      ["a link without table", { name: "x", type: "link" }, "link"],
      ["a name with a quote", { name: 'x"y', type: "int" }, "name: expected a string that matches"],
      ["a member that there is not", { name: "x", type: "int", size: 3 }, "size: is not known here"],
    ])("%s is refused (400), and no column comes of it", async (_what, column, message) => {
      await api.put(`${base}/faulty`);
      expect(await api.post(`${base}/faulty/columns`, column)).toMatchObject({
        status: 400,
        body: { id: REQUEST_ID, message: expect.stringContaining(message) },
      });
      expect((await api.get(`${base}/faulty/schema`)).body.columns).toEqual([]);
    });
  });

  describe("records", () => {
    const data = "/db/records:main/tables/people/data";
    beforeAll(async () => {
      await api.put("/db/records:main");
      const columns = [
        { name: "name", type: "string" },
        { name: "age", type: "int" },
        { name: "code", type: "string", unique: true },
        { name: "email", type: "email" },
        { name: "lab", type: "vector", vector: { dimension: 2 } },
      ];
      await api.put("/db/records:main/tables/people", { columns });
    });

    it("an insert is 201 with the new id and metadata, and with columns the record", async () => {
      const { status, body } = await api.post(data, { name: "Ada", age: 36 });
      expect(status).toBe(201);
      expect(body).toEqual({ id: expect.stringMatching(/^rec_[0-9a-v]{20}$/), xata: NEW_METADATA });
      const full = await api.post(`${data}?columns=*`, { name: "Ada", lab: [1, 0.5] });
      expect(full.body).toMatchObject({ name: "Ada", lab: [1, 0.5], xata: { version: 0 } });
      const some = await api.post(`${data}?columns=name,age`, { name: "Ada", age: 1, code: "only" });
      expect(some.body).toEqual({ id: expect.any(String), name: "Ada", age: 1, xata: NEW_METADATA });
    });

    it("a record is read, with the columns asked for", async () => {
      await api.put(`${data}/read`, { name: "Grace", age: 85 });
      expect((await api.get(`${data}/read`)).body).toMatchObject({ id: "read", name: "Grace", age: 85, xata: NEW_METADATA });
      expect((await api.get(`${data}/read?columns=name`)).body).toEqual({ id: "read", name: "Grace", xata: NEW_METADATA });
    });

    it("PUT creates (201), then replaces (200) and forgets what is not given", async () => {
      expect((await api.put(`${data}/put`, { name: "a", age: 1 })).status).toBe(201);
      const replaced = await api.put(`${data}/put?columns=*`, { name: "b" });
      expect(replaced).toMatchObject({ status: 200, body: { id: "put", name: "b", xata: { version: 1 } } });
      expect(replaced.body.age ?? null).toBeNull();
    });

    it("PATCH changes what is given (200), and is 404 where there is nothing", async () => {
      await api.put(`${data}/patch`, { name: "a", age: 1 });
      expect(await api.patch(`${data}/patch?columns=*`, { age: 2 })).toMatchObject({
        status: 200,
        body: { name: "a", age: 2, xata: { version: 1 } },
      });
      expect(await api.patch(`${data}/nobody`, { age: 2 })).toMatchObject({
        status: 404,
        body: { id: REQUEST_ID, message: expect.stringContaining("nobody") },
      });
      expect((await api.get(`${data}/nobody`)).status).toBe(404);
    });

    it("POST with an id creates (201), then updates (200)", async () => {
      expect((await api.post(`${data}/upsert`, { name: "a", age: 1 })).status).toBe(201);
      expect((await api.post(`${data}/upsert`, { age: 2 })).status).toBe(200);
      expect((await api.get(`${data}/upsert`)).body).toMatchObject({ name: "a", age: 2, xata: { version: 1 } });
    });

    it("createOnly and ifVersion conflicts are 422 and change nothing", async () => {
      await api.put(`${data}/conflict`, { name: "first" });
      expect((await api.put(`${data}/conflict?createOnly=true`, { name: "second" })).status).toBe(422);
      expect((await api.put(`${data}/conflict?ifVersion=3`, { name: "second" })).status).toBe(422);
      expect((await api.patch(`${data}/conflict?ifVersion=3`, { name: "second" })).status).toBe(422);
      expect((await api.post(`${data}/conflict?ifVersion=3`, { name: "second" })).status).toBe(422);
      expect((await api.get(`${data}/conflict`)).body).toMatchObject({ name: "first", xata: { version: 0 } });
      expect((await api.patch(`${data}/conflict?ifVersion=0`, { name: "second" })).status).toBe(200);
      expect((await api.get(`${data}/conflict`)).body).toMatchObject({ name: "second", xata: { version: 1 } });
    });

    it("DELETE is 204 without a body, with columns 200 and the removed record, and then 404", async () => {
      await api.put(`${data}/delete`, { name: "gone" });
      const removed = await api.delete(`${data}/delete`);
      expect(removed.status).toBe(204);
      expect(removed.text).toBe("");
      await api.put(`${data}/delete2`, { name: "gone", age: 3 });
      expect(await api.delete(`${data}/delete2?columns=name`)).toMatchObject({ status: 200, body: { id: "delete2", name: "gone" } });
      await api.put(`${data}/delete3`, { name: "gone", age: 3 });
      expect(await api.delete(`${data}/delete3?columns=*`)).toMatchObject({ status: 200, body: { id: "delete3", name: "gone", age: 3 } });
      for (const id of ["delete", "delete2", "delete3"]) {
        expect(await api.delete(`${data}/${id}`)).toMatchObject({
          status: 404,
          body: { id: REQUEST_ID, message: expect.stringContaining(id) },
        });
        expect((await api.get(`${data}/${id}`)).status).toBe(404);
      }
    });

    it.each([
      ["/db/nodb:main/tables/people/data/x", "nodb"],
      ["/db/records:nobranch/tables/people/data/x", "nobranch"],
      ["/db/records:main/tables/notable/data/x", "notable"],
    ])("what is missing is 404 and named: %s", async (path, missing) => {
      for (const answer of [
        await api.get(path),
        await api.delete(path),
        await api.put(path, {}),
        await api.patch(path, {}),
        await api.post(path, {}),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { id: REQUEST_ID, message: expect.stringContaining(missing) } });
      }
    });

    it("ids with dots, tildes, colons and percent-encoding are themselves", async () => {
      for (const id of ["a.b", "a~b", "a:b", "A-b_c"]) {
        expect((await api.put(`${data}/${encodeURIComponent(id)}`, { name: id })).status).toBe(201);
        expect((await api.get(`${data}/${encodeURIComponent(id)}`)).body).toMatchObject({ id, name: id });
      }
    });

    it("an id that SQL wrote is found and deleted, whatever it is", async () => {
      const id = "a/b ü%";
      const inserted = await api.post("/db/records:main/sql", {
        statement: 'INSERT INTO "people" ("id", "name") VALUES ($1, $2)',
        params: [id, "odd"],
      });
      expect(inserted).toMatchObject({ status: 200, body: { rowCount: 1 } });
      expect((await api.get(`${data}/${encodeURIComponent(id)}`)).body).toMatchObject({ id, name: "odd" });
      expect((await api.delete(`${data}/${encodeURIComponent(id)}`)).status).toBe(204);
    });

    it("bulk inserts up to 1,000 records at once", async () => {
      const records = Array.from({ length: 1000 }, (_, i) => ({ name: `bulk ${i}`, age: i }));
      const { status, body } = await api.post("/db/records:main/tables/people/bulk", { records });
      expect(status).toBe(200);
      expect(body.recordIDs).toHaveLength(1000);
      expect(new Set(body.recordIDs).size).toBe(1000);
      expect((await api.get(`${data}/${body.recordIDs[999]}`)).body).toMatchObject({ name: "bulk 999", age: 999 });
      const full = await api.post("/db/records:main/tables/people/bulk?columns=name", { records: [{ name: "one" }] });
      expect(full.body.records).toMatchObject([{ id: expect.any(String), name: "one", xata: NEW_METADATA }]);
    });

    it("bulk refuses 1,001 records, and all of them when one is faulty", async () => {
      const count = async () =>
        (await api.post("/db/records:main/sql", { statement: 'SELECT count(*)::int AS n FROM "people"' })).body.records[0].n;
      const before = await count();
      const tooMany = await api.post("/db/records:main/tables/people/bulk", {
        records: Array.from({ length: 1001 }, () => ({ name: "x" })),
      });
      expect(tooMany).toMatchObject({ status: 400, body: { message: expect.stringContaining("records: expected at most 1,000") } });
      const faulty = await api.post("/db/records:main/tables/people/bulk", { records: [{ name: "ok" }, { age: "old" }] });
      expect(faulty).toMatchObject({
        status: 400,
        body: { id: REQUEST_ID, errors: [{ index: 1, message: expect.stringContaining("age") }] },
      });
      const notObject = await api.post("/db/records:main/tables/people/bulk", { records: [{ name: "ok" }, 5] });
      expect(notObject).toMatchObject({
        status: 400,
        body: { id: REQUEST_ID, errors: [{ index: 1, message: expect.stringContaining("records[1]: expected an object, got 5") }] },
      });
      expect(await count()).toBe(before);
    });

    it.each([
      ["an unknown column", { nothing: 1 }, "nothing"],
      ["a text for a number", { age: "old" }, "age"],
      ["a fraction for an int", { age: 1.5 }, "age"],
      ["a faulty email", { email: "nobody" }, "email"],
      ["a vector of the wrong dimension", { lab: [1, 2, 3] }, "lab"],
      ["a vector with a text", { lab: [1, "x"] }, "lab"],
      ["a vector beyond float32", { lab: [1, 1e300] }, "lab"],
      ["a list for a record", [], "expected an object"],
    ])("%s is refused (400), and nothing is inserted", async (_what, record, message) => {
      for (const answer of [
        await api.post(data, record),
        await api.put(`${data}/refused`, record),
        await api.post(`${data}/refused`, record),
      ]) {
        expect(answer).toMatchObject({ status: 400, body: { id: REQUEST_ID, message: expect.stringContaining(message) } });
      }
      expect((await api.get(`${data}/refused`)).status).toBe(404);
    });

    it("a unique value that is there already is refused (400), and the column named", async () => {
      await api.put(`${data}/unique1`, { code: "same" });
      expect(await api.put(`${data}/unique2`, { code: "same" })).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining("code") },
      });
      expect((await api.get(`${data}/unique2`)).status).toBe(404);
    });
  });

  describe("query", () => {
    const query = (body?: unknown) => api.post("/db/queries:main/tables/t/query", body);
    beforeAll(async () => {
      await api.put("/db/queries:main");
      await api.put("/db/queries:main/tables/t", {
        columns: [
          { name: "n", type: "int" },
          { name: "s", type: "string" },
        ],
      });
      await api.post("/db/queries:main/tables/t/bulk", {
        records: Array.from({ length: 50 }, (_, n) => ({ n, s: n % 2 === 0 ? "even" : "odd" })),
      });
    });

    it("gives 20 records with all columns when nothing is asked, and leads on by its cursor", async () => {
      const first = await query();
      expect(first.status).toBe(200);
      expect(first.body.records).toHaveLength(20);
      expect(first.body.records[0]).toMatchObject({
        id: expect.any(String),
        n: expect.any(Number),
        s: expect.any(String),
        xata: { version: 0 },
      });
      expect(first.body.meta.page).toEqual({ cursor: expect.any(String), more: true, size: 20 });
    });

    it("filters, sorts, selects and pages", async () => {
      const request = { filter: { s: "odd", n: { $ge: 10, $lt: 20 } }, sort: { n: "desc" }, columns: ["n"], page: { size: 3 } };
      const first = await query(request);
      expect(first.body.records.map(({ n }: { n: number }) => n)).toEqual([19, 17, 15]);
      expect(first.body.records[0]).not.toHaveProperty("s");
      const second = await query({ columns: ["n"], page: { size: 3, after: first.body.meta.page.cursor } });
      expect(second.body.records.map(({ n }: { n: number }) => n)).toEqual([13, 11]);
      expect(second.body.meta.page.more).toBe(false);
    });

    it.each([
      [{ filter: { n: { $near: 1 } } }, "$near"],
      [{ filter: { nothing: 1 } }, "nothing"],
      [{ filter: 5 }, "filter: expected an object, got 5"],
      [{ sort: { n: "up" } }, "sort"],
      [{ page: { size: 0 } }, "page.size: expected an integer from 1 to 1,000, got 0"],
      [{ page: { size: 1001 } }, "page.size: expected an integer from 1 to 1,000, got 1001"],
      [{ page: { after: "nonsense" } }, "after"],
      [{ columns: ["nothing"] }, "nothing"],
      [{ limit: 5 }, 'limit: is not known here; expected "filter", "sort", "page", "columns" or "consistency"'],
    ])("%j is refused (400) with the place of the fault", async (body, message) => {
      expect(await query(body)).toMatchObject({ status: 400, body: { id: REQUEST_ID, message: expect.stringContaining(message) } });
    });
  });

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

    it("answers objects or lists, with the columns and their PostgreSQL types", async () => {
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

    it("takes INSERT, UPDATE, DELETE, RETURNING, joins, CTEs and aggregates", async () => {
      const statement =
        'WITH gone AS (DELETE FROM "Users" WHERE "n" < $1 RETURNING "n"), counted AS (SELECT count(*)::int AS c FROM gone) SELECT c FROM counted';
      expect((await sql({ statement, params: [2] })).body.records).toEqual([{ c: 2 }]);
      const updated = await sql({ statement: 'UPDATE "Users" SET "name" = upper("name") WHERE "n" = 5 RETURNING "name"' });
      expect(updated.body).toMatchObject({ records: [{ name: "U5" }], rowCount: 1 });
      const joined = await sql({ statement: 'SELECT a."n" FROM "Users" a JOIN "Users" b ON a."n" = b."n" + 1 WHERE b."n" = 5' });
      expect(joined.body.records).toEqual([{ n: 6 }]);
    });

    it("takes parameters as text, as the SDK sends them, and null for none", async () => {
      expect((await sql({ statement: 'SELECT "n" FROM "Users" WHERE "n" = $1', params: ["7"] })).body.records).toEqual([{ n: 7 }]);
      expect((await sql({ statement: "SELECT 1 AS one", params: null })).body.records).toEqual([{ one: 1 }]);
    });

    it("cuts an answer of more than 1,000 rows and says so", async () => {
      const { body } = await sql({ statement: 'SELECT a."n" FROM "Users" a CROSS JOIN (VALUES (1), (2)) b (x) ORDER BY 1' });
      expect(body.records).toHaveLength(1000);
      expect(body.warning).toEqual(expect.stringMatching(/1,?000/));
    });
  });

  describe("transactions", () => {
    const run = (operations: unknown) => api.post("/db/transactions:main/transaction", { operations });
    const data = "/db/transactions:main/tables/t/data";
    beforeAll(async () => {
      await api.put("/db/transactions:main");
      await api.put("/db/transactions:main/tables/t", { columns: [{ name: "n", type: "int" }] });
    });

    it("applies its operations in order, later ones seeing earlier ones", async () => {
      const { status, body } = await run([
        { insert: { table: "t", record: { id: "a", n: 1 } } },
        { update: { table: "t", id: "a", fields: { n: 2 }, columns: ["n"] } },
        { get: { table: "t", id: "a", columns: ["n"] } },
        { delete: { table: "t", id: "a", columns: ["n"] } },
        { get: { table: "t", id: "a" } },
        { delete: { table: "t", id: "a" } },
        { insert: { table: "t", record: { n: 9 } } },
      ]);
      expect(status).toBe(200);
      expect(body.results).toMatchObject([
        { operation: "insert", id: "a", rows: 1 },
        { operation: "update", id: "a", rows: 1, columns: { n: 2 } },
        { operation: "get", columns: { n: 2 } },
        { operation: "delete", rows: 1, columns: { n: 2 } },
        { operation: "get", columns: {} },
        { operation: "delete", rows: 0 },
        { operation: "insert", id: expect.stringMatching(/^rec_/), rows: 1 },
      ]);
      expect(body.results[4].columns).toEqual({});
    });

    it("an empty list gives no results", async () => {
      expect(await run([])).toMatchObject({ status: 200, body: { results: [] } });
    });

    it.each([
      ["a delete of nothing with failIfMissing", { delete: { table: "t", id: "none", failIfMissing: true } }, "none"],
      ["an update of nothing", { update: { table: "t", id: "none", fields: { n: 1 } } }, "none"],
      ["an insert with createOnly onto a record", { insert: { table: "t", record: { id: "there" }, createOnly: true } }, "there"],
      ["an insert with another version", { insert: { table: "t", record: { id: "there" }, ifVersion: 5 } }, "version"],
      ["an update with another version", { update: { table: "t", id: "there", fields: {}, ifVersion: 5 } }, "version"],
      ["an unknown table", { insert: { table: "nothing", record: {} } }, "nothing"],
      ["an unknown column", { insert: { table: "t", record: { nothing: 1 } } }, "nothing"],
      ["an operation that there is not", { drop: { table: "t" } }, "operations[1].drop: is not known here"],
      [
        "two operations in one",
        { get: { table: "t", id: "a" }, delete: { table: "t", id: "a" } },
        "operations[1]: expected an object with exactly one of",
      ],
      ["no operation", {}, "operations[1]: expected an object with exactly one of"],
      ["an operation without table", { delete: { id: "a" } }, "operations[1].delete.table: is required"],
    ])("%s undoes everything (400) and is named by its index", async (_what, operation, message) => {
      await api.put(`${data}/there`, { n: 1 });
      const answer = await run([{ insert: { table: "t", record: { id: "undone", n: 1 } } }, operation]);
      expect(answer).toMatchObject({
        status: 400,
        body: { id: REQUEST_ID, errors: [{ index: 1, message: expect.stringContaining(message) }] },
      });
      expect((await api.get(`${data}/undone`)).status).toBe(404);
    });

    it("an update with upsert creates, an insert onto a record replaces it", async () => {
      const { body } = await run([
        { update: { table: "t", id: "up", fields: { n: 1 }, upsert: true } },
        { insert: { table: "t", record: { id: "up" } } },
        { get: { table: "t", id: "up", columns: ["n", "xata.version"] } },
      ]);
      expect(body.results[2].columns.n ?? null).toBeNull();
    });

    it("takes 1,000 operations and refuses 1,001", async () => {
      const deletes = (count: number) => Array.from({ length: count }, (_, i) => ({ delete: { table: "t", id: `no${i}` } }));
      expect((await run(deletes(1000))).body.results).toHaveLength(1000);
      expect(await run(deletes(1001))).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining("operations: expected at most 1,000 elements, got 1,001") },
      });
    });

    it("deletes 1,000 records in one", async () => {
      const { body } = await api.post("/db/transactions:main/tables/t/bulk", { records: Array.from({ length: 1000 }, (_, n) => ({ n })) });
      const deleted = await run(body.recordIDs.map((id: string) => ({ delete: { table: "t", id, failIfMissing: true } })));
      expect(deleted.status).toBe(200);
      expect(deleted.body.results.every(({ rows }: { rows: number }) => rows === 1)).toBe(true);
      expect((await api.get(`${data}/${body.recordIDs[500]}`)).status).toBe(404);
    });
  });
}
