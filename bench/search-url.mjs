/**
 * How much slower is an exact answer than pgvector's own? Loads the search database of `--search-url` with
 * one table. Then times, in turns, its search, pgvector's `ORDER BY distance LIMIT k` over the same table,
 * and the search in memory. Before that every answer is compared with the one in memory, bit for bit.
 *
 * Usage: npm run build && npm run bench:search-url -- --url postgres://… [--rows 100000 --dimension 128
 * --kind random]. The database's schema `lodestone_search` is dropped first.
 */
import { isDeepStrictEqual } from "node:util";
import pg from "pg";
import { VectorIndex } from "../dist/index.js";
import { followedSchema } from "../dist/search/followed-schema.js";
import { startSqlEngine } from "../dist/search/sql/sql-engine.js";
import { makeData } from "./data.mjs";
import { describeMachine, loadNow } from "./machine.mjs";
import { readOptions } from "./read-options.mjs";
import { summarize } from "./statistics.mjs";

const options = readOptions(import.meta.url, {
  url: { type: "string" },
  rows: { type: "string", default: "100000" },
  dimension: { type: "string", default: "128" },
  kind: { type: "string", default: "random" },
  turns: { type: "string", default: "15" },
});
if (options.url === undefined) throw new Error("--url: name a PostgreSQL with pgvector whose schema lodestone_search may go.");
const rows = Number(options.rows);
const dimension = Number(options.dimension);
const QUERIES = 5;
const K = 10;
const BATCH_ROWS = Math.max(1, Math.floor(1_000_000 / (4 * dimension)));
const OPERATORS = { cosineSimilarity: "<=>", l2: "<->", l1: "<+>" };

const data = makeData({ kind: options.kind, rows, dimension, queries: QUERIES });
const query = (i) => data.subarray((rows + i) * dimension, (rows + i + 1) * dimension);
const idOf = (row) => `r${String(row).padStart(9, "0")}`;

const client = new pg.Client({ connectionString: options.url });
await client.connect();
await client.query("DROP SCHEMA IF EXISTS lodestone_search CASCADE");
const start = await startSqlEngine(options.url, { connections: 4, statementTimeoutMs: 600_000 }, console.error);
const engine = start({ onLost: () => {}, onRestart: () => {} });
const index = await VectorIndex.create({ dimension });

const columns = new Map([["v", { id: 2, name: "v", physicalName: "v", type: "vector", vector: { dimension } }]]);
const tables = followedSchema({ tables: new Map([["t", { id: 1, name: "t", physicalName: "t", columns }]]) });
await engine.call("begin", { build: 1, key: "bench:main", incarnation: "bench", version: 1, tables });
const loadedAt = performance.now();
for (let row = 0; row < rows; row += BATCH_ROWS) {
  const count = Math.min(BATCH_ROWS, rows - row);
  const ids = Array.from({ length: count }, (_, i) => idOf(row + i));
  const elements = data.slice(row * dimension, (row + count) * dimension);
  index.upsertMany(ids, elements);
  const vectors = { kind: "vector", dimension, rows: Uint32Array.from({ length: count }, (_, i) => i), elements };
  await engine.call("load", { build: 1, batch: { table: "t", ids, deleted: [], columns: new Map([["v", vectors]]) } });
}
await engine.call("install", { build: 1, key: "bench:main", position: "1:1:" });
const loadMs = performance.now() - loadedAt;
const table = "lodestone_search.g1_t1";
await client.query(`VACUUM ANALYZE ${table}`);
const size = await client.query(`SELECT pg_total_relation_size('${table}')::float8 AS bytes`);

async function inSql(similarity, i) {
  const outcome = await engine.call("search", {
    key: "bench:main",
    incarnation: "bench",
    tableId: 1,
    columnId: 2,
    queries: query(i),
    count: 1,
    similarity,
    size: K,
    offset: 0,
    minScore: undefined,
    filter: undefined,
    maxBytes: 1e9,
  });
  const { ids, scores } = outcome.answers[0];
  return ids.map((id, n) => ({ id, score: scores[n] }));
}
const inMemory = (similarity, i) => index.search(query(i), { k: K, similarity }).results;
const byPgvector = async (similarity, i) => {
  const found = await client.query(`SELECT id FROM ${table} ORDER BY c2 ${OPERATORS[similarity]} $1::vector LIMIT ${K}`, [
    `[${query(i).join(",")}]`,
  ]);
  return found.rows.map(({ id }) => id);
};

const machine = describeMachine(undefined);
console.log(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, load ${loadNow().toFixed(1)}`);
console.log(
  `${rows} × ${dimension} ${options.kind}, top ${K}; loaded ${Math.round(rows / (loadMs / 1000))} rows/s, ${Math.round(size.rows[0].bytes / rows)} bytes a row`,
);
console.log(
  "| similarity | SQL engine, ms | pgvector, ms | ratio | in memory, ms | pgvector's ids that differ |\n|---|---|---|---|---|---|",
);
for (const similarity of Object.keys(OPERATORS)) {
  let differing = 0;
  for (let i = 0; i < QUERIES; i++) {
    const expected = inMemory(similarity, i);
    if (!isDeepStrictEqual(await inSql(similarity, i), expected))
      throw new Error(`${similarity}: query ${i} is answered differently in memory.`);
    const found = await byPgvector(similarity, i);
    differing += expected.filter(({ id }, n) => found[n] !== id).length;
  }
  const contenders = { sql: inSql, pgvector: byPgvector, memory: inMemory };
  const times = { sql: [], pgvector: [], memory: [] };
  for (let turn = 0; turn < Number(options.turns); turn++) {
    for (const [name, search] of Object.entries(contenders)) {
      const from = performance.now();
      await search(similarity, turn % QUERIES);
      times[name].push(performance.now() - from);
    }
  }
  const [sql, pgvector, memory] = [times.sql, times.pgvector, times.memory].map(summarize);
  const shown = ({ median, low, high }) => `${median.toFixed(1)} (${low.toFixed(1)} to ${high.toFixed(1)})`;
  const ratio = (sql.median / pgvector.median).toFixed(2);
  console.log(`| ${similarity} | ${shown(sql)} | ${shown(pgvector)} | ${ratio} | ${shown(memory)} | ${differing} of ${QUERIES * K} |`);
}
await engine.close();
await client.end();
index.free();
