/**
 * Search parts when an asynchronous standby is promoted. What it had not received is lost with the old
 * primary, even if it was acknowledged, and transaction numbers are used again. Every server reads its part
 * again. No answer, at any moment, shows only some of the records or a mixture of both primaries.
 *
 * A synchronous standby and an outage are in churn.test.ts.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import type { TestServer } from "../support/server.ts";
import { startStandby, type TestStandby } from "../support/standby.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { PartsCluster } from "./parts-cluster.ts";

const TABLE = "/db/db:main/tables/t";
const RECORDS = 40;
const LOST = 10;

/** All records have the vector [generation, 1], so that their score tells the generation. */
const scoreOf = (generation: number): number => 1 / (1 + generation ** 2);
const vectorOf = (generation: number): number[] => [generation, 1];

describeWith("postgresql", "Search parts behind an asynchronous standby", (bin) => {
  let primary: TestPostgres;
  let standby: TestStandby;
  let proxy: TcpProxy;
  let cluster: PartsCluster;

  beforeAll(async () => {
    primary = await startPostgres(bin, ["wal_level=replica", "max_wal_senders=8"]);
    proxy = await startTcpProxy(primary.port);
    cluster = await PartsCluster.start(primary, { replicas: [1, 2], reach: (url) => proxy.url(url) });
    const [server] = cluster.all as [TestServer];
    await server.put("/db/db:main");
    await server.put(TABLE, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
    await insert(server, "r", RECORDS, 0);
    standby = await startStandby(bin, primary.port);
  });
  afterAll(async () => {
    await cluster?.stop();
    await proxy?.close();
    await standby?.stop();
    await primary?.stop();
  });

  const insert = async (server: TestServer, prefix: string, count: number, generation: number): Promise<void> => {
    const records = Array.from({ length: count }, (_, n) => ({ id: `${prefix}${n}`, v: vectorOf(generation) }));
    expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
  };
  const update = async (server: TestServer, generation: number): Promise<void> => {
    const statement = 'UPDATE "t" SET "v" = $1';
    expect((await server.post("/db/db:main/sql", { statement, params: [vectorOf(generation)] })).status).toBe(200);
  };
  /** How many records were found and in which generations; undefined: 503. */
  const seen = async (server: TestServer, consistency: string): Promise<string | undefined> => {
    const request = { column: "v", queryVector: [0, 1], similarityFunction: "l2", size: 100, consistency };
    const { status, body } = await server.post(`${TABLE}/vectorSearch`, request);
    if (status === 503) return undefined;
    expect([status, body.results?.length]).toEqual([200, body.totalCount]);
    const scores = new Set(body.results.map(({ score }: { score: number }) => score));
    return `${body.totalCount} with ${[...scores].join(", ")}`;
  };
  const all = (consistency: string): Promise<(string | undefined)[]> =>
    Promise.all([cluster.whole, ...cluster.all].map((server) => seen(server, consistency)));
  const settled = (count: number, generation: number): string => `${count} with ${scoreOf(generation)}`;

  it("are read anew by themselves, and answer for one primary or not at all", async () => {
    const [server] = cluster.all as [TestServer];
    const before = settled(RECORDS + LOST, 1);
    const after = settled(RECORDS, 0);
    for (const answer of await all("strong")) expect(answer).toBe(after);
    await standby.link.refuse();
    // Acknowledged, and never received by the standby.
    await insert(server, "lost", LOST, 0);
    await update(server, 1);
    for (const answer of await all("strong")) expect(answer).toBe(before);
    await expect.poll(async () => new Set(await all("eventual"))).toEqual(new Set([before]));

    let isWatching = true;
    const watched: (string | undefined)[] = [];
    const watch = async (consistency: string): Promise<void> => {
      while (isWatching) {
        watched.push(...(await all(consistency)));
        await sleep(10);
      }
    };
    const watching = Promise.all([watch("strong"), watch("eventual")]);
    try {
      await proxy.refuse();
      await standby.promote();
      await proxy.forward(standby.port);
      for (const consistency of ["strong", "eventual"])
        await expect.poll(async () => new Set(await all(consistency))).toEqual(new Set([after]));
      await cluster.untilReady();
    } finally {
      isWatching = false;
      await watching;
    }
    expect(new Set(watched)).toEqual(new Set([before, undefined, after]));

    // Transactions get the numbers that the lost ones had.
    for (let generation = 2; generation < 8; generation++) {
      await update(cluster.all[generation % cluster.all.length]!, generation);
      for (const answer of await all("strong")) expect(answer).toBe(settled(RECORDS, generation));
    }
  });
});
