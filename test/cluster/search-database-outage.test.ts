/**
 * The database of `--search-url` goes away and comes back, as the clients of a server see it. The records are
 * elsewhere and stay available.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SEARCH_SERVERS, type SearchServer } from "../support/pgvector.ts";
import { type Answer, startServer, type TestServer } from "../support/server.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const TABLE = "/db/db:main/tables/t";
const CONNECTIONS = 2;
/** As in search-database.ts: after a failed connection nobody tries again for this long. */
const AWAY_MS = 250;

describe.each(SEARCH_SERVERS)("A server whose vectors are in %s", (_, start) => {
  let database: SearchServer;
  let proxy: TcpProxy;
  let server: TestServer;
  let written = 0;

  beforeAll(async () => {
    database = await start();
    const url = await database.emptyDatabase();
    proxy = await startTcpProxy(Number(new URL(url).port));
    const flags = ["--search-connections", String(CONNECTIONS), "--max-lag", "2", "--statement-timeout", "2"];
    server = await startServer({ args: ["--search-url", proxy.url(url), ...flags] });
    await server.put("/db/db:main");
    await server.put(TABLE, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
    await write();
    expect((await search("strong")).body.totalCount).toBe(1);
  });
  afterAll(async () => {
    await server?.stop();
    await proxy?.close();
    await database?.stop();
  });

  /** Records are not in that database. */
  const write = async (): Promise<void> => {
    expect((await server.put(`${TABLE}/data/r${written}`, { v: [1, written] })).status).toBe(201);
    written++;
  };
  const search = (consistency: string): Promise<Answer> =>
    server.post(`${TABLE}/vectorSearch`, { column: "v", queryVector: [1, 0], size: 100, consistency });
  const both = (): Promise<Answer[]> => Promise.all([search("eventual"), search("strong")]);

  const expectAway = async (): Promise<void> => {
    for (const { status, headers, body } of await both()) {
      expect([status, body.message]).toEqual([503, expect.stringContaining("The search database cannot be reached")]);
      expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    }
  };
  const expectWhole = async (): Promise<void> => {
    await expect.poll(async () => (await search("eventual")).body.totalCount, { interval: 50 }).toBe(written);
    for (const { status, body } of await both()) expect([status, body.totalCount]).toEqual([200, written]);
    await expect.poll(async () => (await server.get("/readyz")).status, { interval: 50 }).toBe(200);
  };

  it("answers 503 to every search while connections are refused, still writes, and is no longer ready", async () => {
    await proxy.refuse();
    for (let n = 0; n < 20; n++) {
      await expectAway();
      await write();
    }
    await expect.poll(async () => (await server.get("/readyz")).body.status).toBe("behind");
    expect((await server.get("/readyz")).body.message).toMatch(/more than the limit of 2 s: the search database cannot be reached/);
    expect((await server.get(`${TABLE}/data/r1`)).status).toBe(200);
  });

  it("recovers when it is back, with what was written meanwhile", async () => {
    await proxy.forward();
    await expectWhole();
  });

  it("tries few connections, however many searches there are", async () => {
    await proxy.hangUp();
    await expectAway();
    const [triedBefore, startedAt] = [proxy.accepted, performance.now()];
    for (let n = 0; n < 40; n++) await Promise.all(Array.from({ length: 5 }, expectAway));
    // Whenever it may try again, every connection of the pool may be tried, and the one that listens for
    // locks.
    const turns = 1 + Math.ceil((performance.now() - startedAt) / AWAY_MS);
    expect(proxy.accepted - triedBefore).toBeLessThanOrEqual(turns * (CONNECTIONS + 1));
    await write();
    await proxy.forward();
    await expectWhole();
  });

  it("answers 503 when the network loses every packet, and recovers afterwards", async () => {
    await proxy.swallow();
    await expectAway();
    await write();
    await expectAway();
    await proxy.forward();
    await expectWhole();
  });
});
