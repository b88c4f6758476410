import { beforeAll, expect, test } from "vitest";
import type { Connection } from "../../../src/records/engine/engine.ts";
import { ExactJson } from "../../../src/records/exact-json.ts";
import type { SqlRequest, SqlResponse } from "../../../src/records/requests.ts";
import type { CatalogNames } from "../../../src/records/sql/catalog-names.ts";
import { runSql, toResponses } from "../../../src/records/sql/run-sql.ts";
import { sqlAnswer } from "../../../src/records/sql/sql-answer.ts";
import { SLICE_UNITS, Slices } from "../../../src/threads/event-loop.ts";
import { turnsDuring } from "../../support/event-loop.ts";
import { describeOnBothEngines } from "../../support/record-engines.ts";

describeOnBothEngines("SQL over HTTP", (fixture) => {
  const sql = (statement: string, params?: SqlRequest["params"], rest: Partial<SqlRequest> = {}): Promise<SqlResponse> =>
    runSql(fixture.engine, fixture.branch, { statement, ...(params === undefined ? {} : { params }), ...rest });
  const records = async (statement: string, params?: SqlRequest["params"]) => (await sql(statement, params)).records;

  beforeAll(async () => {
    await fixture.createTable("teams", [{ name: "name", type: "string" }]);
    await fixture.createTable("users", [
      { name: "name", type: "string" },
      { name: "age", type: "int" },
      { name: "score", type: "float" },
      { name: "active", type: "bool" },
      { name: "born", type: "datetime" },
      { name: "tags", type: "multiple" },
      { name: "config", type: "json" },
      { name: "team", type: "link", link: { table: "teams" } },
      { name: "embedding", type: "vector", vector: { dimension: 3 } },
      { name: "address.city", type: "string" },
    ]);
    await sql(`INSERT INTO "teams" ("id", "name") VALUES ('t1', 'Red')`);
  });

  test("inserts every kind of JSON value, and returns what was written", async () => {
    const response = await sql(
      `INSERT INTO "users" ("id", "name", "age", "score", "active", "born", "tags", "config", "team", "embedding", "address.city")
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
       RETURNING "id", "name", "age", "score", "active", "born", "tags", "config", "team", "embedding", "address.city", "xata.version"`,
      [
        "u1",
        "Ada",
        36,
        0.1,
        true,
        "2026-01-02T03:04:05.678Z",
        ["a", 'b"\\,c', "NULL"],
        { a: [1, null], "": "x" },
        "t1",
        [0.1, -2, 3e-7],
        "Köln",
      ],
    );
    expect(response.records).toEqual([
      {
        id: "u1",
        name: "Ada",
        age: 36,
        score: 0.1,
        active: true,
        born: "2026-01-02T03:04:05.678Z",
        tags: ["a", 'b"\\,c', "NULL"],
        config: { a: [1, null], "": "x" },
        team: "t1",
        embedding: [0.1, -2, 3e-7],
        "address.city": "Köln",
        xata: { version: 0 },
      },
    ]);
    expect(response.columns.map(({ type }) => type)).toEqual([
      "text",
      "text",
      "int8",
      "float8",
      "bool",
      "timestamptz",
      "_text",
      "jsonb",
      "text",
      "_float4",
      "text",
      "int4",
    ]);
    expect(response).toMatchObject({ total: 1, rowCount: 1 });
    expect(response).not.toHaveProperty("warning");
  });

  test("accepts every parameter as a string, as the SDK sends them", async () => {
    const response = await sql(
      `INSERT INTO "users" ("id", "age", "score", "active", "born", "tags", "config", "embedding") VALUES ($1,$2,$3,$4,$5,$6,$7,$8) RETURNING "age", "score", "active", "born", "tags", "config", "embedding"`,
      ["u2", "41", "1.5", "false", "2026-01-02T03:04:05.000Z", '{"x","y"}', '{"k":1}', "[1,2,3]"],
    );
    expect(response.records).toEqual([
      { age: 41, score: 1.5, active: false, born: "2026-01-02T03:04:05Z", tags: ["x", "y"], config: { k: 1 }, embedding: [1, 2, 3] },
    ]);
  });

  test("deletes by id and by IN, and reports how many", async () => {
    await sql(`INSERT INTO "teams" ("id") SELECT 'd' || n FROM generate_series(1, 5) AS n`);
    expect(await sql(`DELETE FROM "teams" WHERE "id" = $1`, ["d1"])).toEqual({ records: [], columns: [], total: 0, rowCount: 1 });
    expect((await sql(`DELETE FROM "teams" WHERE "id" IN ($1, $2, $3)`, ["d2", "d3", "nobody"])).rowCount).toBe(2);
    expect((await sql(`DELETE FROM "teams" WHERE "id" = ANY($1)`, [["d4", "d5"]])).rowCount).toBe(2);
    expect((await sql(`DELETE FROM "teams" WHERE "id" = $1`, ["d1"])).rowCount).toBe(0);
  });

  test("selects with joins, CTEs, aggregates, windows, subqueries and set operations", async () => {
    expect(
      await records(
        `WITH adults AS (SELECT * FROM "users" WHERE "age" > $1)
         SELECT a."name", t."name" AS team, count(*) OVER () AS n, (SELECT max("age") FROM "users") AS oldest
         FROM adults a LEFT JOIN "teams" t ON t."id" = a."team" ORDER BY a."age"`,
        [18],
      ),
    ).toEqual([
      { name: "Ada", team: "Red", n: 2, oldest: 41 },
      { name: null, team: null, n: 2, oldest: 41 },
    ]);
    expect(await records(`SELECT 1 AS n UNION ALL VALUES (2) EXCEPT SELECT 3 ORDER BY n`)).toEqual([{ n: 1 }, { n: 2 }]);
    expect(
      await records(
        `WITH RECURSIVE up AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM up WHERE n < 4) SELECT array_agg(n ORDER BY n DESC) AS list FROM up`,
      ),
    ).toEqual([{ list: [4, 3, 2, 1] }]);
    expect(
      await records(`SELECT "active", count(*), avg("age") FROM "users" GROUP BY ROLLUP ("active") HAVING count(*) > 0 ORDER BY 1`),
    ).toEqual([
      { active: false, count: 1, avg: 41 },
      { active: true, count: 1, avg: 36 },
      { active: null, count: 2, avg: 38.5 },
    ]);
  });

  test("updates, keeps the version, and moves rows with data-modifying CTEs and ON CONFLICT", async () => {
    expect(await records(`UPDATE "users" SET "age" = "age" + 1 WHERE "id" = 'u1' RETURNING "age", "xata.version"`)).toEqual([
      { age: 37, xata: { version: 1 } },
    ]);
    expect(
      await records(
        `INSERT INTO "teams" ("id", "name") VALUES ('t1', 'Blue') ON CONFLICT ("id") DO UPDATE SET "name" = excluded."name" RETURNING "name"`,
      ),
    ).toEqual([{ name: "Blue" }]);
    await sql(`INSERT INTO "teams" ("id", "name") VALUES ('m1', 'moved')`);
    expect(
      await records(
        `WITH gone AS (DELETE FROM "teams" WHERE "id" = 'm1' RETURNING *) INSERT INTO "teams" ("id", "name") SELECT 'm2', "name" FROM gone RETURNING "id", "name"`,
      ),
    ).toEqual([{ id: "m2", name: "moved" }]);
  });

  test("returns numbers only where JSON loses nothing", async () => {
    expect(
      await records(
        `SELECT 9007199254740993::int8 AS big, 12345678901234567890.5::numeric AS huge, 1.50::numeric AS plain, -0.25::numeric AS negative, 0.1::float4 AS single,
           'NaN'::float8 AS nan, '-Infinity'::float8 AS infinite, '\\x0aff'::bytea AS bytes, ARRAY[[1,2],[3,NULL]] AS nested, 'infinity'::timestamptz AS forever,
           '{"__proto__": {"x": 1}}'::jsonb AS json, ARRAY[9007199254740993, 1]::int8[] AS bigs, NULL AS nothing`,
      ),
    ).toEqual([
      {
        big: "9007199254740993",
        huge: "12345678901234567890.5",
        plain: 1.5,
        negative: -0.25,
        single: 0.1,
        nan: "NaN",
        infinite: "-Infinity",
        bytes: "Cv8=",
        nested: [
          [1, 2],
          [3, null],
        ],
        forever: "infinity",
        json: JSON.parse('{"__proto__": {"x": 1}}'),
        bigs: ["9007199254740993", 1],
        nothing: null,
      },
    ]);
  });

  test("returns rows as arrays on request, with columns of equal names", async () => {
    const response = await sql("SELECT 1 AS a, 'x' AS a", null, { responseType: "array" });
    expect(response).toEqual({
      rows: [[1, "x"]],
      columns: [
        { name: "a", type: "int4" },
        { name: "a", type: "text" },
      ],
      total: 1,
      rowCount: 1,
    });
  });

  test("returns at most 1,000 rows and warns, without computing the rest", async () => {
    const exact = await sql("SELECT n FROM generate_series(1, 1000) AS n");
    expect([exact.total, exact.rowCount, exact.warning]).toEqual([1000, 1000, undefined]);
    const cut = await sql("SELECT n, 1000000001 - n AS m FROM generate_series(1, 1001) AS n");
    expect([cut.total, cut.rowCount]).toEqual([1000, 1000]);
    expect(cut.warning).toContain("first 1000 rows");
    expect(cut.records?.at(-1)).toEqual({ n: 1000, m: 1000000001 - 1000 });
  });

  test("counts all rows that a cut INSERT or DELETE changed", async () => {
    const inserted = await sql(`INSERT INTO "teams" ("id") SELECT 'many' || n FROM generate_series(1, 2500) AS n RETURNING "id"`);
    expect([inserted.total, inserted.rowCount]).toEqual([1000, 2500]);
    const deleted = await sql(`DELETE FROM "teams" WHERE "id" LIKE 'many%' RETURNING "id"`);
    expect([deleted.total, deleted.rowCount]).toEqual([1000, 2500]);
    expect(deleted.warning).toContain("first 1000 rows");
  });

  test("limits the bytes of a result", async () => {
    const cut = await sql("SELECT repeat('x', 1000000) AS x FROM generate_series(1, 60)");
    expect(cut.total).toBe(33);
    expect(cut.warning).toContain("32 MiB");
    await expect(sql("SELECT repeat('x', 200000000) AS x")).rejects.toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringContaining("128 MiB"),
    });
    expect(await records("SELECT 1 AS n")).toEqual([{ n: 1 }]);
  });

  test("EXPLAIN answers the plan of a statement and does not run it", async () => {
    const before = await records(`SELECT count(*) AS n FROM "teams"`);
    const lines = await sql(`EXPLAIN DELETE FROM "teams" WHERE "name" = $1`, ["Red"]);
    expect(lines.columns).toEqual([{ name: "QUERY PLAN", type: "text" }]);
    expect(lines.records?.map((row) => row["QUERY PLAN"]).join("\n")).toMatch(/^Delete on teams .*Filter: \(name = 'Red'::text\)/s);
    expect(lines.rowCount).toBe(lines.total);
    const tree = await sql(
      `EXPLAIN (FORMAT JSON) SELECT u."id" FROM "users" u JOIN "teams" t ON t."id" = u."team" WHERE t."name" = $1`,
      ["Red"],
      { responseType: "array", readOnly: true },
    );
    expect(tree.columns).toEqual([{ name: "QUERY PLAN", type: "json" }]);
    const plan = JSON.stringify(tree.rows![0]![0]);
    for (const part of ['"Node Type":', '"Relation Name":"users"', '"Relation Name":"teams"', '"Total Cost":', '"Plan Rows":']) {
      expect(plan.replaceAll(/:\s+/g, ":")).toContain(part);
    }
    expect(plan).not.toContain("Schema");
    expect((await sql(`EXPLAIN (FORMAT YAML) SELECT 1`)).records).toHaveLength(1);
    // What it explains may be a write, which it does not do, so who may only read may ask.
    expect((await sql(`EXPLAIN DELETE FROM "teams"`, [], { readOnly: true })).total).toBeGreaterThan(0);
    expect(await records(`SELECT count(*) AS n FROM "teams"`)).toEqual(before);
  });

  test.each([
    [`SELECT $1 AS a`, [], "the statement uses $1, but params has 0 values."],
    [`SELECT $1 AS a, $3 AS b`, ["1", "2"], "the statement uses $3, but params has 2 values."],
    [`SELECT $1 AS a, $3 AS b`, ["1", "2", "3"], "invalid SQL: unused parameters: used 2 of 3 parameters; there is no $2."],
    [`SELECT 1`, ["x"], "invalid SQL: unused parameters: used 0 of 1 parameters; there is no $1."],
    [`SELECT 1; SELECT 2`, [], "one statement is allowed, got 2"],
    [`DROP TABLE "users"`, [], "only SELECT, INSERT, UPDATE and DELETE are allowed, and EXPLAIN of these, got Drop"],
    [`EXPLAIN CREATE TABLE x AS SELECT 1`, [], "only SELECT, INSERT, UPDATE and DELETE can be explained, got CreateTableAs"],
    [`EXPLAIN ANALYZE SELECT 1`, [], "EXPLAIN takes FORMAT alone (text, json, yaml, xml), got ANALYZE (at character 9)"],
    [`EXPLAIN SELECT $1`, [], "the statement uses $1, but params has 0 values."],
    [`EXPLAIN UPDATE "users" SET "id" = 'x'`, [], 'column "id" of table "users" is written by the service alone'],
    [``, [], "the statement is empty"],
    [`-- nothing`, [], "the statement is empty"],
    [`SELEC 1`, [], 'syntax error at or near "SELEC" (at character 1)'],
    [`SELECT * FROM "nobody"`, [], 'table "nobody" does not exist in branch "test:main".'],
    [`SELECT "nothing" FROM "users"`, [], 'column "nothing" does not exist (at character 8).'],
    [`UPDATE "users" SET "id" = 'x'`, [], 'column "id" of table "users" is written by the service alone; leave it out of the UPDATE.'],
    [
      `UPDATE "users" SET "xata.version" = 9`,
      [],
      'column "xata.version" of table "users" is written by the service alone; leave it out of the UPDATE.',
    ],
    [
      `INSERT INTO "users" ("id", "xata.createdAt") VALUES ('x', now())`,
      [],
      'column "xata.createdAt" of table "users" is written by the service alone; leave it out of the INSERT.',
    ],
    [`INSERT INTO "users" VALUES ('x')`, [], 'INSERT must list its columns: INSERT INTO "users" ("id", …) … (at character 13)'],
    [`INSERT INTO "users" ("id", "embedding") VALUES ('x', $1)`, [[1, 2]], 'new row for relation "users" violates check constraint'],
    [`INSERT INTO "users" ("id") VALUES ('u1')`, [], "duplicate key value violates unique constraint"],
    [`SELECT 1/0`, [], "division by zero."],
    [`SELECT $1::int4`, ["x"], 'invalid input syntax for type integer: "x"'],
    [`SELECT 'a\0'`, [], "statement contains a NUL character."],
    [`SELECT $1::text`, ["a\0"], "params[0] contains a NUL character"],
    [`SELECT $1::text`, ["\ud800"], "params[0] contains a lone surrogate"],
  ] as [string, SqlRequest["params"], string][])("refuses %j with params %j", async (statement, params, message) => {
    await expect(sql(statement, params)).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining(message) });
  });

  test("continues after statements that are nested too deeply for the parser", async () => {
    for (let round = 0; round < 3; round++) {
      await expect(sql(`SELECT ${"1+".repeat(200_000)}1`)).rejects.toMatchObject({
        code: "INVALID",
        message: expect.stringContaining("nested too deeply"),
      });
    }
    await expect(sql(`SELECT ${"(".repeat(20_000)}1${")".repeat(20_000)}`)).rejects.toMatchObject({ code: "INVALID" });
    expect(await records(`SELECT "id" FROM "teams" WHERE "id" = 't1'`)).toEqual([{ id: "t1" }]);
  });
});

