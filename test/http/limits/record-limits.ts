/** Limits of records, transactions and queries. */
import { api, BRANCH, type Limit, nested, repeat, TABLE } from "./limit.ts";

const links = (count: number): string => "self.".repeat(count);

export const RECORD_LIMITS: Limit[] = [
  {
    documented: "records of one bulk insert",
    value: "1,000",
    max: 1000,
    request: (n) => api.server.post(`${TABLE}/bulk`, { records: repeat(n, () => ({})) }),
    refusal: "records: expected at most 1,000 elements, got 1,001",
  },
  {
    documented: "operations of one transaction",
    value: "1,000",
    max: 1000,
    request: (n) => api.server.post(`${BRANCH}/transaction`, { operations: repeat(n, () => ({ get: { table: "t", id: "a" } })) }),
    refusal: "operations: expected at most 1,000 elements, got 1,001",
  },
  {
    documented: "`page.size`",
    value: "1 to 1,000",
    min: 1,
    max: 1000,
    request: (n) => api.query({ page: { size: n } }),
    refusal: /page\.size: expected an integer from 1 to 1,000|page size exceeds max limit of 1000/,
  },
  {
    documented: "`page.offset`",
    value: "0 to 49,000",
    min: 0,
    max: 49_000,
    request: (n) => api.query({ page: { offset: n } }),
    refusal: /page\.offset|page offset must not exceed 49000/,
  },
  {
    documented: "keys of a `sort`",
    value: "16",
    max: 16,
    request: (n) => api.query({ sort: repeat(n, (i) => ({ [["s", "n", "id", "xata.version"][i % 4] as string]: "asc" })) }),
    refusal: /sort/,
  },
  {
    documented: "entries of `columns`",
    value: "1,000",
    max: 1000,
    request: (n) => api.query({ columns: repeat(n, () => "s") }),
    refusal: "columns: expected at most 1,000 elements, got 1,001",
  },
  {
    documented: "`ifVersion`",
    value: "0 to 2,147,483,647",
    max: 2_147_483_647,
    request: async (n) => {
      const answer = await api.server.patch(`${TABLE}/data/a?ifVersion=${n}`, {});
      // A version that the record does not have is a conflict, which does not matter here.
      return answer.status === 422 ? { ...answer, status: 200, body: {} } : answer;
    },
    refusal: "ifVersion: expected an integer from 0 to 2,147,483,647",
  },
  {
    documented: "links that `columns` follow in a row",
    value: "8",
    max: 8,
    request: (n) => api.query({ columns: [`${links(n)}s`] }),
    refusal: "follows more than 8 links",
  },
  {
    documented: "links that a `sort` key follows in a row",
    value: "8",
    max: 8,
    request: (n) => api.query({ sort: { [`${links(n)}s`]: "asc" } }),
    refusal: "follows more than 8 links",
  },
  {
    documented: "`limit` of the records that link back",
    value: "1 to 1,000",
    min: 1,
    max: 1000,
    request: (limit) => api.query({ columns: [{ name: "<-t.self", columns: ["id"], limit }] }),
    refusal: /limit/,
  },
  {
    documented: "steps of a path into a `json` column",
    value: "32",
    max: 32,
    request: (n) => api.query({ columns: [`j${"->a".repeat(n)}`] }),
    refusal: "33 steps into json; at most 32 are allowed",
  },
  {
    documented: "strings of a `multiple` value",
    value: "100,000",
    max: 100_000,
    request: (n) => api.server.put(`${TABLE}/data/m`, { m: repeat(n, () => "x") }),
    refusal: "has 100,001 strings; at most 100,000 are allowed",
  },
  {
    documented: "nesting of a `json` value that is sent as text",
    value: "128 levels",
    max: 128,
    request: (n) => api.server.put(`${TABLE}/data/j`, { j: nested(n, "[", "]") }),
    refusal: "nested deeper than 128 levels",
  },
  {
    documented: "an `int` sent as a JSON number",
    value: "-9,007,199,254,740,991 to 9,007,199,254,740,991",
    min: Number.MIN_SAFE_INTEGER,
    max: Number.MAX_SAFE_INTEGER,
    request: (n) => api.server.put(`${TABLE}/data/n`, { n }),
    refusal: "exact only from -9007199254740991 to 9007199254740991",
  },
];
