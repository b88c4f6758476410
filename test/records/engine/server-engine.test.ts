import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";

describeWith("postgresql", "the server engine", (bin) => {
  let server: TestPostgres;
  let databaseUrl: string;
  let engine: Engine;
  beforeAll(async () => {
    server = await startPostgres(bin, ["max_connections=60"]); // its own: it crashes
    databaseUrl = await server.createDatabase();
    engine = await openEngine({ databaseUrl, statementTimeoutMs: 3_600_000 });
  });
  afterAll(async () => {
    await engine.close();
    await server.stop();
  });

  test("returns the same JavaScript values as the embedded engine", async () => {
    const { rows } = await engine.query(
      "SELECT 9007199254740993::int8 AS int8, 0.1::float4 AS float4, '2026-01-02T03:04:05.123456Z'::timestamptz AS timestamptz, ARRAY[1.5,2]::float4[] AS v",
    );
    expect(rows).toEqual([{ int8: 9007199254740993n, float4: 0.1, timestamptz: "2026-01-02 03:04:05.123456+00", v: [1.5, 2] }]);
  });

  test("commits what resolves and rolls back what rejects", async () => {
    await engine.query("CREATE TABLE unit (n int4 PRIMARY KEY)");
    await engine.transaction((connection) => connection.query("INSERT INTO unit VALUES (1)"));
    await expect(
      engine.transaction(async (connection) => {
        await connection.query("INSERT INTO unit VALUES (2)");
        await connection.query("INSERT INTO unit VALUES (1)");
      }),
    ).rejects.toMatchObject({ code: "23505" });
    expect((await engine.query("SELECT n FROM unit")).rows).toEqual([{ n: 1 }]);
  });

  test("cancels a statement that runs too long", async () => {
    const limited = await openEngine({ databaseUrl, statementTimeoutMs: 1_000 });
    await expect(limited.query("SELECT count(*) FROM generate_series(1, 1e12)")).rejects.toMatchObject({
      code: "TIMEOUT",
      message: expect.stringContaining("1 seconds"),
    });
    await limited.close();
    await expect(engine.transaction((c) => c.query("SELECT pg_sleep(20)"), { timeoutMs: 100 })).rejects.toMatchObject({ code: "TIMEOUT" });
    await engine.query("CREATE TABLE half (n int4)");
    const half = engine.transaction(
      async (connection) => {
        await connection.query("INSERT INTO half VALUES (1)");
        await connection.query("SELECT pg_sleep(20)");
      },
      { timeoutMs: 100 },
    );
    await expect(half).rejects.toMatchObject({ code: "TIMEOUT" });
    expect((await engine.query("SELECT n FROM half")).rows).toEqual([]);
    expect((await engine.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
  });

  test("retries transactions that deadlock or cannot be serialized", async () => {
    await engine.query("CREATE TABLE counter (n int4)");
    await engine.query("INSERT INTO counter VALUES (0)");
    const bump = () =>
      engine.transaction(
        async (connection) => {
          const { rows } = await connection.query<{ n: number }>("SELECT n FROM counter");
          await connection.query("UPDATE counter SET n = $1", [rows[0]!.n + 1]);
        },
        { isolation: "serializable" },
      );
    await Promise.all([bump(), bump()]);
    expect((await engine.query("SELECT n FROM counter")).rows).toEqual([{ n: 2 }]);
  });

  test("handles the first statements of a branch when they come together, and from two servers", async () => {
    const databaseUrl = await server.createDatabase();
    const engines = await Promise.all([1, 2].map(() => openEngine({ databaseUrl })));
    const roleNames = [0, 1, 2, 3].map((n) => `lodestone:${databaseUrl.slice(-6)}:${n}`);
    try {
      for (const roleName of roleNames) await engines[0]!.query(`CREATE ROLE "${roleName}" NOLOGIN NOINHERIT`);
      const who = (engine: Engine, roleName: string) =>
        engine.transaction(async (c) => (await c.query<{ name: string }>("SELECT session_user AS name")).rows[0]!.name, {
          jail: { roleName, schemaName: "public" },
        });
      for (const roleName of roleNames) {
        const names = await Promise.all(Array.from({ length: 32 }, (_, n) => who(engines[n % 2]!, roleName)));
        expect(new Set(names)).toEqual(new Set([roleName]));
      }
    } finally {
      for (const roleName of roleNames) await engines[0]!.query(`DROP ROLE IF EXISTS "${roleName}"`);
      await Promise.all(engines.map((each) => each.close()));
    }
  });

  test("continues after the server crashed and came back, and listens again", async () => {
    const payloads: string[] = [];
    await engine.listen("lodestone_test", (payload) => payloads.push(payload));
    await server.restart();
    await expect.poll(() => payloads).toContain("");
    expect((await engine.query("SELECT count(*)::int4 AS n FROM unit")).rows).toEqual([{ n: 1 }]);
    await engine.query("SELECT pg_notify('lodestone_test', 'again')");
    await expect.poll(() => payloads).toEqual(["", "again"]);
  });

  test("explains what is wrong with a URL without revealing its password", async () => {
    await expect(openEngine({ databaseUrl: "nonsense" })).rejects.toMatchObject({ code: "INVALID" });
    const refused = await openEngine({ databaseUrl: "postgres://user:s3cret@127.0.0.1:1/db" }).catch((error: Error) => error);
    expect(refused).toMatchObject({ code: "UNAVAILABLE" });
    expect(String(refused)).not.toContain("s3cret");
  });
});