test("a wide and long answer is made in slices, so that others are served in between", async () => {
  const columns = Array.from({ length: 1_600 }, (_, i) => i);
  const result = {
    fields: columns.map((i) => ({ name: `c${i}`, dataTypeID: 23 })),
    rows: Array.from({ length: 300 }, (_, row) => columns.map((i) => String(row + i))),
    isCut: false,
    rowCount: 300,
  };
  const types = columns.map(() => "int4");
  for (const responseType of ["json", "array"] as const) {
    let answer: SqlResponse | undefined;
    const turns = await turnsDuring(async () => {
      answer = await sqlAnswer(result, types, responseType, new Slices());
    });
    expect((answer!.records?.[299] ?? answer!.rows?.[299]) as object).toMatchObject({ [responseType === "json" ? "c1599" : 1599]: 1_898 });
    // 480,000 values, some 4,000 a slice.
    expect(turns).toBeGreaterThan(40);
  }
});

test("a thousand short answers are made in slices, like a long one", async () => {
  const fields = Array.from({ length: 10 }, (_, i) => ({ name: `c${i}`, dataTypeID: 23 }));
  const rows = Array.from({ length: 12 }, () => fields.map((_, i) => String(i)));
  const results = Array.from({ length: 1_000 }, () => ({ fields, rows, isCut: false, rowCount: 12 }));
  const names = { types: new Map([[23, "int4"]]) } as unknown as CatalogNames;
  let answers: SqlResponse[] = [];
  const turns = await turnsDuring(async () => {
    answers = await toResponses({} as Connection, names, results, "json");
  });
  expect(answers).toHaveLength(1_000);
  expect(answers[999]!.records![11]).toMatchObject({ c0: 0, c9: 9 });
  // 120,000 values, some 4,000 a slice.
  expect(turns).toBeGreaterThan(20);
});

