import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EmbeddedEngine } from "../../../src/records/engine/embedded/embedded-engine.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { LIMIT_MS } from "../../support/patience.ts";

describe("the embedded engine", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-engine-"));
  let engine: Engine;
  beforeAll(async () => {
    engine = await openEngine({ dataDir, statementTimeoutMs: 3_600_000 });
  });
  afterAll(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test("returns each type as session-query.ts says", async () => {
    const { rows } = await engine.query(
      `SELECT true AS bool, 1::int4 AS int4, 9007199254740993::int8 AS int8, 0.1::float4 AS float4, 'NaN'::float8 AS nan, 1.50::numeric AS numeric,
        '{"a":[1]}'::jsonb AS jsonb, '\\x0102'::bytea AS bytea, ARRAY['a','b,c',NULL]::text[] AS text_array, ARRAY[0.1,NULL,2]::float4[] AS float4_array,
        ARRAY[]::float4[] AS empty, ARRAY[1,2]::int8[] AS int8_array, '2026-01-02T03:04:05.123456Z'::timestamptz AS timestamptz`,
    );
    expect(rows).toEqual([
      {
        bool: true,
        int4: 1,
        int8: 9007199254740993n,
        float4: 0.1,
        nan: Number.NaN,
        numeric: "1.50",
        jsonb: { a: [1] },
        bytea: Buffer.from([1, 2]),
        text_array: ["a", "b,c", null],
        float4_array: [0.1, null, 2],
        empty: [],
        int8_array: [1n, 2n],
        timestamptz: "2026-01-02 03:04:05.123456+00",
      },
    ]);
  });

  test("returns every value as text with raw, and rows as arrays with rowMode array", async () => {
    const result = await engine.query("SELECT true AS a, ARRAY[1,2] AS a, NULL AS b", [], { raw: true, rowMode: "array" });
    expect(result.rows).toEqual([["t", "{1,2}", null]]);
    expect(result.fields.map((field) => field.name)).toEqual(["a", "a", "b"]);
  });

  test("sends a Buffer in binary format", async () => {
    const { rows } = await engine.query("SELECT $1::int4 AS n, $2::bytea AS b", [Buffer.from([0, 0, 1, 0]), Buffer.from([7])]);
    expect(rows).toEqual([{ n: 256, b: Buffer.from([7]) }]);
  });

  test("runs transactions one after the other, all or nothing", async () => {
    await engine.query("CREATE TABLE unit (n int4 PRIMARY KEY)");
    const order: string[] = [];
    let begun = (): void => {};
    const secondIsWaiting = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const first = engine.transaction(async (connection) => {
      await connection.query("INSERT INTO unit VALUES (1)");
      await secondIsWaiting;
      await connection.query("INSERT INTO unit VALUES (2)");
      order.push("first");
    });
    const second = engine.transaction(async (connection) => {
      order.push("second");
      await connection.query("INSERT INTO unit VALUES (3)");
      await connection.query("INSERT INTO unit VALUES (1)");
    });
    begun();
    await first;
    await expect(second).rejects.toMatchObject({ code: "23505" });
    expect(order).toEqual(["first", "second"]);
    expect((await engine.query("SELECT n FROM unit ORDER BY n")).rows).toEqual([{ n: 1 }, { n: 2 }]);
  });

  test("does not report success when the work swallowed a failed statement", async () => {
    const swallowing = engine.transaction(async (connection) => {
      await connection.query("INSERT INTO unit VALUES (10)");
      await connection.query("SELECT 1/0").catch(() => {});
    });
    await expect(swallowing).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining("rolled back") });
    expect((await engine.query("SELECT n FROM unit WHERE n = 10")).rows).toEqual([]);
  });

  test("delivers notifications of committed transactions", async () => {
    const payloads: string[] = [];
    const stop = await engine.listen("test channel", (payload) => payloads.push(payload));
    await engine.query(`SELECT pg_notify('test channel', 'one')`);
    await engine.transaction((connection) => connection.query(`SELECT pg_notify('test channel', 'two')`));
    await engine
      .transaction(async (connection) => {
        await connection.query(`SELECT pg_notify('test channel', 'never')`);
        throw new Error("no");
      })
      .catch(() => {});
    await engine.query("SELECT 1");
    expect(payloads).toEqual(["one", "two"]);
    await stop();
  });

  test("ends a statement that runs too long, keeps what was committed, and runs what waits behind it", async () => {
    await engine.query("INSERT INTO unit VALUES (20)");
    await engine.close();
    const limited = await EmbeddedEngine.open({
      dataDir,
      statementTimeoutMs: 2_000,
      sqlTimeoutMs: 2_000,
      replacePatienceMs: LIMIT_MS,
    });
    const runaway = limited.query("SELECT count(*) FROM generate_series(1, 1e12)");
    const behind = limited.query("SELECT n FROM unit WHERE n = 20");
    await expect(runaway).rejects.toMatchObject({ code: "TIMEOUT", message: expect.stringContaining("2 seconds") });
    expect((await behind).rows).toEqual([{ n: 20 }]);
    await limited.close();
    engine = await openEngine({ dataDir, statementTimeoutMs: 3_600_000 });
  });

  test("applies nothing of a transaction that ran too long", async () => {
    const half = engine.transaction(
      async (connection) => {
        await connection.query("INSERT INTO unit VALUES (21)");
        await connection.query("SELECT count(*) FROM generate_series(1, 1e12)");
      },
      { timeoutMs: 500 },
    );
    await expect(half).rejects.toMatchObject({ code: "TIMEOUT" });
    expect((await engine.query("SELECT n FROM unit WHERE n = 21")).rows).toEqual([]);
  });

  test("survives expressions nested too deeply", async () => {
    const deep = `SELECT ${"(".repeat(20_000)}1${")".repeat(20_000)} AS n`;
    await engine.query(deep).catch(() => {});
    await expect(engine.query(`SELECT ${"1+".repeat(100_000)}1 AS n`)).rejects.toThrow();
    expect((await engine.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
  });

  test("streams a result larger than the window between thread and client", async () => {
    const { rows } = await engine.query<{ n: number }>("SELECT n::int4, repeat('x', 1000) AS filler FROM generate_series(1, 40000) n");
    expect(rows.length).toBe(40_000);
    expect(rows[39_999]!.n).toBe(40_000);
  });
});
