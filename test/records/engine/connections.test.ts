/** How many connections a server uses, and what it does when there are no more. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryBudget } from "../../../src/budget/memory-budget.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { engineForCaller } from "../../../src/records/engine/engine-for-caller.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { ConnectionPool } from "../../../src/records/engine/server/connection-pool.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";

describeWith("postgresql", "connections to a server with few", (bin) => {
  let server: TestPostgres;
  let databaseUrl: string;
  beforeAll(async () => {
    server = await startPostgres(bin, ["max_connections=20", "superuser_reserved_connections=1"]);
    databaseUrl = await server.createDatabase();
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    // Not the superuser, for whom PostgreSQL reserves connections.
    await client.query("CREATE ROLE service LOGIN CREATEROLE");
    await client.query(`GRANT ALL ON DATABASE ${client.database} TO service`);
    await client.end();
    const url = new URL(databaseUrl);
    url.username = "service";
    databaseUrl = url.href;
  });
  afterAll(() => server.stop());

  test("every write waits for its turn when three servers want more connections than there are", async () => {
    const engines = await Promise.all([1, 2, 3].map(() => openEngine({ databaseUrl, poolSize: 10 })));
    try {
      await engines[0]!.query("CREATE SCHEMA own");
      await engines[0]!.query("CREATE TABLE own.writes (n int4)");
      const write = (engine: Engine, n: number) =>
        engine.transaction(async (connection) => {
          await connection.query("INSERT INTO own.writes VALUES ($1)", [n]);
          await connection.query("SELECT pg_sleep(0.02)");
        });
      await Promise.all(Array.from({ length: 300 }, (_, n) => write(engines[n % 3]!, n)));
      expect((await engines[0]!.query("SELECT count(DISTINCT n)::int4 AS n FROM own.writes")).rows).toEqual([{ n: 300 }]);
    } finally {
      await Promise.all(engines.map((engine) => engine.close()));
    }
  });

  test("one caller's long statements on a branch leave a connection of that branch to others", async () => {
    const memory = new MemoryBudget({ answerBytes: 1 << 20, totalBytes: 1 << 24 });
    const engine = await openEngine({ databaseUrl, poolSize: 3, sqlPoolSize: 8 });
    const of = (caller: string): Engine => engineForCaller(engine, new AbortController().signal, memory.open(caller));
    const jail = { roleName: "lodestone:shared:0", schemaName: "public" };
    const holder = new pg.Client({ connectionString: databaseUrl });
    await holder.connect();
    try {
      await engine.query(`CREATE ROLE "${jail.roleName}" NOLOGIN NOINHERIT`);
      await holder.query("SELECT pg_advisory_lock(31)");
      const long = Array.from({ length: 8 }, () =>
        of("greedy")
          .transaction((connection) => connection.query("SELECT pg_advisory_xact_lock_shared(31)"), { jail })
          .catch((error: Error) => error),
      );
      const waiting = "SELECT count(*)::int4 AS n FROM pg_locks WHERE locktype = 'advisory' AND objid = 31 AND NOT granted";
      await expect.poll(async () => (await holder.query<{ n: number }>(waiting)).rows[0]!.n).toBeGreaterThanOrEqual(2);
      const { rows } = await of("polite").transaction((connection) => connection.query("SELECT 1 AS n"), { jail });
      expect(rows).toEqual([{ n: 1 }]);
      await holder.query("SELECT pg_advisory_unlock(31)");
      await Promise.all(long);
    } finally {
      await holder.end();
      await engine.query(`DROP ROLE IF EXISTS "${jail.roleName}"`);
      await engine.close();
    }
  });

  test("a pool counts a connection that came after its caller was told that the database is away", async () => {
    const pool = new ConnectionPool({ connectionString: databaseUrl, max: 2 }, () => Promise.resolve());
    const opening = pool.connect();
    await new Promise(setImmediate);
    pool.disconnect();
    await expect(opening).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect.poll(() => [pool.total, pool.spare]).toEqual([1, 1]);
    await pool.endSpare();
    expect([pool.total, pool.spare, pool.isEmpty]).toEqual([0, 0, true]);
    await pool.close();
  });

  test("takes no more than the configured total, whatever comes", async () => {
    const roleNames = Array.from({ length: 6 }, (_, n) => `lodestone:sum:${n}`);
    const engine = await openEngine({ databaseUrl, poolSize: 3, sqlPoolSize: 4 });
    const admin = new pg.Client({ connectionString: databaseUrl });
    await admin.connect();
    try {
      for (const roleName of roleNames) await engine.query(`CREATE ROLE "${roleName}" NOLOGIN NOINHERIT`);
      const counts: number[] = [];
      let isWorking = true;
      const looking = (async () => {
        for (; isWorking; await sleep(20)) {
          const { rows } = await admin.query(
            "SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
          );
          counts.push(rows[0].n);
        }
      })();
      const memory = new MemoryBudget({ answerBytes: 1 << 20, totalBytes: 1 << 24 });
      const sql = (roleName: string) =>
        engineForCaller(engine, new AbortController().signal, memory.open(roleName)).transaction(
          (connection) => connection.query("SELECT pg_sleep(0.01)"),
          { jail: { roleName, schemaName: "public" } },
        );
      await Promise.all(
        Array.from({ length: 120 }, (_, n) => [sql(roleNames[n % roleNames.length]!), engine.query("SELECT pg_sleep(0.01)")]).flat(),
      ).finally(() => {
        isWorking = false;
        return looking;
      });
      expect(counts.length).toBeGreaterThan(3);
      // 3, 4, and the one that listens. Six branches that share nothing would have 24.
      expect(Math.max(...counts)).toBe(3 + 4 + 1);
    } finally {
      await admin.end();
      for (const roleName of roleNames) await engine.query(`DROP ROLE IF EXISTS "${roleName}"`);
      await engine.close();
    }
  });
});
