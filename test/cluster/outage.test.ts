/** A server whose database goes away and comes back, as its clients and its balancer see it. */
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../support/patience.ts";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const SEARCH = { column: "v", queryVector: [1, 0] };
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describeWith("postgresql", "A server without its database", (bin) => {
  let postgres: TestPostgres;
  let proxy: TcpProxy;
  let server: TestServer;
  let databaseUrl: string;
  beforeAll(async () => {
    postgres = await startPostgres(bin);
    proxy = await startTcpProxy(postgres.port);
    databaseUrl = proxy.url(await postgres.createDatabase());
    server = await startServer({ databaseUrl });
    await server.put("/db/db:main");
    await server.put("/db/db:main/tables/t", { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
    await server.put("/db/db:main/tables/t/data/a", { v: [1, 0] });
  });
  afterAll(async () => {
    await server.stop();
    await proxy.close();
    await postgres.stop();
  });

  const search = (more: object) => server.post("/db/db:main/tables/t/vectorSearch", { ...SEARCH, ...more });
  const descriptors = (): number => readdirSync(`/proc/${server.pid}/fd`).length;

  it("answers 503 at once to what needs the database, keeps searching in memory, and is no longer ready", async () => {
    await expect.poll(async () => (await search({})).body.totalCount).toBe(1);
    const before = descriptors();
    await proxy.refuse();
    await expect.poll(async () => (await server.get("/db/db:main/tables/t/data/a")).status).toBe(503);
    expect(await server.get("/readyz")).toMatchObject({ status: 503, body: { status: "database away" } });
    for (let n = 0; n < 50; n++) {
      const answers = await Promise.all([
        server.put("/db/db:main/tables/t/data/b", { v: [0, 1] }),
        server.get("/db/db:main/tables/t/data/a"),
        server.post("/db/db:main/sql", { statement: 'SELECT "id" FROM "t"' }),
        search({ consistency: "strong" }),
        search({}),
      ]);
      expect(answers.map((answer) => answer.status)).toEqual([503, 503, 503, 503, 200]);
      for (const answer of answers.slice(0, 4)) expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
      expect(answers[4]!.body.totalCount).toBe(1);
      await sleep(20);
    }
    expect(descriptors()).toBeLessThan(before + 20);
    // One line for the fault, not one for each attempt.
    expect(server.log.split("\n").filter((line) => line.includes("recovers from a fault")).length).toBeLessThan(10);
  });

  it("is ready when it is back, and not before requests are served", async () => {
    for (let round = 0; round < 10; round++) {
      if (round > 0) {
        await proxy.refuse();
        await until("the server says that its database is away", async () => (await server.get("/readyz")).status === 503, 1);
      }
      await proxy.forward();
      await until("the server is ready", async () => (await server.get("/readyz")).status === 200, 1);
      const answers = await Promise.all([
        ...Array.from({ length: 10 }, () => server.get("/db/db:main/tables/t/data/a")),
        server.post("/db/db:main/sql", { statement: 'SELECT "id" FROM "t"' }),
      ]);
      expect(answers.map((answer) => answer.status)).toEqual(Array(11).fill(200));
    }
    expect((await server.put("/db/db:main/tables/t/data/c", { v: [0, 1] })).status).toBe(201);
    expect((await search({ consistency: "strong" })).body.totalCount).toBe(2);
    expect((await server.post("/db/db:main/sql", { statement: 'SELECT "id" FROM "t"' })).status).toBe(200);
    // And it hears of other servers' writes again.
    const other = await startServer({ databaseUrl });
    try {
      await other.put("/db/db:main/tables/t/data/d", { v: [0, 1] });
      await expect.poll(async () => (await search({})).body.totalCount).toBe(3);
    } finally {
      await other.stop();
    }
  });
});
