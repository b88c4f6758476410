/** PgBouncer between a server and its database. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { openRecordStore } from "../../../src/records/open.ts";
import { openSearchStore } from "../../../src/search/open-search-store.ts";
import { startPgBouncer, type TestPgBouncer } from "../../support/pgbouncer.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";

describeWith("postgresql", "PgBouncer", (bin) => {
  describeWith("pgbouncer", "in front of the database", (pgbouncer) => {
    let server: TestPostgres;
    let pooler: TestPgBouncer | undefined;
    beforeAll(async () => {
      server = await startPostgres(bin);
    });
    afterAll(() => server.stop());
    const behind = async (mode: "session" | "transaction" | "statement", work: (databaseUrl: string) => Promise<void>): Promise<void> => {
      pooler = await startPgBouncer(pgbouncer, server.port, mode);
      try {
        await work(pooler.url(await server.createDatabase()));
      } finally {
        await pooler.stop();
      }
    };

    test.each(["transaction", "statement"] as const)("that lends sessions by the %s is refused with a clear message", async (mode) => {
      await behind(mode, async (databaseUrl) => {
        for (let i = 0; i < 3; i++) {
          await expect(openEngine({ databaseUrl })).rejects.toMatchObject({
            code: "UNAVAILABLE",
            message: expect.stringContaining("pool_mode = session"),
          });
        }
      });
    });

    test("that keeps sessions works: records, SQL as the branch's role, and searches that follow", async () => {
      await behind("session", async (databaseUrl) => {
        const stores = await Promise.all([openRecordStore({ databaseUrl }), openRecordStore({ databaseUrl })]);
        const search = await openSearchStore(stores[1]!, { pollMs: 60_000 });
        const ref = { database: "db", branch: "main" };
        try {
          await stores[0]!.createBranch(ref);
          await stores[0]!.createTable(ref, "t", [
            { name: "n", type: "int" },
            { name: "v", type: "vector", vector: { dimension: 2 } },
          ]);
          await stores[0]!.insertRecord(ref, "t", { id: "a", n: 1, v: [1, 0] });
          const { rows } = await search
            .vectorSearch(ref, "t", { column: "v", queryVector: [1, 0], consistency: "strong" })
            .then((found) => ({
              rows: found.results.map(({ id }) => id),
            }));
          expect(rows).toEqual(["a"]);
          await stores[0]!.sql(ref, { statement: `INSERT INTO "t" ("id", "n", "v") VALUES ('b', 2, '{0,1}')` });
          // Woken by NOTIFY, since its own poll comes only after a minute.
          await expect.poll(async () => (await search.vectorSearch(ref, "t", { column: "v", queryVector: [1, 0] })).totalCount).toBe(2);
          const answer = await stores[0]!.sql(ref, { statement: `SELECT "n" FROM "t" ORDER BY "n"` });
          expect(JSON.stringify(answer)).toContain('"n":2');
        } finally {
          await search.close();
          await Promise.all(stores.map((store) => store.close()));
        }
      });
    });
  });
});
