import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";

/**
 * What must be refused with a clear 4xx that names the fault, without any change to schemas or records in any
 * branch.
 */

let server: TestServer;
let before: string;
const branch = "/db/bad:main";
const table = `${branch}/tables/t`;

beforeAll(async () => {
  server = await startServer({ args: ["--statement-timeout", "2"] });
  for (const path of [branch, "/db/bad:other", "/db/secret:main"]) {
    await server.put(path);
    const columns = [
      { name: "v", type: "vector", vector: { dimension: 2 } },
      { name: "s", type: "string" },
      { name: "n", type: "int" },
      { name: "j", type: "json" },
    ];
    await server.put(`${path}/tables/t`, { columns });
    for (let i = 0; i < 5; i++) await server.put(`${path}/tables/t/data/r${i}`, { v: [i, 1], s: `text ${i}`, n: i, j: '{"a": 1}' });
  }
  before = await fingerprint();
});
afterAll(() => server?.stop());

/** A hash over all that is stored. */
async function fingerprint(): Promise<string> {
  const hash = createHash("sha256");
  for (const path of [branch, "/db/bad:other", "/db/secret:main"]) {
    hash.update((await server.get(`${path}/schema`)).text);
    const { body } = await server.post(`${path}/tables/t/query`, { sort: { id: "asc" }, page: { size: 1000 } });
    hash.update(JSON.stringify(body.records));
  }
  hash.update((await server.get("/dbs")).text);
  hash.update((await server.get("/dbs/bad")).text);
  return hash.digest("hex");
}

interface Case {
  what: string;
  method?: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  status?: number;
  message: string | RegExp;
}

const insert = (what: string, record: unknown, message: string | RegExp): Case => ({ what, path: `${table}/data`, body: record, message });
const sql = (what: string, statement: string, message: string | RegExp, params?: unknown[]): Case => ({
  what: `SQL: ${what}`,
  path: `${branch}/sql`,
  body: params === undefined ? { statement } : { statement, params },
  message,
});
const vectorSearch = (what: string, body: object, message: string | RegExp): Case => ({
  what: `vectorSearch: ${what}`,
  path: `${table}/vectorSearch`,
  body: { column: "v", queryVector: [1, 2], ...body },
  message,
});
const raw = (what: string, body: string | Buffer, message: string | RegExp, status = 400): Case => ({
  what,
  path: `${table}/data`,
  body,
  message,
  status,
});

