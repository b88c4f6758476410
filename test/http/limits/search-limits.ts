/** Limits of vector search, filters, SQL, aggregations and text search. */
import { expect } from "vitest";
import { api, BRANCH, type Limit, nested, repeat, TABLE } from "./limit.ts";

export const SEARCH_LIMITS: Limit[] = [
  {
    documented: "`size`",
    value: "1 to 1,000",
    min: 1,
    max: 1000,
    request: (size) => api.search({ size }),
    refusal: "size: expected an integer from 1 to 1,000",
  },
  {
    documented: "`offset`",
    value: "0 to 10,000",
    min: 0,
    max: 10_000,
    request: (offset) => api.search({ offset }),
    refusal: "offset: expected an integer from 0 to 10,000",
  },
  {
    documented: "`queryVectors`",
    value: "1 to 100",
    min: 1,
    max: 100,
    request: (n) => api.search({ queryVector: undefined, queryVectors: repeat(n, () => [1, 0]) }),
    refusal: /queryVectors: expected at (most 100|least 1) elements/,
  },
  {
    documented: "nesting of a filter",
    value: "32 levels",
    max: 32,
    request: (n) => api.filter(JSON.parse(nested(n - 1, '{"$not":', "}", '{"n": 1}'))),
    refusal: /32/,
  },
  {
    documented: "conditions and operators",
    value: "2,000",
    max: 2000,
    request: (n) => api.filter({ $any: repeat(n - 1, (i) => ({ n: i })) }),
    refusal: /2,?000/,
  },
  {
    documented: "values in all lists",
    value: "20,000",
    max: 20_000,
    request: (n) => api.filter({ n: { $any: repeat(n, (i) => i) } }),
    refusal: /20,?000/,
  },
  {
    documented: "one text operand",
    value: "100,000 characters",
    max: 100_000,
    request: (n) => api.filter({ s: { $contains: "x".repeat(n) } }),
    refusal: /100,?000/,
  },
  {
    documented: "a `$pattern` or `$iPattern`",
    value: "1,000 characters",
    max: 1000,
    request: (n) => api.filter({ s: { $pattern: "x".repeat(n) } }),
    refusal: /1,?000/,
  },
  {
    documented: "a statement",
    value: "500,000 characters",
    max: 500_000,
    request: (n) => api.server.post(`${BRANCH}/sql`, { statement: "SELECT 1".padEnd(n) }),
    refusal: /500,?000/,
  },
  {
    documented: "parts of a statement",
    value: "200,000",
    max: 200_000,
    // The rest of the statement has six parts. Of values that are equal PostgreSQL makes one array.
    request: (n) => api.sql(`SELECT 1 WHERE 1 IN (${"1,".repeat(n - 7)}1)`),
    refusal: /200,?000 parts/,
  },
  {
    documented: "statements of one `sql/batch`",
    value: "1,000",
    max: 1000,
    request: (n) => api.server.post(`${BRANCH}/sql/batch`, { statements: repeat(n, () => ({ statement: "SELECT 1" })) }),
    refusal: /statements.*1,?000/,
  },
  {
    documented: "links that a filter's path follows",
    value: "8",
    max: 8,
    request: (n) => api.filter({ [`${"self.".repeat(n)}s`]: "x" }),
    refusal: "more than 8 links",
  },
  {
    documented: "steps of a filter's path into `json`",
    value: "32",
    max: 32,
    request: (n) => api.filter({ [`j${"->a".repeat(n)}`]: "x" }),
    refusal: "at most 32 are allowed",
  },
  {
    documented: "parameters of a statement",
    value: "32,767",
    max: 32_767,
    request: (n) =>
      api.sql(
        `SELECT cardinality(ARRAY[${repeat(n, (i) => `$${i + 1}`).join(",")}])`,
        repeat(n, () => "x"),
      ),
    refusal: "params has 32768 values; at most 32767 are allowed",
  },
  {
    documented: "aggregations of one request",
    value: "100",
    max: 100,
    request: (n) => api.aggregate(Object.fromEntries(repeat(n, (i) => [`a${i}`, { count: "*" }]))),
    refusal: "at most 100 aggregations",
  },
  {
    documented: "nesting of aggregations",
    value: "5 levels",
    max: 5,
    request: (n) => {
      let aggs: object = { a: { count: "*" } };
      for (let level = 1; level < n; level++) aggs = { a: { topValues: { column: "n", aggs } } };
      return api.aggregate(aggs);
    },
    refusal: "nested deeper than 5 levels",
  },
  {
    documented: "`percentiles` of one aggregation",
    value: "1 to 100",
    min: 1,
    max: 100,
    request: (n) => api.aggregate({ a: { percentiles: { column: "n", percentiles: repeat(n, (i) => i) } } }),
    refusal: "an array of 1 to 100 numbers",
  },
  {
    documented: "`size` of `topValues`",
    value: "1 to 1,000",
    min: 1,
    max: 1000,
    request: (size) => api.aggregate({ a: { topValues: { column: "n", size } } }),
    refusal: /size/,
  },
  {
    documented: "buckets of a histogram",
    value: "10,000",
    max: 10_000,
    request: async (n) => {
      const many = `${BRANCH}/tables/many`;
      await api.server.put(many, { columns: [{ name: "n", type: "int" }] });
      await api.sql('DELETE FROM "many"');
      expect((await api.sql('INSERT INTO "many" ("n") SELECT generate_series(1, $1::int)', [n])).body.rowCount).toBe(n);
      return api.server.post(`${many}/aggregate`, { aggs: { a: { numericHistogram: { column: "n", interval: 1 } } } });
    },
    refusal: "more than 10000 buckets",
  },
  {
    documented: "`summaries` of one request",
    value: "100",
    max: 100,
    request: (n) => api.server.post(`${TABLE}/summarize`, { summaries: Object.fromEntries(repeat(n, (i) => [`s${i}`, { count: "*" }])) }),
    refusal: "at most 100 are allowed",
  },
  {
    documented: "`page.size` of `summarize`",
    value: "1 to 1,000",
    min: 1,
    max: 1000,
    request: (size) => api.server.post(`${TABLE}/summarize`, { columns: ["n"], page: { size } }),
    refusal: "page.size: expected an integer from 1 to 1,000",
  },
  {
    documented: "`query`",
    value: "20,000 characters",
    max: 20_000,
    request: (n) => api.textSearch({ query: "word".padEnd(n, " word") }),
    refusal: "query has 20001 characters; at most 20000",
  },
  {
    documented: "phrases and -words of a `query`",
    value: "32",
    max: 32,
    request: (n) => api.textSearch({ query: repeat(n, (i) => `-w${i}`).join(" "), syntax: "websearch" }),
    refusal: "query has 33 phrases and -words; at most 32",
  },
  {
    documented: "`fuzziness`",
    value: "0 to 2",
    min: 0,
    max: 2,
    request: (fuzziness) => api.textSearch({ fuzziness }),
    refusal: "fuzziness: expected an integer from 0 to 2",
  },
  {
    documented: "`page.size` of a text search",
    value: "0 to 200",
    min: 0,
    max: 200,
    request: (size) => api.textSearch({ page: { size } }),
    refusal: "page.size: expected an integer from 0 to 200",
  },
  {
    documented: "`page.offset` of a text search",
    value: "0 to 800",
    min: 0,
    max: 800,
    request: (offset) => api.textSearch({ page: { offset } }),
    refusal: "page.offset: expected an integer from 0 to 800",
  },
  {
    documented: "`boosters`",
    value: "32",
    max: 32,
    request: (n) => api.textSearch({ boosters: repeat(n, () => ({ numericBooster: { column: "n", factor: 2 } })) }),
    refusal: /boosters: expected at most 32 elements/,
  },
  {
    documented: "`weight` of a target",
    value: "1 to 10",
    min: 1,
    max: 10,
    request: (weight) => api.textSearch({ target: [{ column: "s", weight }] }),
    refusal: "a weight from 1 to 10",
  },
  {
    documented: "`fusion.vectorWeight`",
    value: "0 to 1",
    min: 0,
    max: 1,
    request: (vectorWeight) => api.textSearch({ vector: { column: "v", queryVector: [1, 0] }, fusion: { vectorWeight } }),
    refusal: "fusion.vectorWeight: expected a number from 0 to 1",
  },
  {
    documented: "`fusion.k`",
    value: "1 to 10,000",
    min: 1,
    max: 10_000,
    request: (k) => api.textSearch({ vector: { column: "v", queryVector: [1, 0] }, fusion: { method: "rrf", k } }),
    refusal: /fusion\.k: expected an integer from 1 to 10,?000/,
  },
];
