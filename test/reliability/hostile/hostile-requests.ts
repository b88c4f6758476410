/**
 * Hostile but valid requests. Each is allowed by the API, with several sizes, depths and counts at their
 * limits, or just beyond them. Seeded. Requests that write carry a mark, so that one can tell whether a
 * request answered with an error has written something all the same.
 */
import { GREEDY, MANY_CTES, PRODUCTS_OF_CONSTANTS, UNINTERRUPTIBLE } from "../../records/sql/attacks.ts";
import type { Random } from "../workload/random.ts";
import type { SendOptions } from "./client.ts";
import { BRANCH, VECTOR, words } from "./stage.ts";

export interface HostileRequest {
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** Appears in `written.mark` of whatever the request writes. */
  readonly mark?: string;
  readonly options?: SendOptions;
}

type Make = (random: Random, mark: string) => Omit<HostileRequest, "kind" | "method"> & { readonly method?: string };

const times = <Item>(count: number, item: (i: number) => Item): Item[] => Array.from({ length: count }, (_, i) => item(i));
const post = (path: string, body: unknown): { path: string; body: string } => ({ path: BRANCH + path, body: JSON.stringify(body) });
const sql = (statement: string, params?: unknown[]) => post("/sql", params === undefined ? { statement } : { statement, params });
const writes = (mark: string, path: string, body: unknown) => ({ ...post(path, body), mark });
/** Mostly at the limit, now and then small, and sometimes one beyond. */
const near = (random: Random, limit: number): number => {
  const kind = random.below(10);
  return kind === 0 ? limit + 1 : kind < 3 ? 1 + random.below(limit) : limit;
};
const nest = (levels: number, open: string, inner: string, close: string): string => open.repeat(levels) + inner + close.repeat(levels);
const nestedFilter = (levels: number, inner: object): object => {
  let filter = inner;
  for (let i = 0; i < levels; i++) filter = i % 2 === 0 ? { $not: filter } : { $any: [filter] };
  return filter;
};
const numbers = (random: Random, dimension: number): number[] => times(dimension, () => random.next() * 2 - 1);

