/**
 * A branch whose schema came from a database with Postgres enabled: everything that its clients send and read
 * is named xata_id, xata_version and so on. Tested through the SDK of those databases
 * (`@xata.io/client@next`), through Drizzle and Kysely, and by plain requests.
 */
import { createRequire } from "node:module";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";

const SYSTEM = [
  { name: "xata_id", type: "text", notNull: true, unique: true, defaultValue: "('rec_'::text || (xata_private.xid())::text)", comment: "" },
  { name: "xata_version", type: "int", notNull: true, unique: false, defaultValue: "0", comment: "" },
  { name: "xata_createdat", type: "datetime", notNull: true, unique: false, defaultValue: "now()", comment: "" },
  { name: "xata_updatedat", type: "datetime", notNull: true, unique: false, defaultValue: "now()", comment: "" },
];
const TABLES = [
  {
    name: "users",
    columns: [
      ...SYSTEM,
      { name: "name", type: "string", defaultValue: null, comment: "" },
      { name: "role", type: "text", defaultValue: "'user'::text" },
    ],
  },
  {
    name: "teams",
    columns: [
      ...SYSTEM,
      { name: "name", type: "string" },
      { name: "index", type: "int" },
      { name: "owner", type: "link", link: { table: "users" } },
      { name: "vec", type: "vector", vector: { dimension: 2 } },
    ],
  },
];
const META = { xata_version: 0, xata_createdat: expect.any(String), xata_updatedat: expect.any(String) };
const METADATES = { xata_version: 0, xata_createdat: expect.any(Date), xata_updatedat: expect.any(Date) };

