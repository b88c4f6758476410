/**
 * Details that clients of the retired service rely on: texts that they compare, statuses, schemas of
 * databases with Postgres enabled, renaming.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, sdkClient, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("hosted");
});
afterAll(() => world?.stop());

describe("texts that clients compare", () => {
  test("pages that are too large or too far away", async () => {
    const { teams } = world.client.db;
    await expect(teams.getPaginated({ pagination: { size: 1001 } })).rejects.toMatchObject({
      status: 400,
      message: "page size exceeds max limit of 1000",
    });
    await expect(teams.getPaginated({ pagination: { offset: 49_001 } })).rejects.toMatchObject({
      status: 400,
      message: "page offset must not exceed 49000",
    });
    expect((await world.plain("POST", "/tables/teams/query", { page: { size: 0 } })).body.message).toContain("page.size");
  });

  test("SQL parameters that the statement does not use", async () => {
    await expect(world.client.sql`SELECT * FROM teams ORDER BY name ${"ASC"}`).rejects.toThrow(
      "invalid SQL: unused parameters: used 0 of 1 parameters",
    );
  });

  test("tables that do not exist", async () => {
    const message = "table [hosted:main/nope] not found";
    expect(await world.plain("GET", "/tables/nope/data/x")).toMatchObject({ status: 404, body: { message } });
    expect(await world.plain("POST", "/tables/nope/vectorSearch", { column: "v", queryVector: [1] })).toMatchObject({
      status: 404,
      body: { message },
    });
  });
});

describe("branches, tables and ids", () => {
  test("an existing branch is not created again, and one from an unknown branch not at all", async () => {
    expect((await world.plainRoot("PUT", "/db/hosted:other")).status).toBe(201);
    expect(await world.plainRoot("PUT", "/db/hosted:other")).toMatchObject({
      status: 422,
      body: { message: 'Branch "other" of database "hosted" exists already.' },
    });
    expect((await world.plainRoot("PUT", "/db/hosted:more?from=nope", { from: "main" })).status).toBe(400);
    expect((await world.plainRoot("PUT", "/db/hosted:more", { from: "nope" })).status).toBe(400);
    expect((await world.plainRoot("PUT", "/db/nowhere:more?from=main")).status).toBe(404);
    const { body } = await world.plainRoot("GET", "/dbs/hosted");
    expect(body.branches.map(({ name }: { name: string }) => name)).toEqual(["main", "other"]);
  });

  test("a created table is returned with its branch", async () => {
    expect((await world.plain("PUT", "/tables/fresh")).body).toEqual({
      branchName: "hosted:main",
      tableName: "fresh",
      status: "completed",
    });
  });

  test.each(["GET", "PUT", "PATCH", "POST", "DELETE"])("%s of an empty id is a 404, and inserts nothing", async (method) => {
    const body = method === "GET" || method === "DELETE" ? undefined : { name: "must not be" };
    expect((await world.plain(method, "/tables/teams/data/", body)).status).toBe(404);
    expect((await world.plain("GET", "/tables/teams/data/%23")).status).toBe(404);
    expect(await world.client.db.teams.filter({ name: "must not be" }).getFirst()).toBeNull();
  });

  test("a reverse link ordered by createdAt", async () => {
    await world.client.db.users.createOrReplace("owner", { name: "Owner" });
    for (const id of ["first", "second", "third"]) await world.client.db.teams.createOrReplace(id, { name: id, owner: "owner" });
    const columns = [{ name: "<-teams.owner", as: "teams", columns: ["name"], order: [{ column: "createdAt", order: "desc" }] }];
    const { body } = await world.plain("POST", "/tables/users/query", { columns, filter: { id: "owner" } });
    expect(body.records[0].teams.records.map(({ name }: { name: string }) => name)).toEqual(["third", "second", "first"]);
  });
});

describe("schemas", () => {
  const columnsOf = async (table: string) => (await world.plain("GET", `/tables/${table}/schema`)).body.columns;

  test("as databases with Postgres enabled generate them: comments, nulls, defaults as PostgreSQL prints them", async () => {
    const { migrations, table } = world.api;
    const columns = [
      { name: "title", type: "string", notNull: false, unique: false, defaultValue: null, comment: '{"xata.type":"string"}' },
      { name: "role", type: "text", notNull: true, unique: false, defaultValue: "'user'::text", comment: "" },
      { name: "empty", type: "string", defaultValue: "''::character varying", comment: "" },
      { name: "quoted", type: "string", defaultValue: "'it''s'::text" },
      { name: "none", type: "string", defaultValue: "NULL::text" },
      { name: "count", type: "int", defaultValue: "'5'::bigint" },
      { name: "less", type: "int", defaultValue: "'-1'::integer" },
      { name: "ratio", type: "float", defaultValue: "(0.5)::double precision" },
      { name: "on", type: "bool", defaultValue: "true" },
      { name: "made", type: "datetime", notNull: true, defaultValue: "now()" },
      { name: "since", type: "datetime", defaultValue: "'2020-01-02 03:04:05+00'::timestamp with time zone" },
      { name: "tags", type: "multiple", defaultValue: "'{a,\"b c\"}'::text[]" },
      { name: "config", type: "json", defaultValue: `'{"a": 1}'::jsonb` },
    ];
    await table.createTable({ pathParams: { ...world.branchPath, tableName: "generated" } });
    await table.setTableSchema({ pathParams: { ...world.branchPath, tableName: "generated" }, body: { columns: columns as never } });
    expect(await columnsOf("generated")).toEqual([
      { name: "title", type: "string", comment: '{"xata.type":"string"}' },
      { name: "role", type: "text", notNull: true, defaultValue: "user" },
      { name: "empty", type: "string", defaultValue: "" },
      { name: "quoted", type: "string", defaultValue: "it's" },
      { name: "none", type: "string" },
      { name: "count", type: "int", defaultValue: "5" },
      { name: "less", type: "int", defaultValue: "-1" },
      { name: "ratio", type: "float", defaultValue: "0.5" },
      { name: "on", type: "bool", defaultValue: "true" },
      { name: "made", type: "datetime", notNull: true, defaultValue: "now" },
      { name: "since", type: "datetime", defaultValue: "2020-01-02T03:04:05+00:00" },
      { name: "tags", type: "multiple", defaultValue: '["a","b c"]' },
      { name: "config", type: "json", defaultValue: '{"a": 1}' },
    ]);
    const { body } = await world.plain("POST", "/tables/generated/data?columns=*", {});
    expect(body).toMatchObject({
      role: "user",
      empty: "",
      quoted: "it's",
      count: 5,
      less: -1,
      ratio: 0.5,
      on: true,
      tags: ["a", "b c"],
      config: { a: 1 },
    });
    // Applying the same schema again changes nothing.
    const { schema } = (await world.plain("GET", "/schema")).body as { schema: { tables: { name: string }[] } };
    const tables = schema.tables.map((given) => (given.name === "generated" ? { ...given, columns } : given));
    const { edits } = await migrations.compareBranchWithUserSchema({
      pathParams: world.branchPath,
      body: { schema: { tables: tables as never } },
    });
    expect(edits.operations).toEqual([]);
  });

  test.each([
    ["text", "gen_random_uuid()"],
    ["string", "(now())::text"],
    ["string", "upper('x'::text)"],
    ["int", "nextval('things_id_seq'::regclass)"],
  ])("a default of a %s column that is an SQL expression (%s) is refused, not taken for a text", async (type, defaultValue) => {
    expect(await world.plain("PUT", "/tables/computed", { columns: [{ name: "c", type, defaultValue }] })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining("SQL expression") },
    });
  });

  test("texts that only look like SQL stay texts", async () => {
    const columns = [
      { name: "a", type: "string", defaultValue: "'user'" },
      { name: "b", type: "text", defaultValue: "a :: b (c)" },
      { name: "c", type: "string", defaultValue: "null" },
    ];
    expect((await world.plain("PUT", "/tables/literal", { columns })).status).toBe(201);
    expect(await columnsOf("literal")).toEqual(columns);
  });

  test.each(["file", "file[]"])("a column of type %s gets a message that says what to do instead", async (type) => {
    const message = expect.stringContaining("Keep files in an object store");
    expect(await world.plain("PUT", "/tables/files", { columns: [{ name: "f", type }] })).toMatchObject({ status: 400, body: { message } });
    const operations = [{ addColumn: { table: "teams", column: { name: "f", type } } }];
    expect(await world.plain("POST", "/schema/update", { operations })).toMatchObject({ status: 400, body: { message } });
  });

  test("responses name the links that point to a table, as the code generator writes them into files", async () => {
    const { schema } = await world.api.branch.getBranchDetails({ pathParams: world.branchPath });
    const revLinks = Object.fromEntries(schema.tables.map((table) => [table.name, table.revLinks]));
    expect(revLinks).toMatchObject({ users: [{ table: "teams", column: "owner" }], teams: [{ table: "users", column: "team" }] });
    expect(schema.tables.find(({ name }) => name === "colours")).not.toHaveProperty("revLinks");
  });
});

describe("renaming a database", () => {
  test("keeps everything: records, history, the change feed, and later changes", async () => {
    const { databases } = world.api;
    const dbName = "before";
    await databases.createDatabase({ pathParams: { workspaceId: "any", dbName }, body: { region: "any" } });
    const columns = [{ name: "v", type: "vector", vector: { dimension: 2 } }];
    await world.plainRoot("PUT", "/db/before:main/tables/points", { columns });
    await world.plainRoot("PUT", "/db/before:main/tables/points/data/a", { v: [1, 0] });
    await world.plainRoot("PUT", "/db/before:dev", { from: "main" });
    const history = (await world.plainRoot("POST", "/db/before:main/schema/history", {})).body.logs;

    expect(await databases.renameDatabase({ pathParams: { workspaceId: "any", dbName }, body: { newName: "after" } })).toMatchObject({
      name: "after",
      createdAt: expect.any(String),
    });
    expect((await world.plainRoot("GET", "/dbs/before")).status).toBe(404);
    expect((await world.plainRoot("GET", "/db/before:main/tables/points/data/a")).status).toBe(404);
    expect((await world.plainRoot("GET", "/dbs/after")).body.branches.map(({ name }: { name: string }) => name)).toEqual(["dev", "main"]);
    expect((await world.plainRoot("POST", "/db/after:main/schema/history", {})).body.logs).toEqual(history);
    await world.plainRoot("PUT", "/db/after:main/tables/points/data/b", { v: [0, 1] });
    const search = { column: "v", queryVector: [0, 1], consistency: "strong" };
    expect((await world.plainRoot("POST", "/db/after:main/tables/points/vectorSearch", search)).body).toMatchObject({
      totalCount: 2,
      results: [{ id: "b" }, { id: "a" }],
    });
    expect((await sdkClient(world.port, "after").sql`SELECT "id" FROM "points" ORDER BY "id"`).records).toEqual([{ id: "a" }, { id: "b" }]);
    // The old name can be used again.
    expect((await world.plainRoot("PUT", "/db/before:main")).status).toBe(201);
  });

  test("to a name in use is a 422, of an unknown one a 404, and nothing is changed", async () => {
    const rename = (dbName: string, newName: string) =>
      world.api.databases.renameDatabase({ pathParams: { workspaceId: "any", dbName }, body: { newName } });
    await expect(rename("before", "after")).rejects.toMatchObject({ status: 422 });
    await expect(rename("nobody", "somebody")).rejects.toMatchObject({ status: 404 });
    await expect(rename("before", "not a name")).rejects.toMatchObject({ status: 400 });
    expect((await world.plainRoot("GET", "/dbs/before")).status).toBe(200);
    expect((await world.plainRoot("GET", "/db/after:main/tables/points/data/a")).status).toBe(200);
  });
});
