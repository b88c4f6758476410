/** What idle servers do. */
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRecordStore } from "../../../src/records/open.ts";
import type { RecordStore } from "../../../src/records/record-store.ts";
import { openSearchStore } from "../../../src/search/open-search-store.ts";
import type { SearchStore } from "../../../src/search/search-store.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";

const BRANCHES = 25;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describeWith("postgresql", "idle branches", (bin) => {
  let server: TestPostgres;
  let admin: pg.Client;
  const records: RecordStore[] = [];
  const searches: SearchStore[] = [];
  beforeAll(async () => {
    // Transactions are counted in the whole server, where autovacuum would analyse the catalogs of so many new tables.
    server = await startPostgres(bin, ["autovacuum=off"]);
    const databaseUrl = await server.createDatabase();
    for (let n = 0; n < 3; n++) {
      const store = await openRecordStore({ databaseUrl, poolSize: 4, sqlPoolSize: 1 });
      records.push(store);
      searches.push(await openSearchStore(store));
    }
    admin = new pg.Client({ connectionString: databaseUrl });
    await admin.connect();
    for (let n = 0; n < BRANCHES; n++) {
      const ref = { database: "db", branch: `b${n}` };
      await records[0]!.createBranch(ref);
      await records[0]!.createTable(ref, "t", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
    }
  });
  afterAll(async () => {
    for (const search of searches) await search.close();
    for (const store of records) await store.close();
    await admin.end();
    await server.stop();
  });

  const transactions = async (): Promise<number> =>
    Number((await admin.query("SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS n")).rows[0].n);
  const outboxRows = async (): Promise<number> => {
    let rows = 0;
    for (let n = 0; n < BRANCHES; n++) rows += (await admin.query(`SELECT count(*)::int4 AS n FROM "db:b${n}"."lodestone.feed"`)).rows[0].n;
    return rows;
  };

  test("write nothing, however many they are, once all changes are trimmed", async () => {
    for (let n = 0; n < BRANCHES; n++) await records[n % 3]!.insertRecord({ database: "db", branch: `b${n}` }, "t", { v: [1, 0] });
    for (const search of searches) await expect.poll(() => search.status().rows).toBe(BRANCHES);
    await expect.poll(outboxRows, { interval: 500 }).toBe(0);
    // Each server does a last trim of its own. After these there is a while without any transaction.
    let before = await transactions();
    await expect
      .poll(
        async () => {
          const since = before;
          before = await transactions();
          return before - since;
        },
        { interval: 2_000 },
      )
      .toBe(0);
    // Nothing happens then, which no event tells: twice as long as any of their rounds.
    const startedMs = performance.now();
    await sleep(12_000);
    // Heartbeats, one per minute and server.
    const written = (await transactions()) - before;
    expect(written).toBeLessThanOrEqual(3 * Math.ceil((performance.now() - startedMs) / 60_000));
  });

  test("notice changes by writers that send no notification, even when they commit late", async () => {
    const writer = new pg.Client({ connectionString: url(admin) });
    await writer.connect();
    try {
      // Like one of our own servers whose NOTIFY was lost.
      await writer.query("SET lodestone.writer = 'service'");
      await writer.query("BEGIN");
      await writer.query(`INSERT INTO "db:b3"."t" ("id", "v") VALUES ('late', '{1,1}')`);
      // Longer than their rounds, which then have passed its position.
      await sleep(6_000);
      await writer.query("COMMIT");
    } finally {
      await writer.end();
    }
    for (const search of searches) await expect.poll(() => search.status().rows).toBe(BRANCHES + 1);
  });
});

function url(client: pg.Client): string {
  return `postgres://postgres@${client.host}:${client.port}/${client.database}`;
}
