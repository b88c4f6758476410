import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, startServer, type TestServer } from "../support/server.ts";

/** Every limit of docs/limits.md that is a number of things: one below and at the limit it works, one above it is refused and named. */

let server: TestServer;
const branch = "/db/limits:main";
const table = `${branch}/tables/t`;
const DOCUMENT = readFileSync(fileURLToPath(new URL("../../docs/limits.md", import.meta.url)), "utf8");

beforeAll(async () => {
  server = await startServer();
  await server.put(branch);
  const columns = [
    { name: "s", type: "text" },
    { name: "n", type: "int" },
    { name: "j", type: "json" },
    { name: "v", type: "vector", vector: { dimension: 2 } },
  ];
  await server.put(table, { columns });
  await server.put(`${table}/data/a`, { s: "x", n: 1, v: [1, 0] });
});
afterAll(() => server?.stop());

const repeat = <Item>(count: number, item: (i: number) => Item): Item[] => Array.from({ length: count }, (_, i) => item(i));
const nested = (levels: number, open: string, close: string, inner = "") => open.repeat(levels) + inner + close.repeat(levels);
const query = (body: object) => server.post(`${table}/query`, body);
const search = (body: object) => server.post(`${table}/vectorSearch`, { column: "v", queryVector: [1, 0], ...body });
const filter = (expression: unknown) => query({ filter: expression });

interface Limit {
  /** As docs/limits.md names it. */
  documented: string;
  /** As docs/limits.md gives it. */
  value: string;
  max: number;
  min?: number;
  request: (n: number) => Promise<Answer>;
  refusal: string | RegExp;
  status?: number;
}

const LIMITS: Limit[] = [
  {
    documented: "nesting of arrays and objects in a body",
    value: "100 levels",
    max: 100,
    request: (n) => server.post(`${table}/data`, `{"j": ${nested(n - 1, "[", "]")}}`),
    refusal: "nested deeper than 100 levels",
  },
  {
    documented: "name of a database",
    value: "255 characters",
    max: 255,
    request: (n) => server.put(`/db/${"d".repeat(n)}:main`),
    refusal: "database: a name has 1 to 255",
  },
  {
    documented: "name of a database, branch",
    value: "255 characters",
    max: 255,
    request: (n) => server.put(`/db/limits:${"b".repeat(n)}`),
    refusal: "branch: a name has 1 to 255",
  },
  {
    documented: "name of a database, branch, table",
    value: "255 characters",
    max: 255,
    // Names of different lengths that agree in their first 63 characters would collide: each begins with its length.
    request: (n) => server.put(`${branch}/tables/${`t${n}_`.padEnd(n, "x")}`),
    refusal: "table: a name has 1 to 255",
  },
  {
    documented: "name of a database, branch, table or column",
    value: "255 characters",
    max: 255,
    request: (n) => server.post(`${table}/columns`, { name: `c${n}_`.padEnd(n, "x"), type: "int" }),
    refusal: /name: expected a string that matches .*\{1,255\}/,
  },
  {
    documented: "id of a record that is made",
    value: "255 characters",
    max: 255,
    request: (n) => server.put(`${table}/data/${"i".repeat(n)}`, {}),
    refusal: /id/,
  },
  {
    documented: "columns of a table",
    value: "1,000",
    max: 1000,
    request: (n) => server.put(`${branch}/tables/wide${n}`, { columns: repeat(n, (i) => ({ name: `c${i}`, type: "int" })) }),
    refusal: "columns: expected at most 1,000",
  },
  {
    documented: "dimension of a vector column",
    value: "2 to 10,000",
    min: 2,
    max: 10_000,
    request: (n) => server.put(`${branch}/tables/dim${n}`, { columns: [{ name: "v", type: "vector", vector: { dimension: n } }] }),
    refusal: "dimension: expected an integer from 2 to 10,000",
  },
  {
    documented: "records of one bulk insert",
    value: "1,000",
    max: 1000,
    request: (n) => server.post(`${table}/bulk`, { records: repeat(n, () => ({})) }),
    refusal: "records: expected at most 1,000 elements, got 1,001",
  },
  {
    documented: "operations of one transaction",
    value: "1,000",
    max: 1000,
    request: (n) => server.post(`${branch}/transaction`, { operations: repeat(n, () => ({ get: { table: "t", id: "a" } })) }),
    refusal: "operations: expected at most 1,000 elements, got 1,001",
  },
  {
    documented: "`page.size`",
    value: "1 to 1,000",
    min: 1,
    max: 1000,
    request: (n) => query({ page: { size: n } }),
    refusal: "page.size: expected an integer from 1 to 1,000",
  },
  {
    documented: "`page.offset`",
    value: "0 to 49,000",
    min: 0,
    max: 49_000,
    request: (n) => query({ page: { offset: n } }),
    refusal: /page\.offset/,
  },
  {
    documented: "keys of a `sort`",
    value: "16",
    max: 16,
    request: (n) => query({ sort: repeat(n, (i) => ({ [["s", "n", "id", "xata.version"][i % 4] as string]: "asc" })) }),
    refusal: /sort/,
  },
  {
    documented: "entries of `columns`",
    value: "1,000",
    max: 1000,
    request: (n) => query({ columns: repeat(n, () => "s") }),
    refusal: "columns: expected at most 1,000 elements, got 1,001",
  },
  {
    documented: "`ifVersion`",
    value: "0 to 2,147,483,647",
    max: 2_147_483_647,
    request: async (n) => {
      const answer = await server.patch(`${table}/data/a?ifVersion=${n}`, {});
      // A version that the record does not have is a conflict, which is not what is looked at here.
      return answer.status === 422 ? { ...answer, status: 200, body: {} } : answer;
    },
    refusal: "ifVersion: expected an integer from 0 to 2,147,483,647",
  },
  {
    documented: "`size`",
    value: "1 to 1,000",
    min: 1,
    max: 1000,
    request: (size) => search({ size }),
    refusal: "size: expected an integer from 1 to 1,000",
  },
  {
    documented: "`offset`",
    value: "0 to 10,000",
    min: 0,
    max: 10_000,
    request: (offset) => search({ offset }),
    refusal: "offset: expected an integer from 0 to 10,000",
  },
  {
    documented: "`queryVectors`",
    value: "1 to 100",
    min: 1,
    max: 100,
    request: (n) => search({ queryVector: undefined, queryVectors: repeat(n, () => [1, 0]) }),
    refusal: /queryVectors: expected at (most 100|least 1) elements/,
  },
  {
    documented: "nesting |",
    value: "32 levels",
    max: 32,
    request: (n) => filter(JSON.parse(nested(n - 1, '{"$not":', "}", '{"n": 1}'))),
    refusal: /32/,
  },
  {
    documented: "conditions and operators",
    value: "2,000",
    max: 2000,
    request: (n) => filter({ $any: repeat(n - 1, (i) => ({ n: i })) }),
    refusal: /2,?000/,
  },
  {
    documented: "values in all lists",
    value: "20,000",
    max: 20_000,
    request: (n) => filter({ n: { $any: repeat(n, (i) => i) } }),
    refusal: /20,?000/,
  },
  {
    documented: "one text operand",
    value: "100,000 characters",
    max: 100_000,
    request: (n) => filter({ s: { $contains: "x".repeat(n) } }),
    refusal: /100,?000/,
  },
  {
    documented: "a `$pattern` or `$iPattern`",
    value: "1,000 characters",
    max: 1000,
    request: (n) => filter({ s: { $pattern: "x".repeat(n) } }),
    refusal: /1,?000/,
  },
  {
    documented: "a statement",
    value: "500,000 characters",
    max: 500_000,
    request: (n) => server.post(`${branch}/sql`, { statement: "SELECT 1".padEnd(n) }),
    refusal: /500,?000/,
  },
  {
    documented: "statements of one `sql/batch`",
    value: "1,000",
    max: 1000,
    request: (n) => server.post(`${branch}/sql/batch`, { statements: repeat(n, () => ({ statement: "SELECT 1" })) }),
    refusal: /statements.*1,?000/,
  },
];