const KINDS: Readonly<Record<string, Make>> = {
  "text search: 1,024 words, fuzziness 2": (random) =>
    post("/tables/texts/search", {
      query: times(near(random, 1_024), (i) => `${words(random, 1)}${i}`).join(" "),
      fuzziness: 2,
      language: random.of([undefined, "english"]),
      page: { size: 200, offset: random.of([0, 800]) },
    }),
  "text search: phrases in long texts": () =>
    post("/search", { query: `"yyyyy yyyyy" -"w x y" ${'"w w" '.repeat(30)}`, syntax: "websearch", page: { size: 200 } }),
  "words and vectors": (random) =>
    post(`/tables/${random.of(["small", "big", "written"])}/search`, {
      query: `${words(random, 60)} yyyyy`,
      fuzziness: 2,
      prefix: "phrase",
      vector: { column: "v", queryVector: numbers(random, VECTOR.small) },
      fusion: { method: random.of(["standardized", "rrf", "linear"]), vectorWeight: random.of([0, 0.5, 1]) },
      explain: true,
      page: { size: 200, offset: random.of([0, 800]) },
    }),
  "text search: all tables": (random) =>
    post("/search", { query: `${words(random, 8)} yyyyy w`, fuzziness: 2, prefix: "phrase", page: { size: 200 } }),
  "compare a large schema": (random) => {
    const columns = times(random.of([1_000, 1_001, 500]), (i) => ({ name: `c${i}`, type: "string" }));
    return post("/schema/compare", { schema: { tables: times(random.of([1, 120]), (i) => ({ name: `t${i}`, columns })) } });
  },
  "compare with many operations": (random) => {
    const schemaOperations = times(near(random, 10_000), (i) => ({
      renameTable: { oldName: i % 2 ? "b" : "a", newName: i % 2 ? "a" : "b" },
    }));
    const tables = times(60, (t) => ({ name: t === 0 ? "a" : `t${t}`, columns: times(500, (i) => ({ name: `c${i}`, type: "int" })) }));
    return post("/schema/compare", { schema: { tables }, schemaOperations });
  },
  "plan a large schema": () =>
    post("/migrations/plan", {
      tables: times(100, (i) => ({ name: `p${i}`, columns: times(1_000, (c) => ({ name: `c${c}`, type: "int" })) })),
    }),
  "sql: wide and long": (random) =>
    sql(`SELECT ${times(near(random, 1_600), (i) => `g AS c${i}`).join(", ")} FROM generate_series(1, 1000) g`),
  "sql: one long value": (random) => sql(`SELECT repeat('x', ${random.of([30_000_000, 120_000_000, 600_000_000])}) AS s`),
  "sql: batch of long values": (random) =>
    post("/sql/batch", { statements: times(near(random, 150), () => ({ statement: "SELECT repeat('x', 30000000) AS s" })) }),
  "sql: batch of a thousand": (random) =>
    post("/sql/batch", { statements: times(near(random, 1_000), () => ({ statement: 'SELECT * FROM "small" LIMIT 3' })) }),
  "sql: deep json": (random) =>
    sql(`SELECT (repeat('[', ${random.of([100, 900, 6_000])}) || repeat(']', ${random.of([100, 900, 6_000])}))::jsonb AS j`),
  "sql: deep json, written": (random, mark) =>
    writes(mark, "/sql", {
      statement: `INSERT INTO "written" ("mark", "j") SELECT $1, (repeat('[', n) || repeat(']', n))::jsonb FROM (SELECT ${random.of([100, 900, 6_000])} AS n) AS x RETURNING *`,
      params: [mark],
    }),
  "sql: aggregates of everything": () => sql(`SELECT json_agg("s") AS j, array_agg("s") AS a, string_agg("s", ',') AS t FROM "small"`),
  "sql: a cross join": (random) => sql(`SELECT count(*) FROM "small" a, "small" b${random.of(["", ', "small" c'])} WHERE a."n" <> b."n"`),
  "sql: a sort that spills": () => sql(`SELECT a."s" FROM "small" a, "small" b ORDER BY a."s" || b."s" LIMIT 1`),
  "sql: a long statement": (random) => sql(`SELECT ${nest(random.of([50, 2_000, 50_000]), "(", "1", ")")} AS n`),
  "sql: many parameters": (random) => {
    const count = near(random, 32_767);
    return sql(
      `SELECT ${times(Math.min(count, 1_600), (i) => `$${i + 1}::int AS c${i}`).join(",")}`,
      times(count, (i) => i),
    );
  },
  "sql: rows written, returned": (random, mark) =>
    writes(mark, "/sql", {
      statement: `INSERT INTO "written" ("mark", "s") SELECT $1, repeat('z', 20000) FROM generate_series(1, ${random.of([1_000, 3_000])}) RETURNING *`,
      params: [mark],
    }),
  "sql: a huge row written": (random, mark) =>
    writes(mark, "/sql", {
      statement: `INSERT INTO "written" ("mark", "s", "v") VALUES ($1, repeat('z', ${random.of([50_000_000, 140_000_000, 300_000_000])}), ARRAY[1,0,0,0,0,0,0,0]::real[])`,
      params: [mark],
    }),
  "sql: fills the database's memory": () => sql(GREEDY),
  "sql: cannot be interrupted": (random) => sql(random.of([UNINTERRUPTIBLE, PRODUCTS_OF_CONSTANTS])),
  "sql: thousands of queries in a WITH": () => sql(MANY_CTES),
  "sql: as many parts as may be": (random) => sql(`SELECT 1 WHERE 1 IN (${"1,".repeat(near(random, 199_992))}1)`),
  "sql: too deep for the parser": () => sql(`SELECT ${"1 + ".repeat(120_000)}1`),
  "transaction: gets of big records": (random) =>
    post("/transaction", { operations: times(near(random, 1_000), () => ({ get: { table: "big", id: "big0" } })) }),
  "transaction: updates that answer": (random, mark) =>
    writes(mark, "/transaction", {
      operations: [
        { insert: { table: "written", record: { mark } } },
        ...times(random.of([60, 999]), (i) => ({ update: { table: "big", id: `big${i % 5}`, fields: { l: "big0" }, columns: ["*"] } })),
      ],
    }),
  "transaction: inserts that answer": (random, mark) =>
    writes(mark, "/transaction", {
      operations: times(near(random, 1_000), () => ({
        insert: { table: "written", record: { mark, s: "t".repeat(15_000) }, columns: ["*"] },
      })),
    }),
  "transaction: fails at its end": (random, mark) =>
    writes(mark, "/transaction", {
      operations: [
        ...times(near(random, 999), () => ({ insert: { table: "written", record: { mark } } })),
        { update: { table: "written", id: "none", fields: {} } },
      ],
    }),
  "bulk: many and large": (random, mark) =>
    writes(mark, "/tables/written/bulk", {
      records: times(near(random, 1_000), () => ({ mark, s: "b".repeat(18_000), v: numbers(random, VECTOR.small) })),
    }),
  "record: as large as may be": (random, mark) =>
    writes(mark, "/tables/written/data?columns=*", { mark, s: "r".repeat(random.of([15_000_000, 20_900_000])) }),
  "query: pages of big records": (random) => post("/tables/big/query", { page: { size: near(random, 1_000) }, columns: ["*", "l.*"] }),
  "query: a thousand of 6 KB, linked": (random) =>
    post("/tables/small/query", { page: { size: near(random, 1_000) }, columns: ["*", "l.*", "l.l.*", "l.l.l.*"] }),
  "query: records that link back": () =>
    post("/tables/small/query", {
      columns: ["*", { name: "<-small.l", as: "back", limit: 1_000, columns: ["*"] }],
      filter: { id: "small0" },
    }),
  "query: a filter at its limits": (random) =>
    post("/tables/small/query", {
      filter: nestedFilter(random.of([14, 28, 30, 40]), { $any: times(near(random, 1_900), (i) => ({ n: i })) }),
      page: { size: 1_000, offset: 49_000 },
    }),
  "query: lists and patterns": (random) =>
    post("/tables/texts/query", {
      filter: { $all: [{ s: { $any: times(near(random, 19_990), (i) => `v${i}`) } }, { s: { $iPattern: `*${"w*".repeat(499)}` } }] },
    }),
  "query: patterns over long texts": () => post("/tables/texts/query", { filter: { s: { $pattern: `${"*w".repeat(496)}*zzzq` } } }),
  "query: sixteen keys": () =>
    post("/tables/small/query", { sort: times(16, (i) => ({ [["s", "n", "l.s", "d"][i % 4]!]: "desc" })), page: { size: 1_000 } }),
  "vectors: a hundred queries, all columns": (random) =>
    post(`/tables/${random.of(["small", "big"])}/vectorSearch`, {
      column: "v",
      queryVectors: times(near(random, 100), () => numbers(random, VECTOR.small)),
      size: 1_000,
      columns: ["*"],
      consistency: random.of(["strong", "eventual"]),
    }),
  "vectors: filtered by patterns": (random) =>
    post("/tables/small/vectorSearch", {
      column: "v",
      queryVectors: times(100, () => numbers(random, VECTOR.small)),
      size: 1_000,
      filter: nestedFilter(20, { $any: times(200, (i) => ({ s: { $iContains: `w${i}` } })) }),
    }),
  "aggregate: everything at once": (random) => {
    const leaf = { topValues: { column: "s", size: 1_000 } };
    const nested = {
      dateHistogram: { column: "d", interval: "1d", aggs: { top: { topValues: { column: "n", size: 1_000, aggs: { leaf } } } } },
    };
    return post("/tables/small/aggregate", {
      aggs: Object.fromEntries(
        times(near(random, 100), (i) => [
          `a${i}`,
          [
            nested,
            { percentiles: { column: "n", percentiles: times(100, (p) => p + 0.5) } },
            { numericHistogram: { column: "n", interval: 0.1 } },
            leaf,
          ][i % 4],
        ]),
      ),
    });
  },
  "summarize: a hundred summaries": (random) =>
    post("/tables/small/summarize", {
      columns: ["s", "n"],
      summaries: Object.fromEntries(times(near(random, 100), (i) => [`s${i}`, { max: "s" }])),
      page: { size: 1_000 },
    }),
  "json: a quarter of a million keys": (random) => ({
    path: `${BRANCH}/tables/small/query`,
    body: `{"filter":{${times(near(random, 249_990), (i) => `"k${i}":1`).join(",")}}}`,
  }),
  "json: a million lists": (random, mark) => ({
    path: `${BRANCH}/tables/written/data`,
    body: `{"mark":"${mark}","j":[${"[],".repeat(near(random, 999_990))}[]]}`,
    mark,
  }),
  "json: four million numbers": (random) => ({
    path: `${BRANCH}/tables/small/vectorSearch`,
    body: `{"column":"v","queryVector":[${"1,".repeat(near(random, 3_999_990))}1]}`,
  }),
  "json: one text of 20 MB that is escaped": (_, mark) => ({
    path: `${BRANCH}/tables/written/data`,
    body: `{"mark":"${mark}","s":"${"\\u00e4".repeat(3_400_000)}"}`,
    mark,
  }),
  "json: one text of 20 MB": (random, mark) => ({
    path: `${BRANCH}/tables/written/data`,
    body: `{"mark":"${mark}","s":"${random.of(["x", "жx"]).repeat(near(random, 6_600_000))}"}`,
  }),
  "json: one text of 20 MB, all quotes": (random, mark) => ({
    path: `${BRANCH}/tables/written/data`,
    body: `{"mark":"${mark}","${random.of(["s", "j"])}":"${'\\"'.repeat(near(random, 9_990_000))}"}`,
  }),
  "json: one text of 20 MB, all backslashes": (random, mark) => ({
    path: `${BRANCH}/tables/written/data`,
    body: `{"mark":"${mark}","j":"[\\"${"\\\\".repeat(2 * near(random, 4_990_000))}\\"]"}`,
  }),
  "json: broken at its end": () => ({ path: `${BRANCH}/tables/written/data`, body: `{"s":"${"x".repeat(20_000_000)}"` }),
  "answer: taken slowly": () => ({
    ...post("/tables/small/query", { page: { size: 1_000 }, columns: ["*"] }),
    options: { bytesPerSecond: 2_000_000, leaveAfterMs: 20_000 },
  }),
  "not ASCII: one record, answered": (random, mark) =>
    writes(mark, "/tables/written/data?columns=*", { mark, s: "жx".repeat(near(random, 6_600_000)) }),
  "not ASCII: many records": (random, mark) =>
    writes(mark, "/tables/written/bulk?columns=*", { records: times(near(random, 1_000), () => ({ mark, s: "ж\\".repeat(4_500) })) }),
  "not ASCII: a parameter, answered": (random, mark) =>
    writes(mark, "/sql", {
      statement: 'INSERT INTO "written" ("mark", "s") VALUES ($1, $2) RETURNING *',
      params: [mark, "жx".repeat(near(random, 6_600_000))],
    }),
  "not ASCII: a value of SQL": (random) => sql(`SELECT repeat('жx', ${random.of([2_000_000, 5_000_000, 10_000_000])}) AS s`),
  "client: goes away": (random) => ({
    ...sql("SELECT count(*) FROM generate_series(1, 30000000)"),
    options: { leaveAfterMs: 200 + random.below(1_500) },
  }),
  "the description": () => ({ method: "GET", path: "/openapi.json", body: "" }),
};

export const HOSTILE_KINDS: readonly string[] = Object.keys(KINDS);

export function hostileRequest(kind: string, random: Random, mark: string): HostileRequest {
  return { kind, method: "POST", ...KINDS[kind]!(random, mark) };
}
