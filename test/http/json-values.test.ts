/**
 * Values of type json in answers: every digit of their numbers in SQL, and nothing stored that cannot be
 * read.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer } from "../support/server-client.ts";
import { type SharedServer, sharedServer } from "../support/shared-server.ts";

const BRANCH = "/db/json:main";
const TABLE = `${BRANCH}/tables/docs`;

let server: SharedServer;
const sql = (statement: string, params: unknown[] = []): Promise<Answer> => server.post(`${BRANCH}/sql`, { statement, params });
const nested = (levels: number): string => `repeat('[', ${levels}) || repeat(']', ${levels})`;

beforeAll(async () => {
  server = await sharedServer();
  await server.put(BRANCH);
  await server.put(TABLE, {
    columns: [
      { name: "config", type: "json" },
      { name: "v", type: "vector", vector: { dimension: 2 } },
    ],
  });
  await sql(`INSERT INTO "docs" ("id", "config", "v") VALUES ('one', '{"a": 1}', '{1,2}')`);
});
afterAll(() => server?.stop());

it("numbers of json in SQL's answers are those of the database, digit by digit", async () => {
  const answer = await sql(
    `SELECT '1e999'::json AS huge, '{"id": 12345678901234567890, "x": [0.1000000000000000055]}'::jsonb AS config, ARRAY['9007199254740993'::jsonb, '1'] AS list, '[1, 0.5]'::json AS plain`,
  );
  expect(answer.status).toBe(200);
  expect(answer.text).toContain('"huge":1e999');
  expect(answer.text).toContain('"config":{"x": [0.1000000000000000055], "id": 12345678901234567890}');
  expect(answer.text).toContain('"list":[9007199254740993,1]');
  expect(answer.text).toContain('"plain":[1,0.5]');
  const rows = await server.post(`${BRANCH}/sql/batch`, {
    statements: [{ statement: "SELECT '[1e400]'::json AS a" }],
    responseType: "array",
  });
  expect(rows.text).toContain('"rows":[[[1e400]]]');
});

it("and so do those of the record API, whatever reads or writes the record", async () => {
  const config = '{"id": 12345678901234567890, "list": [1e400, 0.1000000000000000055], "plain": 1}';
  await sql(`INSERT INTO "docs" ("id", "config", "v") VALUES ('exact', $1, '{1,2}')`, [config]);
  const stored = (await sql(`SELECT "config"::text AS t FROM "docs" WHERE "id" = 'exact'`)).body.records[0].t as string;
  expect(stored).toContain("12345678901234567890");
  const columns = ["config"];
  const answers = [
    await server.get(`${TABLE}/data/exact`),
    await server.post(`${TABLE}/query`, { columns, filter: { id: "exact" } }),
    await server.post(`${TABLE}/vectorSearch`, { column: "v", queryVector: [1, 2], columns, consistency: "strong" }),
    await server.post(`${BRANCH}/transaction`, { operations: [{ get: { table: "docs", id: "exact", columns } }] }),
    await server.request("PATCH", `${TABLE}/data/exact?columns=config`, { v: [2, 1] }),
  ];
  for (const answer of answers) {
    expect(answer.status).toBe(200);
    expect(answer.text).toContain(`"config":${stored}`);
  }
  const part = await server.post(`${TABLE}/query`, { columns: ["config->id", "config->plain"], filter: { id: "exact" } });
  expect(part.text).toContain('"config->id":12345678901234567890');
  expect(part.text).toContain('"config->plain":1');
  const gone = await server.request("DELETE", `${TABLE}/data/exact?columns=config`);
  expect(gone.text).toContain(`"config":${stored}`);
});

it("json of any depth is returned by a SELECT", async () => {
  const answer = await sql(`SELECT (${nested(6_000)})::json AS deep, (${nested(6_000)})::jsonb AS stored`);
  expect([answer.status, answer.text.includes("[".repeat(6_000))]).toEqual([200, true]);
});

describe("json deeper than 128 levels", () => {
  const read = async (): Promise<unknown[]> => [
    (await sql(`SELECT "id", "config" FROM "docs" ORDER BY "id"`)).body.records,
    (await server.post(`${TABLE}/query`, { columns: ["*"] })).status,
    (await server.get(`${TABLE}/data/one`)).status,
    (await server.post(`${TABLE}/vectorSearch`, { column: "v", queryVector: [1, 2], columns: ["*"], consistency: "strong" })).status,
  ];

  it.each([
    ["an INSERT", `INSERT INTO "docs" ("id", "config") VALUES ('deep', (${nested(6_000)})::jsonb)`],
    ["an UPDATE", `UPDATE "docs" SET "config" = (${nested(129)})::jsonb RETURNING "config"`],
    ["ON CONFLICT", `INSERT INTO "docs" ("id") VALUES ('one') ON CONFLICT ("id") DO UPDATE SET "config" = (${nested(200)})::jsonb`],
    ["a value of objects", `UPDATE "docs" SET "config" = (repeat('{"a":', 129) || '1' || repeat('}', 129))::jsonb`],
    ["what was put together", `UPDATE "docs" SET "config" = jsonb_build_array((${nested(128)})::jsonb)`],
  ])("is refused in %s, and nothing is changed", async (_name, statement) => {
    const before = await read();
    expect(await sql(statement)).toMatchObject({ status: 400, body: { message: expect.stringContaining("at most 128 levels") } });
    expect(await read()).toEqual(before);
    expect(before.slice(1)).toEqual([200, 200, 200]);
  });

  it("is refused in a batch, which changes nothing", async () => {
    const statements = [
      { statement: `DELETE FROM "docs"` },
      { statement: `INSERT INTO "docs" ("config") VALUES ((${nested(129)})::jsonb)` },
    ];
    expect(await server.post(`${BRANCH}/sql/batch`, { statements })).toMatchObject({ status: 400 });
    expect((await sql(`SELECT count(*) AS n FROM "docs"`)).body.records).toEqual([{ n: 1 }]);
  });

  it("is refused as a default", async () => {
    const column = { name: "late", type: "json", defaultValue: `${"[".repeat(129)}${"]".repeat(129)}` };
    expect(await server.post(`${TABLE}/columns`, column)).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining("at most 128 levels") },
    });
  });

  it("begins at 129: 128 levels are stored and read", async () => {
    expect((await sql(`INSERT INTO "docs" ("id", "config", "v") VALUES ('most', (${nested(128)})::jsonb, '{3,4}')`)).status).toBe(200);
    expect((await server.get(`${TABLE}/data/most`)).body.config).toEqual(JSON.parse("[".repeat(128) + "]".repeat(128)));
    expect((await read()).slice(1)).toEqual([200, 200, 200]);
    expect((await server.delete(`${TABLE}/data/most?columns=*`)).status).toBe(200);
  });
});

it.each([
  ["broken at its end", (long: string) => `[${long}`],
  ["with a lone surrogate", (long: string) => `["\\ud800",${long}]`],
  ["with the character U+0000", (long: string) => `["\\u0000",${long}]`],
])("long JSON text %s is refused, and nothing is stored", async (_name, around) => {
  const long = `"${"x".repeat(300_000)}"`;
  const answer = await server.put(`${TABLE}/data/long`, { config: around(long) });
  expect([answer.status, (await server.get(`${TABLE}/data/long`)).status]).toEqual([400, 404]);
  const right = await server.put(`${TABLE}/data/right`, { config: `[${long}, 12345678901234567890]` });
  expect(right.status).toBeLessThan(300);
  expect((await server.get(`${TABLE}/data/right`)).text).toContain("12345678901234567890");
});

it("a whole number of 64 bits keeps its digits in every answer of the record API", async () => {
  const table = `${BRANCH}/tables/counts`;
  await server.put(table, {
    columns: [
      { name: "n", type: "int" },
      { name: "v", type: "vector", vector: { dimension: 2 } },
    ],
  });
  await sql(`INSERT INTO "counts" ("id", "n", "v") VALUES ('large', 9223372036854775807, '{1,2}'), ('small', 7, NULL)`);
  const columns = ["n"];
  const answers = [
    await server.get(`${table}/data/large`),
    await server.post(`${table}/query`, { columns, filter: { id: "large" } }),
    await server.post(`${table}/vectorSearch`, { column: "v", queryVector: [1, 2], columns, consistency: "strong" }),
    await server.post(`${BRANCH}/transaction`, { operations: [{ get: { table: "counts", id: "large", columns } }] }),
    await server.request("PATCH", `${table}/data/large?columns=n`, { v: [2, 1] }),
    await server.post(`${table}/summarize`, { columns, sort: [{ n: "desc" }], page: { size: 1 } }),
    await server.post(`${table}/summarize`, { summaries: { n: { max: "n" } } }),
    await server.post(`${table}/aggregate`, { aggs: { n: { max: { column: "n" } } } }),
  ];
  for (const answer of answers) {
    expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('"n":9223372036854775807') });
  }
  expect((await server.post(`${table}/summarize`, { summaries: { all: { sum: "n" } } })).text).toContain('"all":9223372036854775814');
  expect((await server.post(`${table}/aggregate`, { aggs: { all: { sum: { column: "n" } } } })).text).toContain(
    '"all":9223372036854775814',
  );
  expect((await server.post(`${table}/aggregate`, { aggs: { top: { topValues: { column: "n" } } } })).text).toContain(
    '"$key":9223372036854775807',
  );
  expect((await server.get(`${table}/data/small`)).body.n).toBe(7);
});
