/** What the change feed does in the background, and what it says when that fails. */
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { RecordFeed } from "../../../src/records/feed/change-feed.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";

describeWith("postgresql", "Faults of the change feed", (bin) => {
  let server: TestPostgres;
  let engine: Engine;
  let catalog: Catalog;
  let feed: RecordFeed;
  let client: pg.Client;
  const faults: Error[] = [];
  const recoveries: string[] = [];

  beforeAll(async () => {
    server = await startPostgres(bin);
    const url = await server.createDatabase();
    engine = await openEngine({ databaseUrl: url });
    catalog = await Catalog.open(engine);
    feed = await RecordFeed.open(engine, catalog, {
      heartbeatMs: 20,
      sweepMs: 20,
      onFault: (error) => faults.push(error as Error),
      onRecovery: (sentence) => recoveries.push(sentence),
    });
    client = new pg.Client({ connectionString: url });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await feed.close();
    await catalog.close();
    await engine.close();
    await server.stop();
  });

  test.each([
    ["processes", "Telling the other servers that this one still follows the changes", []],
    ["branches", "Looking for changes by others", ["Telling the other servers that this one still follows the changes"]],
  ] as const)("without the table of %s: once, with the cause, and once when it is there again", async (table, what, others) => {
    faults.length = 0;
    recoveries.length = 0;
    await client.query(`ALTER TABLE lodestone.${table} RENAME TO away`);
    const cause = `relation "lodestone.${table}" does not exist`;
    const told = () => faults.map(({ message }) => message).filter((message) => !others.some((other) => message.startsWith(other)));
    await expect.poll(told).toEqual([`${what} fails: ${cause}`]);
    expect(faults[0]!.cause).toMatchObject({ message: cause });
    // The statements that failed since then.
    const failures = async (): Promise<number> =>
      Number((await client.query("SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()")).rows[0].xact_rollback);
    const before = await failures();
    await expect.poll(failures).toBeGreaterThan(before + 3);
    await client.query(`ALTER TABLE lodestone.away RENAME TO ${table}`);
    await expect.poll(() => recoveries).toContain(`${what} works again.`);
    expect(told()).toHaveLength(1);
  });
});
