/**
 * sql through the published SDK: template, object, array rows, batch, parameters as the SDK writes them, and
 * refusals.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openWorld, type World } from "./support/world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld("querying");
});
afterAll(() => world?.stop());
beforeEach(async () => {
  await world.client.sql({ statement: 'DELETE FROM "teams"' });
  await world.client.db.teams.create([
    { id: "one", name: "[A] Cars", index: 1, rating: 1.5, labels: ["x", 'with "quotes", comma'], dark: true, plan: "free" },
    { id: "two", name: "[A] Planes", index: 2, founded: "2020-01-02T03:04:05.678Z", config: { a: [5] }, plan: "paid" },
    { id: "three", name: "Boats", index: 3, plan: "free" },
  ] as never);
});

const sql = <Row = Record<string, unknown>>(statement: string, params?: unknown[]) =>
  world.client.sql<Row>({ statement, ...(params === undefined ? {} : { params }) });

describe("reading", () => {
  test("a template: records in order, columns with PostgreSQL's type names, no warning", async () => {
    const { records, columns, warning } = await world.client.sql`
      SELECT "id", "name", "index", "rating", "dark", "labels", "founded", "config", "xata.version" FROM "teams" WHERE "index" < ${3} ORDER BY "index"`;
    expect(records).toEqual([
      {
        id: "one",
        name: "[A] Cars",
        index: 1,
        rating: 1.5,
        dark: true,
        labels: ["x", 'with "quotes", comma'],
        founded: null,
        config: null,
        xata: { version: 0 },
      },
      {
        id: "two",
        name: "[A] Planes",
        index: 2,
        rating: null,
        dark: null,
        labels: null,
        founded: expect.stringMatching(/^2020-01-02T03:04:05\.678(000)?(Z|\+00:00)$/),
        config: { a: [5] },
        xata: { version: 0 },
      },
    ]);
    expect(columns).toEqual([
      { name: "id", type: "text" },
      { name: "name", type: "text" },
      { name: "index", type: "int8" },
      { name: "rating", type: "float8" },
      { name: "dark", type: "bool" },
      { name: "labels", type: "_text" },
      { name: "founded", type: "timestamptz" },
      { name: "config", type: "jsonb" },
      { name: "xata.version", type: "int4" },
    ]);
    expect(warning).toBeUndefined();
  });

  test("an object, rows as arrays", async () => {
    const { rows, records } = (await world.client.sql({
      statement: 'SELECT "id", "index" FROM "teams" ORDER BY "id"',
      responseType: "array",
    })) as never as { rows: unknown[][]; records?: unknown };
    expect(rows).toEqual([
      ["one", 1],
      ["three", 3],
      ["two", 2],
    ]);
    expect(records).toBeUndefined();
  });

  test("metadata is nested in records, flat in columns and rows; a column named xata keeps it flat", async () => {
    const statement = `SELECT "id", "xata.version", "xata.createdAt", "xata.updatedAt" FROM "teams" WHERE "id" = 'one'`;
    const { records } = await world.client.sql({ statement });
    expect(records).toEqual([{ id: "one", xata: { version: 0, createdAt: expect.any(String), updatedAt: expect.any(String) } }]);
    const rows = (await world.client.sql({ statement, responseType: "array" })) as never as {
      rows: unknown[][];
      columns: { name: string }[];
    };
    expect(rows.rows).toEqual([["one", 0, expect.any(String), expect.any(String)]]);
    expect(rows.columns.map(({ name }) => name)).toEqual(["id", "xata.version", "xata.createdAt", "xata.updatedAt"]);
    expect((await sql(`SELECT 1 AS "xata", "xata.version" FROM "teams" WHERE "id" = 'one'`)).records).toEqual([
      { xata: 1, "xata.version": 0 },
    ]);
    const { results } = await world.client.sql.batch({ statements: [{ statement }] });
    expect(results[0]?.records).toMatchObject([{ id: "one", xata: { version: 0 } }]);
  });

  test("joins, aggregates, CTEs, windows", async () => {
    await world.client.db.users.createOrReplace("u", { name: "Owner" });
    await world.client.db.teams.update("one", { owner: "u" });
    const { records } = await sql(
      `WITH free AS (SELECT "id", "name", "owner" FROM "teams" WHERE "plan" = $1)
       SELECT f."name" AS team, u."name" AS owner, count(*) OVER () AS total FROM free f LEFT JOIN "users" u ON u."id" = f."owner" ORDER BY f."name"`,
      ["free"],
    );
    expect(records).toEqual([
      { team: "Boats", owner: null, total: 2 },
      { team: "[A] Cars", owner: "Owner", total: 2 },
    ]);
  });

  test("more than 1,000 rows are cut, with a warning", async () => {
    await world.client.db.users.create(Array.from({ length: 1001 }, (_, i) => ({ name: "crowd", age: i })));
    const { records, warning } = await sql(`SELECT "age" FROM "users" WHERE "name" = 'crowd' ORDER BY "age"`);
    expect(records).toHaveLength(1000);
    expect(records[999]).toEqual({ age: 999 });
    expect(warning).toMatch(/1,?000/);
  });
});

describe("parameters", () => {
  test("every kind, as the SDK turns it into text", async () => {
    const date = new Date("2024-05-06T07:08:09.010Z");
    await world.client.sql`INSERT INTO "teams" ("id", "name", "index", "rating", "dark", "founded", "labels", "config", "description")
      VALUES (${"p"}, ${"it's $1; --"}, ${42}, ${0.25}, ${false}, ${date}, ${["a,b", 'c"d', "e\\f", "NULL", ""]}, ${{ deep: ["x", 1] }}, ${null})`;
    const team = await world.client.db.teams.read("p");
    expect(team).toMatchObject({
      name: "it's $1; --",
      index: 42,
      rating: 0.25,
      dark: false,
      founded: date,
      labels: ["a,b", 'c"d', "e\\f", "NULL", ""],
      config: { deep: ["x", 1] },
      description: null,
    });
  });

  test("the forms of the contract: one id, IN, = ANY", async () => {
    expect((await world.plain("POST", "/sql", { statement: 'DELETE FROM "teams" WHERE "id" = $1', params: ["one"] })).body).toMatchObject({
      rowCount: 1,
    });
    expect(
      (await world.plain("POST", "/sql", { statement: 'DELETE FROM "teams" WHERE "id" IN ($1, $2)', params: ["two", "nobody"] })).body,
    ).toMatchObject({ rowCount: 1 });
    const { records } = await world.client.sql`SELECT "id" FROM "teams" WHERE "id" = ANY(${["three", "one"]})`;
    expect(records).toEqual([{ id: "three" }]);
  });

  test("plain requests may send numbers, booleans, lists, objects and null", async () => {
    const answer = await world.plain("POST", "/sql", {
      statement:
        'UPDATE "teams" SET "index" = $1, "dark" = $2, "labels" = $3, "config" = $4, "description" = $5 WHERE "id" = $6 RETURNING "id"',
      params: [7, true, ["l"], { k: [1] }, null, "one"],
    });
    expect(answer.body).toMatchObject({ records: [{ id: "one" }], total: 1, rowCount: 1 });
    expect(await world.client.db.teams.read("one")).toMatchObject({ index: 7, dark: true, labels: ["l"], config: { k: [1] } });
  });

  test("unused, missing and surplus parameters are refused, and nothing is done", async () => {
    const order = "ASC";
    await expect(world.client.sql`SELECT * FROM "teams" ORDER BY "name" ${order}`).rejects.toMatchObject({ status: 400 });
    for (const [statement, params] of [
      ['DELETE FROM "teams" WHERE "id" = $1', ["one", "two"]],
      ['DELETE FROM "teams" WHERE "id" = $2', ["one", "two"]],
      ['DELETE FROM "teams" WHERE "id" IN ($1, $2)', ["one"]],
      ['DELETE FROM "teams"', ["one"]],
      ['DELETE FROM "teams" WHERE "id" = $1', undefined],
    ] as const) {
      await expect(sql(statement, params as never)).rejects.toMatchObject({ status: 400, message: expect.stringContaining("param") });
    }
    expect(await world.client.db.teams.getAll()).toHaveLength(3);
  });
});

describe("writing", () => {
  test("INSERT … RETURNING makes a record of the API", async () => {
    const { records } = await world.client.sql<{
      id: string;
      name: string;
    }>`INSERT INTO "teams" ("id", "name") VALUES (${"my-id"}, ${"Ships"}) RETURNING "id", "name", "plan"`;
    expect(records).toEqual([{ id: "my-id", name: "Ships", plan: "free" }]);
    expect(await world.client.db.teams.read("my-id")).toMatchObject({ name: "Ships", plan: "free", xata: { version: 0 } });
  });

  test("an INSERT without an id gets one like the API's", async () => {
    const { records } = await sql<{ id: string }>('INSERT INTO "teams" ("name") VALUES ($1) RETURNING "id"', ["made"]);
    expect(records[0]?.id).toMatch(/^rec_[0-9a-v]{20}$/);
  });

  test("UPDATE increments the version, like the API's update", async () => {
    await sql('UPDATE "teams" SET "name" = $1 WHERE "id" = $2', ["renamed", "one"]);
    expect(await world.client.db.teams.read("one")).toMatchObject({ name: "renamed", xata: { version: 1 } });
  });

  test("vectorSearch finds what SQL wrote, and not what it deleted", async () => {
    await sql(`INSERT INTO "colours" ("id", "name", "lab") VALUES ('sql', 'by sql', '{1,2,3}')`);
    const search = () =>
      world.plain("POST", "/tables/colours/vectorSearch", { column: "lab", queryVector: [1, 2, 3], consistency: "strong" });
    expect((await search()).body.results).toEqual([{ id: "sql", score: expect.closeTo(2, 9) }]);
    await sql(`DELETE FROM "colours" WHERE "id" = 'sql'`);
    expect((await search()).body).toMatchObject({ totalCount: 0, results: [] });
  });
});

describe("batch", () => {
  test("returns the result of each statement in order; later ones see earlier ones", async () => {
    const { results } = await world.client.sql.batch({
      statements: [
        { statement: 'INSERT INTO "teams" ("id", "name", "index") VALUES ($1, $2, $3)', params: ["b", "Batch", 9] },
        { statement: 'SELECT "name", "index" FROM "teams" WHERE "id" = $1', params: ["b"] },
        { statement: 'SELECT count(*) AS n FROM "teams"' },
      ],
    });
    expect(results.map((result) => (result as { records: unknown }).records)).toEqual([[], [{ name: "Batch", index: 9 }], [{ n: 4 }]]);
  });

  test("rows as arrays", async () => {
    const { results } = await world.client.sql.batch({
      statements: [{ statement: 'SELECT "id" FROM "teams" ORDER BY "id"' }],
      responseType: "array",
    });
    expect((results[0] as never as { rows: unknown[][] }).rows).toEqual([["one"], ["three"], ["two"]]);
  });

  test("one that fails undoes all and is named", async () => {
    await expect(
      world.client.sql.batch({
        statements: [{ statement: 'DELETE FROM "teams"' }, { statement: 'SELECT "no_such_column" FROM "teams"' }],
      }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining("no_such_column") });
    expect(await world.client.db.teams.getAll()).toHaveLength(3);
  });
});

describe("refusals", () => {
  test("a call without template or object never leaves the SDK", async () => {
    await expect(world.client.sql('SELECT * FROM "teams"' as never)).rejects.toThrow("Invalid usage of `xata.sql`");
  });

  test.each([
    "SELEC 1",
    'SELECT * FROM "planets"',
    'SELECT "colour" FROM "teams"',
    'SELECT 1; DELETE FROM "teams"',
    'DROP TABLE "teams"',
    'CREATE TABLE "x" (id int)',
    'TRUNCATE "teams"',
    "BEGIN",
    "COMMIT",
    "SET search_path TO public",
    'COPY "teams" TO STDOUT',
    "DO $$ BEGIN END $$",
    "GRANT ALL ON ALL TABLES IN SCHEMA public TO public",
    'UPDATE "teams" SET "xata.version" = 99',
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT pg_read_file('PG_VERSION')",
    'SELECT * FROM lodestone."databases"',
    "",
  ])("%j is a 400 and changes nothing", async (statement) => {
    const answer = await world.plain("POST", "/sql", { statement });
    expect([answer.status, typeof answer.body.message]).toEqual([400, "string"]);
    expect((await world.client.db.teams.read(["one", "two", "three"])).map((team) => team?.getMetadata().version)).toEqual([0, 0, 0]);
  });

  test("connectionString is made by the SDK alone", () => {
    expect(world.client.sql.connectionString).toContain("/querying:main");
  });
});
