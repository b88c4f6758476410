/** Setup by code: tables, columns and schema edits through the published SDK's XataApiClient. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, REGION, WORKSPACE, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("shaping");
});
afterAll(() => world?.stop());

const at = (database: string, branch = "main") => ({ workspace: WORKSPACE, region: REGION, dbBranchName: `${database}:${branch}` });
const create = (dbName: string, body: object = {}) =>
  world.api.databases.createDatabase({ pathParams: { workspaceId: WORKSPACE, dbName }, body: { region: REGION, ...body } });

describe("tables and columns", () => {
  const table = (tableName: string) => ({ pathParams: { ...at("columns"), tableName } });
  beforeAll(async () => {
    await create("columns");
  });

  test("create, list columns of every type, rename, drop", async () => {
    expect(await world.api.table.createTable(table("things"))).toMatchObject({
      branchName: "columns:main",
      tableName: "things",
      status: "completed",
    });
    await world.api.table.createTable(table("others"));
    const columns = [
      { name: "a", type: "string", notNull: true, defaultValue: "x" },
      { name: "b", type: "text" },
      { name: "c", type: "email", unique: true },
      { name: "d", type: "int" },
      { name: "e", type: "float" },
      { name: "f", type: "bool" },
      { name: "g", type: "datetime" },
      { name: "h", type: "multiple" },
      { name: "i", type: "json" },
      { name: "j", type: "link", link: { table: "others" } },
      { name: "k", type: "vector", vector: { dimension: 4 } },
    ];
    const answer = await world.api.table.setTableSchema({ ...table("things"), body: { columns } });
    expect(answer).toMatchObject({ status: "completed", migrationID: expect.stringMatching(/./), parentMigrationID: expect.any(String) });
    expect((await world.api.table.getTableSchema(table("things"))).columns).toEqual(columns);
    expect((await world.api.table.getTableColumns(table("things"))).columns).toEqual(columns);
    expect(await world.api.table.getColumn({ pathParams: { ...table("things").pathParams, columnName: "k" } })).toEqual(columns[10]);

    await world.api.table.addTableColumn({ ...table("things"), body: { name: "late", type: "int" } });
    await world.api.table.updateColumn({ pathParams: { ...table("things").pathParams, columnName: "late" }, body: { name: "later" } });
    await world.api.table.deleteColumn({ pathParams: { ...table("things").pathParams, columnName: "b" } });
    expect((await world.api.table.getTableColumns(table("things"))).columns.map(({ name }) => name)).toEqual(
      "acdefghijk".split("").concat("later"),
    );

    expect(await world.api.table.updateTable({ ...table("things"), body: { name: "stuff" } })).toMatchObject({ status: "completed" });
    expect((await world.api.table.getTableColumns(table("stuff"))).columns).toHaveLength(11);
    await expect(world.api.table.getTableColumns(table("things"))).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining("things"),
    });
    expect(await world.api.table.deleteTable(table("stuff"))).toEqual({ status: "completed" });
    await expect(world.api.table.getTableColumns(table("stuff"))).rejects.toMatchObject({ status: 404 });
  });

  test.each([
    ["a table that is there", () => world.api.table.createTable(table("others")), 422, "others"],
    ["a table whose name is none", () => world.api.table.createTable(table("no spaces")), 400, "no spaces"],
    [
      "a column of an unknown type",
      () => world.api.table.addTableColumn({ ...table("others"), body: { name: "x", type: "money" } }),
      400,
      "money",
    ],
    [
      "a vector of one dimension",
      () => world.api.table.addTableColumn({ ...table("others"), body: { name: "x", type: "vector", vector: { dimension: 1 } } }),
      400,
      "dimension",
    ],
    [
      "a link to nowhere",
      () => world.api.table.addTableColumn({ ...table("others"), body: { name: "x", type: "link", link: { table: "nowhere" } } }),
      400,
      "nowhere",
    ],
    [
      "a column that is not there",
      () => world.api.table.deleteColumn({ pathParams: { ...table("others").pathParams, columnName: "x" } }),
      404,
      "x",
    ],
    [
      "a column in a table that is not there",
      () => world.api.table.addTableColumn({ ...table("gone"), body: { name: "x", type: "int" } }),
      404,
      "gone",
    ],
  ])("%s is refused", async (_name, call, status, fragment) => {
    await expect(call()).rejects.toMatchObject({ status, message: expect.stringContaining(fragment) });
  });

  test("a column with a default fills existing records", async () => {
    await world.api.table.createTable(table("filled"));
    await world.api.records.insertRecordWithID({ pathParams: { ...table("filled").pathParams, recordId: "old" }, body: {} });
    await world.api.table.addTableColumn({ ...table("filled"), body: { name: "n", type: "int", notNull: true, defaultValue: "7" } });
    expect(await world.api.records.getRecord({ pathParams: { ...table("filled").pathParams, recordId: "old" } })).toMatchObject({ n: 7 });
  });
});

describe("schema edits", () => {
  const operations = [
    { addTable: { table: "authors" } },
    { addColumn: { table: "authors", column: { name: "name", type: "string" } } },
    { addTable: { table: "books" } },
    { addColumn: { table: "books", column: { name: "title", type: "string", notNull: true, defaultValue: "untitled" } } },
    { addColumn: { table: "books", column: { name: "author", type: "link", link: { table: "authors" } } } },
    { addColumn: { table: "books", column: { name: "embedding", type: "vector", vector: { dimension: 3 } } } },
  ];
  const schema = {
    tables: [
      { name: "authors", columns: [{ name: "name", type: "string" }] },
      {
        name: "books",
        columns: [
          { name: "title", type: "string", notNull: true, defaultValue: "untitled" },
          { name: "author", type: "link", link: { table: "authors" } },
          { name: "embedding", type: "vector", vector: { dimension: 3 } },
        ],
      },
    ],
  };
  const tablesOf = async (database: string, branch = "main") =>
    (await world.api.branch.getBranchDetails({ pathParams: at(database, branch) })).schema.tables.map(({ name, columns }) => ({
      name,
      columns,
    }));

  test("compare with a schema gives the operations; applying them leaves no difference", async () => {
    await create("library");
    const compared = await world.api.migrations.compareBranchWithUserSchema({ pathParams: at("library"), body: { schema } });
    expect(compared.source.tables).toEqual([]);
    expect(compared.target.tables).toEqual(schema.tables);
    expect(compared.edits.operations).toEqual(operations);

    const preview = await world.api.migrations.previewBranchSchemaEdit({ pathParams: at("library"), body: { edits: compared.edits } });
    expect(preview.original.tables).toEqual([]);
    expect(preview.updated.tables).toEqual(schema.tables);
    expect(await tablesOf("library")).toEqual([]);

    const applied = await world.api.migrations.applyBranchSchemaEdit({ pathParams: at("library"), body: { edits: compared.edits } });
    expect(applied).toMatchObject({ status: "completed", migrationID: expect.stringMatching(/./), parentMigrationID: expect.any(String) });
    expect(await tablesOf("library")).toEqual(schema.tables);
    const again = await world.api.migrations.compareBranchWithUserSchema({ pathParams: at("library"), body: { schema } });
    expect(again.edits.operations).toEqual([]);

    const details = await world.api.branch.getBranchDetails({ pathParams: at("library") });
    expect(details.lastMigrationID).toBe(applied.migrationID);
  });

  test("a link to a table that comes later, and tables that link to each other", async () => {
    await create("knot");
    const knot = {
      tables: [
        { name: "a", columns: [{ name: "b", type: "link", link: { table: "b" } }] },
        { name: "b", columns: [{ name: "a", type: "link", link: { table: "a" } }] },
      ],
    };
    const { edits } = await world.api.migrations.compareBranchWithUserSchema({ pathParams: at("knot"), body: { schema: knot } });
    await world.api.migrations.applyBranchSchemaEdit({ pathParams: at("knot"), body: { edits } });
    expect(await tablesOf("knot")).toEqual(knot.tables);
  });

  test("renames and removals keep the remaining data", async () => {
    const pathParams = at("library");
    await world.api.records.insertRecordWithID({
      pathParams: { ...pathParams, tableName: "books", recordId: "b1" },
      body: { title: "Kept" },
    });
    await world.api.migrations.updateBranchSchema({
      pathParams,
      body: {
        operations: [
          { renameTable: { oldName: "books", newName: "volumes" } },
          { renameColumn: { table: "volumes", oldName: "title", newName: "name" } },
          { removeColumn: { table: "volumes", column: "embedding" } },
        ],
      },
    });
    expect(await world.api.records.getRecord({ pathParams: { ...pathParams, tableName: "volumes", recordId: "b1" } })).toMatchObject({
      id: "b1",
      name: "Kept",
    });
    expect((await tablesOf("library")).find(({ name }) => name === "volumes")?.columns.map(({ name }) => name)).toEqual(["name", "author"]);
  });

  test("all or nothing: a fault in the last operation undoes the first", async () => {
    const before = await tablesOf("library");
    await expect(
      world.api.migrations.applyBranchSchemaEdit({
        pathParams: at("library"),
        body: {
          edits: { operations: [{ addTable: { table: "half" } }, { addColumn: { table: "nowhere", column: { name: "x", type: "int" } } }] },
        },
      }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining("nowhere") });
    expect(await tablesOf("library")).toEqual(before);
  });

  test("history shows what was done, newest first, and pages", async () => {
    const { logs, meta } = await world.api.migrations.getBranchSchemaHistory({ pathParams: at("library"), body: {} });
    expect(logs).toHaveLength(2);
    expect(meta).toMatchObject({ more: false, cursor: expect.any(String) });
    expect(logs[1]?.operations).toEqual(operations);
    expect(logs[0]?.parentID).toBe(logs[1]?.id);
    expect(logs[0]).toMatchObject({ id: expect.any(String), checksum: expect.any(String), createdAt: expect.stringMatching(/Z$/) });
    const first = await world.api.migrations.getBranchSchemaHistory({ pathParams: at("library"), body: { page: { size: 1 } } });
    expect(first.logs.map(({ id }) => id)).toEqual([logs[0]?.id]);
    expect(first.meta.more).toBe(true);
    const next = await world.api.migrations.getBranchSchemaHistory({
      pathParams: at("library"),
      body: { page: { size: 1, after: first.meta.cursor } },
    });
    expect(next.logs.map(({ id }) => id)).toEqual([logs[1]?.id]);
    const { migrations } = await world.api.migrations.getBranchMigrationHistory({ pathParams: at("library") });
    expect(migrations?.map(({ id, status }) => [id, status])).toEqual(logs.map(({ id }) => [id, "completed"]));
  });

  test("history can be pushed to another database", async () => {
    const { logs } = await world.api.migrations.getBranchSchemaHistory({ pathParams: at("library"), body: {} });
    await create("copy");
    const migrations = [...logs]
      .reverse()
      .map(({ id, parentID, checksum, operations: ops }) => ({ id, ...(parentID ? { parentID } : {}), checksum, operations: ops }));
    await world.api.migrations.pushBranchMigrations({ pathParams: at("copy"), body: { migrations } });
    expect(await tablesOf("copy")).toEqual(await tablesOf("library"));
    const { edits } = await world.api.migrations.compareBranchWithUserSchema({
      pathParams: at("copy"),
      body: { schema: { tables: await tablesOf("library") } },
    });
    expect(edits.operations).toEqual([]);
    await expect(
      world.api.migrations.pushBranchMigrations({
        pathParams: at("copy"),
        body: { migrations: [{ id: "x", parentID: logs[0]?.id ?? "", checksum: "wrong", operations: [{ addTable: { table: "t" } }] }] },
      }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining("checksum") });
  });

  test("two branches are compared", async () => {
    await world.api.branch.createBranch({ pathParams: at("library", "next"), body: { from: "main" } });
    await world.api.table.createTable({ pathParams: { ...at("library", "next"), tableName: "shelves" } });
    const { edits } = await world.api.migrations.compareBranchSchemas({
      pathParams: { ...at("library"), branchName: "next" },
      body: {},
    });
    expect(edits.operations).toEqual([{ addTable: { table: "shelves" } }]);
  });

  test("plan and execute, the older pair", async () => {
    await create("planned");
    const plan = await world.api.migrations.getBranchMigrationPlan({ pathParams: at("planned"), body: schema });
    expect(Object.keys(plan.migration.newTables ?? {})).toEqual(["authors", "books"]);
    await world.api.migrations.executeBranchMigrationPlan({ pathParams: at("planned"), body: plan });
    expect(await tablesOf("planned")).toEqual(schema.tables);
  });

  test("migrations/apply with the newer operations", async () => {
    await create("rolled");
    const { jobID } = await world.api.migrations.applyMigration({
      pathParams: at("rolled"),
      body: {
        name: "first",
        operations: [
          {
            create_table: {
              name: "posts",
              columns: [
                { name: "title", type: "text", nullable: false, default: "'new'" },
                { name: "tags", type: "text[]", nullable: true },
              ],
            },
          },
          { add_column: { table: "posts", column: { name: "likes", type: "int8", nullable: true } } },
        ],
      },
    });
    expect(await world.api.migrations.getMigrationJobStatus({ pathParams: { ...at("rolled"), jobId: jobID } })).toMatchObject({
      jobID,
      type: "apply",
      status: "completed",
    });
    expect(await tablesOf("rolled")).toEqual([
      {
        name: "posts",
        columns: [
          { name: "title", type: "text", notNull: true, defaultValue: "new" },
          { name: "tags", type: "multiple" },
          { name: "likes", type: "int" },
        ],
      },
    ]);
  });

  test("migrations/apply skips the columns that every table has, and refuses a primary key of another type or name", async () => {
    await create("keys");
    const apply = (...columns: object[]) =>
      world.api.migrations.applyMigration({
        pathParams: at("keys"),
        // As pgroll describes the tables of the service, checks included.
        body: { operations: [{ create_table: { name: "posts", columns: columns as never } }] },
      });
    await expect(apply({ name: "id", type: "serial", pk: true })).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/create_table\.columns\[0\]\.type is "serial"; every table has a column "id" of type text/),
    });
    await expect(apply({ name: "code", type: "text", pk: true })).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/columns\[0\]\.pk: the primary key of every table is "id", a text\./),
    });
    expect(await tablesOf("keys")).toEqual([]);
    await apply(
      { name: "id", type: "text", pk: true },
      { name: "xata_id", type: "text", unique: true, default: "'rec_' || xata_private.xid()", check: { name: "c", constraint: "true" } },
      { name: "xata_version", type: "integer", default: "0" },
      { name: "xata_createdat", type: "timestamptz", default: "now()" },
      { name: "title", type: "text", nullable: true },
    );
    expect(await tablesOf("keys")).toEqual([{ name: "posts", columns: [{ name: "title", type: "text" }] }]);
  });

  test("an SDK client built on what was set up works at once", async () => {
    const { BaseClient } = await import("@xata.io/client");
    const client = new BaseClient({ databaseURL: `http://w.r.localhost:${world.port}/db/copy`, apiKey: "k", branch: "main" });
    const author = await client.db.authors?.create({ name: "Ursula" });
    const volume = await client.db.volumes?.create({ name: "Lathe", author });
    expect(volume).toMatchObject({ name: "Lathe", author: { id: author?.id } });
  });
});
