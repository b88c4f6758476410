/**
 * Responses that are too large are refused with advice on what to ask for instead, before anything is
 * committed, and the process survives. The sizes are those that were seen to kill it.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, startServer, type TestServer } from "../support/server.ts";

const BRANCH = "/db/budget:main";
const MIB = 2 ** 20;

let server: TestServer;
let pid: number;

const sql = (statement: string, params: unknown[] = []): Promise<Answer> => server.post(`${BRANCH}/sql`, { statement, params });
const repeat = <Value>(count: number, make: (n: number) => Value): Value[] => Array.from({ length: count }, (_, n) => make(n));

function expectRefused(answer: Answer): void {
  expect(answer).toMatchObject({ status: 413, body: { message: expect.stringMatching(/Nothing was changed\. Ask for less at once/) } });
  expect(answer.body.errors).toBeUndefined();
}

/** A table with records of `bytes` of text, and a vector. */
async function fill(table: string, count: number, bytes: number): Promise<void> {
  await server.put(`${BRANCH}/tables/${table}`, {
    columns: [
      { name: "l", type: "text" },
      { name: "n", type: "int" },
      { name: "v", type: "vector", vector: { dimension: 2 } },
    ],
  });
  // One by one, because a statement has a limit of its own.
  const insert = `INSERT INTO "${table}" ("id", "l", "n", "v") SELECT 'r' || n, repeat(chr(97 + n % 26), $1::int), 0, ARRAY[n, 1]::real[] FROM generate_series($2::int, $3::int) n`;
  const step = Math.max(1, Math.floor((32 * MIB) / bytes));
  for (let from = 0; from < count; from += step) {
    expect((await sql(insert, [bytes, from, Math.min(count, from + step) - 1])).status).toBe(200);
  }
}

beforeAll(async () => {
  server = await startServer();
  ({ pid } = server);
  await server.put(BRANCH);
  await fill("small", 1_000, 6_000);
  await fill("large", 8, 10 * MIB);
});
afterAll(() => server.stop());