const toldBy = ({ body }: Answer): string => body.message ?? body.errors?.[0]?.message;

describe("the limit", () => {
  it.each(LIMITS)("$documented $value", async ({ documented, value, max, min, request, refusal, status = 400 }) => {
    const row = DOCUMENT.split("\n").find((line) => line.startsWith(`| ${documented}`));
    expect(row).toContain(value);
    const refused = async (n: number) => {
      const answer = await request(n);
      expect([n, answer.status]).toEqual([n, status]);
      if (typeof refusal === "string") expect(toldBy(answer)).toContain(refusal);
      else expect(toldBy(answer)).toMatch(refusal);
    };
    for (const n of [max - 1, max]) {
      const answer = await request(n);
      expect([n, answer.status < 300, toldBy({ ...answer, body: answer.body ?? {} })]).toEqual([n, true, undefined]);
    }
    await refused(max + 1);
    if (min !== undefined) {
      for (const n of [min, min + 1]) expect([n, (await request(n)).status < 300]).toEqual([n, true]);
      await refused(min - 1);
    }
  });

  it("rows of an answer: 1,000, beyond which it is cut and says so", async () => {
    expect(DOCUMENT).toContain("| rows of an answer | 1,000 |");
    await server.put(`${branch}/tables/rows`, { columns: [{ name: "n", type: "int" }] });
    const count = async () => {
      const { body } = await server.post(`${branch}/sql`, { statement: 'SELECT "n" FROM "rows"' });
      return [body.records.length, body.warning === undefined];
    };
    await server.post(`${branch}/tables/rows/bulk`, { records: repeat(999, (n) => ({ n })) });
    expect(await count()).toEqual([999, true]);
    await server.put(`${branch}/tables/rows/data/x`, {});
    expect(await count()).toEqual([1000, true]);
    await server.put(`${branch}/tables/rows/data/y`, {});
    expect(await count()).toEqual([1000, false]);
  });

  it("patterns are matched in linear time: a thousand stars against a hundred thousand letters", async () => {
    await server.put(`${table}/data/long`, { s: "a".repeat(100_000) });
    const answer = await filter({ s: { $pattern: `${"*a".repeat(499)}*b` } });
    expect(answer).toMatchObject({ status: 200, body: { records: [] } });
  });
});
