/**
 * What do servers with many idle branches ask of PostgreSQL? Makes branches with one record each, waits until
 * nothing is left to do (outboxes are looked through at heartbeats, a hundred at a time), and counts for some
 * minutes: commits, transactions that wrote (each takes a number), and bytes of the write-ahead log.
 *
 * Usage: npm run build && npm run bench:idle -- --database-url postgres://… [--branches 1000 --servers 3
 * --minutes 5]. Transaction numbers and the log belong to the whole PostgreSQL: nobody else may use it. The
 * branches stay in that database, and the next run uses them. `log_line_prefix = '%m %x '` with
 * `log_min_duration_statement = 0` and `log_autovacuum_min_duration = 0` shows what took a number.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { readOptions } from "./read-options.mjs";
import { start } from "./served.mjs";

const options = readOptions(import.meta.url, {
  branches: { type: "string", default: "1000" },
  servers: { type: "string", default: "3" },
  minutes: { type: "string", default: "5" },
  "database-url": { type: "string" },
});
const [branches, servers, minutes] = ["branches", "servers", "minutes"].map((name) => Number(options[name]));
const databaseUrl = options["database-url"];
if (databaseUrl === undefined) throw new Error("--database-url: a database of a PostgreSQL server that nobody else uses.");
/** A database of ours has as many branches as it may. */
const BRANCHES_OF_A_DATABASE = 50;
const MINUTE_MS = 60_000;
const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-idle-"));
const running = [];
const admin = new pg.Client({ connectionString: databaseUrl });
try {
  await admin.connect();
  for (let n = 0; n < servers; n++)
    running.push(
      await start({ directory: join(directory, String(n)), args: ["--database-url", databaseUrl, "--database-connections", "6"] }),
    );
  if ((await rowsOf(running[0])) !== branches) for (let n = 0; n < branches; n++) await make(running[0], n);
  for (const server of running) while ((await rowsOf(server)) !== branches) await sleep(500);
  for (let last, now = await trims(); last !== now; ) {
    last = now;
    // Each server has a heartbeat in this time.
    await sleep(1.1 * MINUTE_MS);
    now = await trims();
  }
  const before = await look();
  await sleep(MINUTE_MS * minutes);
  const after = await look();
  const seconds = (after.atMs - before.atMs) / 1000;
  const count = (name) => after[name] - before[name];
  console.log(
    `${branches} branches, ${servers} servers, ${seconds.toFixed(0)} s: ${(count("commits") / seconds).toFixed(2)} commits a second, ` +
      `${count("transactions")} transactions that wrote, ${count("wal")} bytes of the write-ahead log`,
  );
} finally {
  for (const server of running) await server.stop();
  await admin.end();
  rmSync(directory, { recursive: true, force: true });
}

async function make({ send }, n) {
  const branch = `/db/idle${Math.floor(n / BRANCHES_OF_A_DATABASE)}:b${n}`;
  await send("PUT", branch, {});
  await send("PUT", `${branch}/tables/t`, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
  await send("PUT", `${branch}/tables/t/data/r`, { v: [1, 0] });
}

/** As many as it has branches, once it is ready. */
async function rowsOf({ send }) {
  for (;;) {
    const state = await send("GET", "/readyz").catch(() => undefined);
    if (state !== undefined) return state.rows;
    await sleep(200);
  }
}

/** Changes of rows by trims of outboxes so far. */
async function trims() {
  await admin.query("SELECT pg_stat_force_next_flush()");
  const { rows } = await admin.query(
    "SELECT sum(n_tup_upd)::float8 AS changes FROM pg_stat_user_tables WHERE schemaname = 'lodestone' AND relname IN ('feeds', 'followers')",
  );
  return rows[0].changes;
}

async function look() {
  await admin.query("SELECT pg_stat_force_next_flush()");
  const { rows } = await admin.query(
    `SELECT xact_commit::float8 AS commits, pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS transactions,
       (pg_current_wal_lsn() - '0/0')::float8 AS wal
       FROM pg_stat_database WHERE datname = current_database()`,
  );
  return { ...rows[0], atMs: performance.now() };
}