describeWith("clients", "a branch of a database with Postgres enabled", (modules) => {
  const load = createRequire(modules);
  let server: TestServer;
  // biome-ignore lint/suspicious/noExplicitAny: the published clients' types are for generated code
  let xata: any;
  const branch = "/db/app:main";

  beforeAll(async () => {
    server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
    const { XataApiClient } = load("@xata.io/client");
    const host = { main: `http://localhost:${server.port}`, workspaces: `http://{workspaceId}.{region}.localhost:${server.port}` };
    const api = new XataApiClient({ apiKey: "none", host });
    const pathParams = { workspace: "any", region: "any", dbBranchName: "app:main" };
    await api.databases.createDatabase({ pathParams: { workspaceId: "any", dbName: "app" }, body: { region: "any" } });
    const { edits } = await api.migrations.compareBranchWithUserSchema({
      pathParams,
      body: { schema: { tables: structuredClone(TABLES) } },
    });
    await api.migrations.applyBranchSchemaEdit({ pathParams, body: { edits } });
    // The branch now has what the file says.
    const again = await api.migrations.compareBranchWithUserSchema({ pathParams, body: { schema: { tables: structuredClone(TABLES) } } });
    expect(again.edits.operations).toEqual([]);
    const { buildClient } = load("@xata.io/client-next");
    const tables = TABLES.map(({ name, columns }) => ({ name, columns }));
    xata = new (buildClient())({ databaseURL: `http://w.r.localhost:${server.port}/db/app`, apiKey: "none", branch: "main" }, tables);
  });
  afterAll(() => server?.stop());

  test("records are created, read, updated, found and deleted under their names", async () => {
    const ada = await xata.db.users.create({ xata_id: "ada", name: "Ada" });
    expect(ada).toMatchObject({ xata_id: "ada", name: "Ada", role: "user", ...METADATES });
    expect(Object.keys(JSON.parse(JSON.stringify(ada)))).not.toEqual(expect.arrayContaining(["xata"]));
    const bob = await xata.db.users.create({ name: "Bob" });
    expect(bob.xata_id).toMatch(/^rec_[0-9a-v]{20}$/);
    expect(await xata.db.users.update("ada", { name: "Ada L." })).toMatchObject({ xata_version: 1, name: "Ada L." });
    await expect(xata.db.users.updateOrThrow("ada", { name: "no" }, { ifVersion: 0 })).rejects.toThrow();
    expect(await xata.db.users.read(["ada", bob.xata_id])).toMatchObject([{ xata_id: "ada" }, { xata_id: bob.xata_id }]);
    expect(await xata.db.users.createOrReplace({ xata_id: "ada", name: "Ada" })).toMatchObject({ xata_version: 2 });
    expect(await bob.delete()).toMatchObject({ xata_id: bob.xata_id });
    expect(await xata.db.users.create([{ name: "x" }, { name: "y" }])).toMatchObject([{ name: "x", ...METADATES }, { name: "y" }]);
    await xata.db.users.delete(await xata.db.users.filter({ name: { $any: ["x", "y"] } }).getAll());
    expect(await xata.db.users.getAll()).toHaveLength(1);
  });

  test("filters, sorts and columns accept the names, and so do links", async () => {
    for (const [index, id] of ["b", "a", "c"].entries())
      await xata.db.teams.create({ xata_id: id, name: `Team ${id}`, index, owner: "ada", vec: [1, index] });
    const ids = (records: { xata_id: string }[]) => records.map(({ xata_id }) => xata_id);
    expect(
      ids(
        await xata.db.teams
          .filter({ xata_id: { $any: ["a", "b"] } })
          .sort("xata_id", "desc")
          .getAll(),
      ),
    ).toEqual(["b", "a"]);
    expect(ids(await xata.db.teams.sort("xata_createdat", "asc").getAll())).toEqual(["b", "a", "c"]);
    expect(
      ids(await xata.db.teams.filter({ xata_version: 0, "owner.xata_id": "ada", "owner.xata_version": { $ge: 2 } }).getAll()),
    ).toHaveLength(3);
    expect(ids(await xata.db.teams.filter({ xata_createdat: { $gt: new Date(0) } }).getAll())).toHaveLength(3);
    const team = await xata.db.teams.select(["xata_id", "name", "owner.name"]).filter({ xata_id: "a" }).getFirst();
    expect(team).toMatchObject({ xata_id: "a", name: "Team a", owner: { xata_id: "ada", name: "Ada" } });
    expect((await xata.db.teams.read("a")).owner).toMatchObject({ xata_id: "ada" });
    expect(await xata.db.teams.update("a", { owner: { xata_id: "ada" } })).toMatchObject({ owner: { xata_id: "ada" } });
    const page = await xata.db.teams.sort("xata_updatedat", "desc").getPaginated({ pagination: { size: 2 } });
    expect([...ids(page.records), ...ids((await page.nextPage()).records)]).toEqual(["a", "c", "b"]);
  });

  test("transactions, searches, summaries and aggregations as well", async () => {
    const { results } = await xata.transactions.run([
      { insert: { table: "users", record: { xata_id: "tx", name: "Tx" } } },
      { get: { table: "users", id: "tx", columns: ["name", "xata_version"] } },
      { get: { table: "users", id: "tx" } },
      { delete: { table: "users", id: "tx", columns: ["xata_id"] } },
    ]);
    expect(results).toMatchObject([
      { operation: "insert", id: "tx", columns: {} },
      { operation: "get", columns: { name: "Tx", xata_version: 0 } },
      { operation: "get", columns: { xata_id: "tx", name: "Tx", ...META } },
      { operation: "delete", rows: 1, columns: { xata_id: "tx" } },
    ]);
    const { records } = await xata.db.teams.vectorSearch("vec", [1, 2], { size: 1 });
    expect(records).toMatchObject([{ xata_id: "c", xata_table: "teams", xata_score: expect.any(Number), ...METADATES }]);
    const found = await xata.search.all("Team");
    expect(found.records.map(({ table, record }: { table: string; record: object }) => [table, record])).toEqual(
      ["a", "b", "c"].map((id) => [
        "teams",
        expect.objectContaining({ xata_id: id, xata_table: "teams", xata_score: expect.any(Number), xata_highlight: expect.any(Object) }),
      ]),
    );
    const { summaries } = await xata.db.teams.summarize({
      columns: ["owner.xata_id"],
      summaries: { n: { count: "*" }, first: { min: "xata_createdat" } },
    });
    expect(summaries).toMatchObject([{ owner: { xata_id: "ada" }, n: 3, first: expect.any(String) }]);
    expect((await xata.db.teams.aggregate({ n: { uniqueCount: { column: "xata_id" } } })).aggs).toEqual({ n: 3 });
  });

  test("SQL sees the names, reads and writes through them, and keeps the service's columns from being written", async () => {
    const { records, columns } = await xata.sql`SELECT * FROM "teams" WHERE "xata_id" = ${"a"}`;
    expect(records).toMatchObject([{ xata_id: "a", xata_version: 1, name: "Team a", owner: "ada" }]);
    expect(columns.slice(0, 4).map(({ name }: { name: string }) => name)).toEqual([
      "xata_id",
      "xata_version",
      "xata_createdat",
      "xata_updatedat",
    ]);
    const inserted =
      await xata.sql`INSERT INTO "users" ("xata_id", "name") VALUES (${"sql"}, ${"Sql"}) ON CONFLICT ("xata_id") DO UPDATE SET "name" = 'twice' RETURNING "xata_id", "role"`;
    expect(inserted.records).toEqual([{ xata_id: "sql", role: "user" }]);
    await xata.sql`UPDATE "users" SET "name" = 'changed' WHERE "xata_id" = 'sql'`;
    expect(await xata.db.users.read("sql")).toMatchObject({ name: "changed", xata_version: 1 });
    await xata.sql`DELETE FROM "users" WHERE "xata_id" IN (${"sql"}, ${"nobody"})`;
    expect(await xata.db.users.read("sql")).toBeNull();
    await expect(xata.sql`UPDATE "users" SET "xata_version" = 9`).rejects.toThrow(/written by the service/);
    await expect(xata.sql`SELECT "xata.version" FROM "users"`).rejects.toThrow(/xata.version/);
    // The search follows what SQL changed.
    await xata.sql`DELETE FROM "teams" WHERE "xata_id" = 'c'`;
    expect((await xata.db.teams.vectorSearch("vec", [1, 2])).records.map(({ xata_id }: { xata_id: string }) => xata_id)).toEqual([
      "a",
      "b",
    ]);
  });

  test("Drizzle and Kysely", async () => {
    const { drizzle } = load("@xata.io/drizzle");
    const { eq } = load("drizzle-orm");
    const { bigint, pgTable, text } = load("drizzle-orm/pg-core");
    const teams = pgTable("teams", {
      xata_id: text("xata_id").primaryKey(),
      name: text("name"),
      index: bigint("index", { mode: "number" }),
    });
    const db = drizzle(xata);
    await db.insert(teams).values({ xata_id: "d", name: "Drizzle", index: 7 });
    expect(await db.select().from(teams).where(eq(teams.xata_id, "d"))).toEqual([{ xata_id: "d", name: "Drizzle", index: 7 }]);
    const { Kysely } = load("kysely");
    const { XataDialect } = load("@xata.io/kysely");
    const kysely = new Kysely({ dialect: new XataDialect({ xata }) });
    await kysely.updateTable("teams").set({ name: "Kysely" }).where("xata_id", "=", "d").execute();
    expect(await kysely.selectFrom("teams").selectAll().where("xata_id", "=", "d").execute()).toMatchObject([
      { xata_id: "d", name: "Kysely", index: 7, xata_version: 1 },
    ]);
  });

  test("schemas list them; changes of the schema, copies and new names keep them all", async () => {
    const names = async (at: string) =>
      (await server.get(`${at}/tables/users/schema`)).body.columns.map(({ name }: { name: string }) => name);
    expect(await names(branch)).toEqual(["xata_id", "xata_version", "xata_createdat", "xata_updatedat", "name", "role"]);
    await server.post(`${branch}/tables/users/columns`, { name: "age", type: "int" });
    await server.patch(`${branch}/tables/users/columns/role`, { name: "part" });
    await server.delete(`${branch}/tables/users/columns/age`);
    expect((await xata.sql`SELECT "part" FROM "users" WHERE "xata_id" = 'ada'`).records).toEqual([{ part: "user" }]);
    await server.put("/db/app:copy", { from: "main" });
    await server.post("/workspaces/any/dbs/app/rename", { newName: "moved" });
    for (const at of ["/db/moved:main", "/db/moved:copy"]) {
      expect((await server.get(`${at}/tables/users/data/ada`)).body).toMatchObject({ xata_id: "ada", name: "Ada", xata_version: 2 });
      const sql = await server.post(`${at}/sql`, { statement: `SELECT "xata_id", "part" FROM "users"` });
      expect(sql.body.records).toEqual([{ xata_id: "ada", part: "user" }]);
    }
  });

  test("one line converts any branch, and does nothing the second time", async () => {
    await server.put("/db/line:main", {});
    await server.put("/db/line:main/tables/t", { columns: [{ name: "n", type: "int" }] });
    await server.put("/db/line:main/tables/t/data/a", { n: 1 });
    expect((await server.patch("/db/line:main", { systemColumns: "underscored" })).status).toBe(200);
    expect((await server.get("/db/line:main/tables/t/data/a")).body).toEqual({ xata_id: "a", n: 1, ...META });
    expect((await server.post("/db/line:main/tables/t/query", { filter: { id: "a", "xata.version": 0 } })).body.records).toHaveLength(1);
    await server.patch("/db/line:main", { systemColumns: "dotted" });
    expect((await server.get("/db/line:main/tables/t/data/a")).body).toMatchObject({ id: "a", xata: { version: 0 } });
    expect((await server.post("/db/line:main/sql", { statement: 'SELECT "id", "n" FROM "t"' })).body.records).toEqual([{ id: "a", n: 1 }]);
    expect((await server.put("/workspaces/any/dbs/enabled", { postgresEnabled: true })).status).toBe(201);
    await server.put("/db/enabled:main/tables/t", {});
    expect((await server.post("/db/enabled:main/tables/t/data", {})).body).toMatchObject({ xata_id: expect.any(String), xata_version: 0 });
  });
});
