/**
 * A server without its database: it reports this at once, tries to reconnect rarely, and recovers soon after.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { until } from "../../support/patience.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";

describeWith("postgresql", "the server engine in an outage", (bin) => {
  let server: TestPostgres;
  let proxy: TcpProxy;
  let engine: Engine;
  let heard: string[];
  beforeAll(async () => {
    server = await startPostgres(bin);
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    const databaseUrl = await server.createDatabase();
    proxy = await startTcpProxy(Number(new URL(databaseUrl).port));
    engine = await openEngine({ databaseUrl: proxy.url(databaseUrl), poolSize: 4 });
    heard = [];
    await engine.listen("lodestone_test", (payload) => heard.push(payload));
  });
  afterEach(async () => {
    await engine.close();
    await proxy.close();
  });
  const ask = () => engine.query<{ n: number }>("SELECT 1 AS n");

  test("reconnects rarely while it is away, and listens again when it is back", async () => {
    await proxy.refuse();
    await expect.poll(() => ask().catch((error: Error) => error)).toMatchObject({ code: "UNAVAILABLE" });
    // A proxy that accepts and closes at once sees every attempt.
    await proxy.forward(1);
    const [before, startedMs] = [proxy.accepted, performance.now()];
    await until("it tries to reconnect several times", async () => {
      for (let i = 0; i < 10; i++) await expect(ask()).rejects.toMatchObject({ code: "UNAVAILABLE" });
      return proxy.accepted >= before + 6;
    });
    // Every 250 ms at most, after the first few.
    expect(proxy.accepted - before).toBeLessThanOrEqual(5 + (performance.now() - startedMs) / 250);
    await proxy.forward(server.port);
    await expect.poll(() => ask().catch(() => undefined), { interval: 20 }).toMatchObject({ rows: [{ n: 1 }] });
    await expect.poll(() => heard).toEqual([""]);
    await engine.query("SELECT pg_notify('lodestone_test', 'again')");
    await expect.poll(() => heard).toEqual(["", "again"]);
    expect(proxy.open).toBeLessThanOrEqual(5);
  });

  test("ends what waits for a network that loses every packet", async () => {
    await engine.query("CREATE TABLE kept (n int4)");
    await proxy.swallow();
    // Sent into the void on a connection that seems open; some still wait for a connection.
    const waiting = Array.from({ length: 8 }, () => engine.query("INSERT INTO kept VALUES (1)").catch((error: Error) => error));
    for (const outcome of await Promise.all(waiting)) expect(outcome).toMatchObject({ code: "UNAVAILABLE" });
    await expect(ask()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await proxy.forward();
    await expect.poll(() => ask().catch(() => undefined), { interval: 20 }).toMatchObject({ rows: [{ n: 1 }] });
    expect((await engine.query("SELECT * FROM kept")).rows).toEqual([]);
  });

  test("closes while its database is away", async () => {
    await proxy.refuse();
    await engine.close();
    expect(proxy.open).toBe(0);
  });
});
