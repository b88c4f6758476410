/** Limits of names, schemas and migrations. */
import { api, BRANCH, type Limit, repeat, TABLE } from "./limit.ts";

export const SCHEMA_LIMITS: Limit[] = [
  {
    documented: "name of a database, branch, table or column",
    value: "255 characters",
    max: 255,
    request: (n) => api.server.put(`/db/${"d".repeat(n)}:main`),
    refusal: "database: a name has 1 to 255",
  },
  {
    documented: "name of a database, branch, table or column",
    value: "255 characters",
    max: 255,
    request: (n) => api.server.put(`/db/limits:${"b".repeat(n)}`),
    refusal: "branch: a name has 1 to 255",
  },
  {
    documented: "name of a database, branch, table or column",
    value: "255 characters",
    max: 255,
    // Names of different lengths with equal first 63 characters would collide, so each begins with its
    // length.
    request: (n) => api.server.put(`${BRANCH}/tables/${`t${n}_`.padEnd(n, "x")}`),
    refusal: "table: a name has 1 to 255",
  },
  {
    documented: "name of a database, branch, table or column",
    value: "255 characters",
    max: 255,
    request: (n) => api.server.post(`${TABLE}/columns`, { name: `c${n}_`.padEnd(n, "x"), type: "int" }),
    refusal: /name: expected a string that matches .*\{1,255\}/,
  },
  {
    documented: "id of a record that is made",
    value: "255 characters",
    max: 255,
    request: (n) => api.server.put(`${TABLE}/data/${"i".repeat(n)}`, {}),
    refusal: /id/,
  },
  {
    documented: "columns of a table",
    value: "1,000",
    max: 1000,
    request: (n) => api.server.put(`${BRANCH}/tables/wide${n}`, { columns: repeat(n, (i) => ({ name: `c${i}`, type: "int" })) }),
    refusal: "columns: expected at most 1,000",
  },
  {
    documented: "dimension of a vector column",
    value: "2 to 10,000",
    min: 2,
    max: 10_000,
    request: (n) => api.server.put(`${BRANCH}/tables/dim${n}`, { columns: [{ name: "v", type: "vector", vector: { dimension: n } }] }),
    refusal: "dimension: expected an integer from 2 to 10,000",
  },
  {
    documented: "operations of one schema change",
    value: "10,000",
    max: 10_000,
    request: (n) => {
      const operations = repeat(n, (i) => ({ renameTable: i % 2 === 0 ? { oldName: "t", newName: "u" } : { oldName: "u", newName: "t" } }));
      return api.server.post(`${BRANCH}/schema/preview`, { edits: { operations } });
    },
    refusal: "has 10001 operations; at most 10000 are possible at once",
  },
  {
    documented: "migrations of one `schema/push`",
    value: "1,000",
    max: 1000,
    request: async (n) => {
      const { logs } = (await api.server.post(`${BRANCH}/schema/history`, { page: { size: 1 } })).body;
      const { id, parentID, checksum, operations } = logs[0];
      // What the branch already has is skipped.
      return api.server.post(`${BRANCH}/schema/push`, {
        migrations: repeat(n, () => ({ id, ...(parentID === undefined ? {} : { parentID }), checksum, operations })),
      });
    },
    refusal: "migrations has 1001 elements; at most 1000",
  },
];
