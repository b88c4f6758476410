/**
 * An asynchronous standby is promoted while servers keep running: what only the old primary had is lost, and
 * its transaction numbers are reused.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { openRecordStore } from "../../../src/records/open.ts";
import type { RecordStore } from "../../../src/records/record-store.ts";
import { openSearchStore } from "../../../src/search/open-search-store.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { LIMIT_MS } from "../../support/patience.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";
import { startStandby, type TestStandby } from "../../support/standby.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";

const REF = { database: "db", branch: "main" };

describeWith("postgresql", "a promoted standby under running servers", (bin) => {
  let primary: TestPostgres;
  let standby: TestStandby;
  let proxy: TcpProxy;
  let databaseUrl: string;
  const records: RecordStore[] = [];
  const searches: SearchStore[] = [];
  beforeAll(async () => {
    primary = await startPostgres(bin, ["wal_level=replica", "max_wal_senders=4"]);
    databaseUrl = await primary.createDatabase();
    standby = await startStandby(bin, primary.port);
    proxy = await startTcpProxy(primary.port);
    for (let n = 0; n < 3; n++) {
      const store = await openRecordStore({ databaseUrl: proxy.url(databaseUrl), poolSize: 4, sqlPoolSize: 1 });
      records.push(store);
      searches.push(await openSearchStore(store, { pollMs: 60_000, waitMs: LIMIT_MS }));
    }
    await records[0]!.createBranch(REF);
    await records[0]!.createTable(REF, "t", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
  });
  afterAll(async () => {
    for (const search of searches) await search.close();
    for (const store of records) await store.close();
    await proxy.close();
    await standby.stop();
    await primary.stop();
  });

  const insert = (store: RecordStore, prefix: string, count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => store.insertRecord(REF, "t", { id: `${prefix}-${n}`, v: [1, n] })));
  const found = async (search: SearchStore, consistency: "strong" | "eventual") =>
    (await search.vectorSearch(REF, "t", { column: "v", queryVector: [1, 0], size: 1000, consistency })).results.map(({ id }) => id).sort();
  /** What `work` gives as soon as its store has the database back. Each store finds that out by itself. */
  const whenBack = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const outcome: { result?: Result } = {};
    const attempt = async (): Promise<boolean> => {
      try {
        outcome.result = await work();
        return true;
      } catch (error) {
        expect(error).toMatchObject({ code: "UNAVAILABLE" });
        return false;
      }
    };
    await expect.poll(attempt).toBe(true);
    return outcome.result!;
  };
  const stored = async () => (await records[0]!.query(REF, "t", { page: { size: 1000 } })).records.map(({ id }) => id as string).sort();

  test("all servers reread everything by themselves, and answer from the current records", async () => {
    await insert(records[0]!, "kept", 20);
    await expect.poll(async () => (await found(searches[1]!, "eventual")).length).toBe(20);
    // The standby has only the first twenty.
    const { Client } = (await import("pg")).default;
    const look = new Client({ connectionString: `postgres://postgres@127.0.0.1:${standby.port}/postgres` });
    await look.connect();
    const sent = new Client({ connectionString: `postgres://postgres@127.0.0.1:${primary.port}/postgres` });
    await sent.connect();
    const position = (await sent.query("SELECT pg_current_wal_lsn()::text AS lsn")).rows[0].lsn;
    await sent.end();
    await expect.poll(async () => (await look.query("SELECT pg_last_wal_replay_lsn() >= $1 AS ok", [position])).rows[0].ok).toBe(true);
    await look.end();
    await standby.link.refuse();
    await insert(records[0]!, "lost", 30);
    for (const search of searches) expect((await found(search, "strong")).length).toBe(50);

    await proxy.refuse();
    await standby.promote();
    // Before any server looks, other records get the numbers of the lost ones, and more.
    const writer = new Client({ connectionString: `postgres://postgres@127.0.0.1:${standby.port}${new URL(databaseUrl).pathname}` });
    await writer.connect();
    for (let n = 0; n < 60; n++) await writer.query(`INSERT INTO "db:main"."t" ("id", "v") VALUES ('new-${n}', '{1,${n}}')`);
    await writer.end();
    await proxy.forward(standby.port);
    await whenBack(() => insert(records[2]!, "after", 1));
    const expected = await whenBack(stored);
    expect(expected.length).toBe(81);
    for (const search of searches) expect(await whenBack(() => found(search, "strong"))).toEqual(expected);
    for (const search of searches) {
      await expect.poll(() => found(search, "eventual")).toEqual(expected);
      await expect.poll(() => search.status().ready).toBe(true);
    }
    // And they continue to follow.
    await insert(records[1]!, "later", 5);
    for (const search of searches) await expect.poll(async () => (await found(search, "eventual")).length).toBe(86);
  });

  test("a connection to the former primary is not used", async () => {
    await proxy.forward(primary.port);
    proxy.breakAll();
    // It still answers, with the records that were lost. Nobody may see them, and nothing may be written
    // there.
    await expect(
      (async () => {
        for (let n = 0; n < 100; n++) {
          await records[0]!.query(REF, "t", {}).catch((error: { code?: string }) => expect(error.code).toBe("UNAVAILABLE"));
          await insert(records[1]!, `split-${n}`, 1).then(
            () => Promise.reject(new Error("written to the former primary")),
            (error: { code?: string }) => expect(error.code).toBe("UNAVAILABLE"),
          );
        }
      })(),
    ).resolves.toBeUndefined();
    await proxy.forward(standby.port);
    proxy.breakAll();
    await whenBack(() => insert(records[1]!, "back", 1));
    for (const search of searches) await expect.poll(async () => (await found(search, "eventual")).length).toBe(87);
  });
});