describe("an answer beyond its budget", () => {
  it("is refused for a transaction that gets one large record a thousand times", async () => {
    const operations = repeat(1_000, () => ({ get: { table: "large", id: "r0" } }));
    expectRefused(await server.post(`${BRANCH}/transaction`, { operations }));
    const few = await server.post(`${BRANCH}/transaction`, { operations: operations.slice(0, 2) });
    expect(few.body.results.map((result: { columns: { l: string } }) => result.columns.l.length)).toEqual([10 * MIB, 10 * MIB]);
  });

  it("is refused for a batch of statements, each within its limit", async () => {
    const statements = repeat(150, () => ({ statement: "SELECT repeat('x', 30000000)" }));
    expectRefused(await server.post(`${BRANCH}/sql/batch`, { statements }));
  });

  it("is refused for a batch that writes, which has then written nothing", async () => {
    const statements = [
      { statement: `UPDATE "large" SET "n" = 7` },
      ...repeat(3, () => ({ statement: `SELECT "l" FROM "large" ORDER BY "id" LIMIT 3` })),
    ];
    expectRefused(await server.post(`${BRANCH}/sql/batch`, { statements }));
    expect((await sql(`SELECT count(*) AS c FROM "large" WHERE "n" = 7`)).body.records).toEqual([{ c: 0 }]);
  });

  it("is refused for a page of large records; a smaller page, and other columns, are answered", async () => {
    const path = `${BRANCH}/tables/large/query`;
    expectRefused(await server.post(path, { page: { size: 1_000 } }));
    expect((await server.post(path, { page: { size: 3 } })).body.records).toHaveLength(3);
    expect((await server.post(path, { page: { size: 1_000 }, columns: ["n"] })).body.records).toHaveLength(8);
  });

  it("is refused for records behind links, from any side", async () => {
    await server.put(`${BRANCH}/tables/holder`, { columns: [{ name: "to", type: "link", link: { table: "large" } }] });
    await server.post(`${BRANCH}/tables/holder/bulk`, { records: repeat(8, (n) => ({ to: `r${n}` })) });
    const path = `${BRANCH}/tables/holder/query`;
    expectRefused(await server.post(path, { columns: ["to.l"] }));
    // One small request returns a large record seven times, through the records that link to it.
    const aliases = repeat(7, (n) => ({ name: "<-holder.to", as: `h${n}`, columns: ["to.l"] }));
    // As one row it may already be too much for the database.
    const answer = await server.post(`${BRANCH}/tables/large/query`, { filter: { id: "r0" }, columns: aliases });
    expect([400, 413]).toContain(answer.status);
    expect(answer.body.message).toMatch(/Nothing was changed\..* (?:for|request) less at once/);
  });

  it("is refused for the records of a vector search", async () => {
    const path = `${BRANCH}/tables/large/vectorSearch`;
    const search = { column: "v", size: 1_000, columns: ["*"], consistency: "strong" };
    expectRefused(await server.post(path, { ...search, queryVector: [1, 1] }));
    expectRefused(await server.post(path, { ...search, queryVectors: repeat(100, (n) => [n, 1]) }));
    expect((await server.post(path, { ...search, size: 2, queryVector: [1, 1] })).body.results).toHaveLength(2);
  });

  it("counts a record as often as it is returned: 100 searches over 1,000 records of 6 KB", async () => {
    const path = `${BRANCH}/tables/small/vectorSearch`;
    const search = { column: "v", size: 1_000, columns: ["*"], consistency: "strong" };
    expectRefused(await server.post(path, { ...search, queryVectors: repeat(100, (n) => [n, 1]) }));
    const five = await server.post(path, { ...search, queryVectors: repeat(5, (n) => [n, 1]) });
    expect(five.body.answers.map((answer: { results: unknown[] }) => answer.results.length)).toEqual(repeat(5, () => 1_000));
    expect(five.body.answers[4].results[999].record.l).toHaveLength(6_000);
  });

  it("is refused for a transaction of updates that return records, which has then updated nothing", async () => {
    const operations = repeat(60, (n) => ({ update: { table: "large", id: `r${n % 8}`, fields: { n: 9 }, columns: ["*"] } }));
    expectRefused(await server.post(`${BRANCH}/transaction`, { operations }));
    expect((await sql(`SELECT max("n") AS n, max("xata.version") AS v FROM "large"`)).body.records).toEqual([{ n: 0, v: 0 }]);
    const silent = operations.map(({ update }) => ({ update: { ...update, columns: undefined } }));
    expect((await server.post(`${BRANCH}/transaction`, { operations: silent })).status).toBe(200);
  });

  it("is refused for a single write that returns more, which has then written nothing; up to the limit it is returned", async () => {
    const inserted = await sql(`INSERT INTO "small" ("id", "l") VALUES ('medium', repeat('x', 20000000)), ('big', repeat('x', 70000000))`);
    expect(inserted.status, JSON.stringify(inserted.body)).toBe(200);
    const path = `${BRANCH}/tables/small/data`;
    for (const send of [
      () => server.patch(`${path}/big?columns=*`, { n: 5 }),
      () => server.post(`${path}/big?columns=*`, { n: 5 }),
      () => server.delete(`${path}/big?columns=*`),
    ])
      expectRefused(await send());
    expect((await sql(`SELECT "n", "xata.version" AS v FROM "small" WHERE "id" = 'big'`)).body.records).toEqual([{ n: null, v: 0 }]);
    const patched = await server.patch(`${path}/medium?columns=*`, { n: 5 });
    expect(patched).toMatchObject({ status: 200, body: { n: 5, xata: { version: 1 } } });
    expect(patched.body.l).toHaveLength(20_000_000);
    expect((await server.delete(`${path}/medium?columns=*`)).body.l).toHaveLength(20_000_000);
    expect((await server.patch(`${path}/big`, { n: 5 })).status).toBe(200);
    expect((await server.delete(`${path}/big`)).status).toBe(204);
  });

  it("is refused for aggregations and summaries over large texts", async () => {
    const path = `${BRANCH}/tables/large`;
    expectRefused(await server.post(`${path}/aggregate`, { aggs: { t: { topValues: { column: "l", size: 1_000 } } } }));
    expectRefused(await server.post(`${path}/summarize`, { columns: ["l"], summaries: { n: { count: "*" } } }));
  });

  it("is cut, not refused, for one statement of SQL, whose further rows are not computed", async () => {
    const { status, body } = await sql(`SELECT repeat('x', 10000000) AS x FROM generate_series(1, 1000)`);
    expect(status).toBe(200);
    expect(body.records).toHaveLength(3);
    expect(body.warning).toContain("32 MiB");
  });

  it("is refused before the commit when column names make it large; as lists it is returned", async () => {
    const list = repeat(1_500, (n) => `1 AS "${"c".repeat(55)}${n}"`).join(", ");
    const statement = `SELECT ${list} FROM generate_series(1, 900)`;
    expectRefused(await sql(statement));
    const lists = await server.post(`${BRANCH}/sql`, { statement, responseType: "array" });
    expect([lists.status, lists.body.rows.length]).toEqual([200, 900]);
    expectRefused(await sql(`UPDATE "small" SET "n" = 9 WHERE "id" <> 'r1' RETURNING ${list}`));
    expect((await sql(`SELECT count(*)::int AS n FROM "small" WHERE "n" = 9`)).body.records).toEqual([{ n: 0 }]);
  });

  it("leaves the server as it was", async () => {
    expect(server.pid).toBe(pid);
    expect(server.isRunning).toBe(true);
    expect(server.log).not.toContain('"status":500');
    expect((await server.get(`${BRANCH}/tables/small/data/r5`)).body.l).toHaveLength(6_000);
  });
});