const CASES: Case[] = [
  insert("a vector of the wrong dimension", { v: [1, 2, 3] }, /v.*3.*2/),
  insert("1e300 in a vector", { v: [1, 1e300] }, "v"),
  raw("NaN in a vector", '{"v": [1, NaN]}', "The body is not valid JSON: Unexpected token 'N'"),
  raw("1e999 in a vector", '{"v": [1, 1e999]}', "v[1]"),
  insert("a text in a vector", { v: [1, "NaN"] }, "v"),
  insert("an unknown column", { nothing: 1 }, "nothing"),
  insert("an int beyond 64 bits", { n: 1e30 }, "n"),
  insert("a text with NUL", { s: "a\u0000b" }, "s: text cannot contain the character NUL"),
  raw("half a surrogate pair", '{"s": "\\ud800"}', "s: text contains half of a surrogate pair"),
  raw("a body that is not JSON", "s=1", "not valid JSON"),
  raw("a body that is cut off", '{"s": "abc', "not valid JSON"),
  raw(
    "a body that is not UTF-8",
    Buffer.from([0x7b, 0x22, 0x73, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]),
    "not valid UTF-8: the error is at byte 6",
  ),
  raw("a body that is too deep", `{"j": ${"[".repeat(200)}${"]".repeat(200)}}`, "nested deeper than 100 levels"),
  raw("a body that is far too deep", "[".repeat(200_000), "not valid JSON"),
  raw("__proto__ as a key", '{"s": "x", "__proto__": {"s": "y"}}', '"__proto__" is not allowed'),
  raw("__proto__ as a key deep inside", '{"j": {"a": [{"__proto__": 1}]}}', '"__proto__" is not allowed'),
  {
    what: "a body of another type",
    path: `${table}/data`,
    body: '{"s": "x"}',
    headers: { "content-type": "text/plain" },
    status: 415,
    message: "application/json",
  },
  {
    what: "a form",
    path: `${table}/data`,
    body: "s=x",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    status: 415,
    message: "application/json",
  },
  {
    what: "another character set",
    path: `${table}/data`,
    body: '{"s": "x"}',
    headers: { "content-type": "application/json; charset=latin1" },
    status: 415,
    message: "application/json",
  },
  {
    what: "a compressed body",
    path: `${table}/data`,
    body: '{"s": "x"}',
    headers: { "content-encoding": "gzip" },
    status: 415,
    message: "compressed",
  },
  { what: "an unknown table", path: `${branch}/tables/nothing/data`, body: {}, status: 404, message: "nothing" },
  { what: "an unknown branch", path: "/db/bad:nothing/tables/t/data", body: {}, status: 404, message: "nothing" },
  { what: "an unknown database", path: "/db/nothing:main/tables/t/data", body: {}, status: 404, message: "nothing" },
  { what: "an encoded slash in a table's name", path: `${branch}/tables/a%2Fb/data`, body: {}, message: "table: a name has" },
  { what: "an encoded quote in a table's name", method: "PUT", path: `${branch}/tables/a%22b`, message: "table: a name has" },
  { what: "an encoded NUL in an id", method: "PUT", path: `${table}/data/a%00b`, body: {}, message: "NUL" },
  { what: "a bad escape in an id", method: "PUT", path: `${table}/data/a%zz`, body: {}, message: "not valid percent-encoding" },
  { what: "an overlong escape in an id", method: "PUT", path: `${table}/data/%c0%af`, body: {}, message: "not valid percent-encoding" },
  { what: "an id with a slash, to be made", method: "PUT", path: `${table}/data/a%2Fb`, body: {}, message: /id/ },
  { what: "an id of 256 characters, to be made", method: "PUT", path: `${table}/data/${"x".repeat(256)}`, body: {}, message: /id/ },
  { what: "a path without branch", method: "PUT", path: "/db/bad", message: "{database}:{branch}" },
  { what: "a path with two colons", method: "PUT", path: "/db/bad:main:x", message: "{database}:{branch}" },
  { what: "a branch name of 256 characters", method: "PUT", path: `/db/bad:${"x".repeat(256)}`, message: "branch: a name has 1 to 255" },
  { what: "a branch name with a space", method: "PUT", path: "/db/bad:a%20b", message: "branch: a name has" },
  {
    what: "an unknown query parameter",
    method: "PUT",
    path: `${table}/data/x?createOnyl=true`,
    body: {},
    message: 'expected "columns", "createOnly", "ifVersion"',
  },
  {
    what: "a createOnly that is not a boolean",
    method: "PUT",
    path: `${table}/data/x?createOnly=1`,
    body: {},
    message: "createOnly: expected true or false",
  },
  {
    what: "an ifVersion that is not a number",
    method: "PUT",
    path: `${table}/data/x?ifVersion=a`,
    body: {},
    message: "ifVersion: expected an integer",
  },
  {
    what: "a negative ifVersion",
    method: "PUT",
    path: `${table}/data/x?ifVersion=-1`,
    body: {},
    message: "ifVersion: expected an integer",
  },
  { what: "unknown columns to answer with", method: "PUT", path: `${table}/data/x?columns=nothing`, body: {}, message: "nothing" },
  {
    what: "a column of an unknown language",
    path: `${table}/columns`,
    body: { name: "c", type: "text", language: "klingon" },
    message: 'language: expected "arabic", ',
  },
  {
    what: "a language for numbers",
    path: `${table}/columns`,
    body: { name: "c", type: "int", language: "english" },
    message: "language is for columns of type string, text, email, multiple",
  },
  {
    what: "an unknown language for a column",
    method: "PATCH",
    path: `${table}/columns/s`,
    body: { language: "klingon" },
    message: 'language: expected "arabic", ',
  },
  {
    what: "a change of a column that says nothing",
    method: "PATCH",
    path: `${table}/columns/s`,
    body: { language: null },
    message: 'expected an object with exactly one of "name" or "language", got none',
  },
  vectorSearch("the zero vector with cosine", { queryVector: [0, 0] }, "queryVector"),
  vectorSearch("size 0", { size: 0 }, "size: expected an integer from 1 to 1,000, got 0"),
  vectorSearch("size 1e9", { size: 1e9 }, "size: expected an integer from 1 to 1,000, got 1000000000"),
  vectorSearch("an unknown function", { similarityFunction: "euclid" }, "similarityFunction"),
  vectorSearch("an unknown operator", { filter: { n: { $foo: 1 } } }, "$foo"),
  vectorSearch("__proto__ in a filter", { filter: JSON.parse('{"n": {"__proto__": 1}}') }, "__proto__"),
  sql("two statements in one", 'SELECT 1; DELETE FROM "t"', /statement/),
  sql("a syntax error", "SELEC 1", /SELEC/),
  sql("an unknown table", 'DELETE FROM "nothing"', "nothing"),
  sql("an unknown column", 'UPDATE "t" SET "nothing" = 1', "nothing"),
  sql("CREATE TABLE", "CREATE TABLE x (a int)", /./),
  sql("DROP TABLE", 'DROP TABLE "t"', /./),
  sql("ALTER TABLE", 'ALTER TABLE "t" ADD COLUMN x int', /./),
  sql("TRUNCATE", 'TRUNCATE "t"', /./),
  sql("COPY", `COPY "t" TO '/tmp/x'`, /./),
  sql("SET", "SET search_path = 'secret:main'", /./),
  sql("RESET", "RESET ROLE", /./),
  sql("DO", "DO $$ BEGIN DELETE FROM t; END $$", /./),
  sql("GRANT", 'GRANT ALL ON "t" TO public', /./),
  sql("BEGIN", "BEGIN", /./),
  sql("COMMIT", "COMMIT", /./),
  sql("another branch", 'SELECT * FROM "bad:other"."t"', /./),
  sql("another database", 'DELETE FROM "secret:main"."t"', /./),
  sql("the catalogs", "SELECT * FROM pg_catalog.pg_class", /./),
  sql("the catalogs, unqualified", "SELECT * FROM pg_class", /./),
  sql("a CTE that changes another branch", 'WITH x AS (DELETE FROM "bad:other"."t" RETURNING 1) SELECT * FROM x', /./),
  sql("a function with side effects", "SELECT set_config('search_path', 'secret:main', false)", /./),
  sql("pg_read_file", "SELECT pg_read_file('/etc/passwd')", /./),
  sql("pg_sleep", "SELECT pg_sleep(60)", /./),
  sql("a missing parameter", 'DELETE FROM "t" WHERE "id" = $1', /\$1/),
  sql("a missing second parameter", 'DELETE FROM "t" WHERE "id" = $2', /\$1|\$2/, ["a"]),
  sql("a surplus parameter", 'DELETE FROM "t" WHERE "id" = $1', /param/, ["a", "b"]),
  sql("a parameter of the wrong type", 'DELETE FROM "t" WHERE "n" = $1', /./, ["abc"]),
  sql("a system column written", 'UPDATE "t" SET "xata.version" = 9', /version/),
  sql("an empty statement", "", "statement: expected a string that is not empty"),
  sql("a comment alone", "-- nothing", /./),
  {
    what: "SQL: params that are not a list",
    path: `${branch}/sql`,
    body: { statement: "SELECT 1", params: "a" },
    message: "params: expected an array or null",
  },
  {
    what: "a transaction that is not a list",
    path: `${branch}/transaction`,
    body: { operations: {} },
    message: "operations: expected an array",
  },
  { what: "a missing body", path: `${branch}/sql`, message: "needs a JSON body" },
  { what: "a branch's name for copying that is none", method: "PUT", path: "/db/bad:new?from=a/b", message: "from: a name has" },
];