test("one long array is read in slices; long json is returned as it is", async () => {
  const element = 'a "quoted" \\ text';
  const literal = `"${element.replace(/["\\]/g, "\\$&")}"`;
  const array = `{${Array.from({ length: 100_000 }, () => literal).join(",")},{1,NULL}}`;
  const json = `[${"[],".repeat(1_000_000)}1]`;
  const rows = [[array, `{"${"x".repeat(3_000_000)}"}`, json]];
  const fields = ["list", "one", "json"].map((name) => ({ name, dataTypeID: 0 }));
  let answer: SqlResponse | undefined;
  const turns = await turnsDuring(async () => {
    answer = await sqlAnswer({ fields, rows, isCut: false, rowCount: 1 }, ["_text", "_text", "json"], "array", new Slices());
  });
  const [list, one, text] = answer!.rows![0]! as [unknown[], string[], ExactJson];
  expect([list.length, list[0], list[99_999], list[100_000]]).toEqual([100_001, element, element, ["1", null]]);
  expect(one[0]).toHaveLength(3_000_000);
  expect(text).toBeInstanceOf(ExactJson);
  expect(text.text).toBe(json);
  expect(turns).toBeGreaterThanOrEqual(Math.floor((array.length + 3_000_000) / SLICE_UNITS));
});