describe("bad input", () => {
  it.each(CASES)("$what", async ({ method = "POST", path, body, headers, status = 400, message }) => {
    const answer = await server.request(method, path, body, headers);
    expect(answer.status).toBe(status);
    const told = answer.body.message ?? answer.body.errors?.[0]?.message;
    if (typeof message === "string") expect(told).toContain(message);
    else expect(told).toMatch(message);
    expect(answer.body.id).toBe(answer.headers["x-request-id"]);
    expect(answer.text).not.toMatch(/\bat .*\.(js|ts):\d+/);
    expect(await fingerprint()).toBe(before);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("a statement that runs too long is ended (504) without any change, and the server continues", async () => {
    const statement =
      'WITH gone AS (DELETE FROM "t" RETURNING "n") SELECT count(*) FROM gone, generate_series(1, 100000) a, generate_series(1, 100000) b';
    const slow = await server.post(`${branch}/sql`, { statement });
    // Refused for its functions (400) or ended in time (504), but never run to its end.
    expect([400, 504]).toContain(slow.status);
    const cartesian = `SELECT count(*) FROM ${Array.from({ length: 14 }, (_, i) => `"t" t${i}`).join(", ")}`;
    const ended = await server.post(`${branch}/sql`, { statement: `WITH gone AS (DELETE FROM "t" RETURNING 1) ${cartesian}` });
    expect(ended).toMatchObject({ status: 504, body: { id: expect.any(String), message: expect.stringMatching(/2 s|time/) } });
    expect(ended.headers["retry-after"]).toBe("1");
    // The session may have to be replaced, and until then there are answers of 503.
    await expect.poll(fingerprint).toBe(before);
    expect((await server.get("/metrics")).text).toMatch(/^lodestone_statement_timeouts_total [1-9]/m);
  });
});
