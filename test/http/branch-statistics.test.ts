/** GET /db/{db}:{branch}/statistics: what a branch takes, and how far searches see it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeOnce, describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { type SharedServer, sharedServer } from "../support/shared-server.ts";

const ROWS = 600;
const DIMENSION = 300;
const STATISTICS = "/db/stats:main/statistics";

function suite(start: () => Promise<TestServer | SharedServer>): void {
  let server: TestServer | SharedServer;
  beforeAll(async () => {
    server = await start();
    await server.put("/db/stats:main");
    await server.put("/db/stats:main/tables/small", { columns: [{ name: "text", type: "string" }] });
    await server.put("/db/stats:main/tables/big", { columns: [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }] });
  });
  afterAll(() => server?.stop());

  it("tells the size of each table and about how many records it has, and that searches see them all", async () => {
    const before = await server.get(STATISTICS);
    expect(before.status).toBe(200);
    expect(before.body.tables.map(({ name }: { name: string }) => name)).toEqual(["big", "small"]);
    expect(before.body.tables[0].estimatedRows).toBe(0);
    const records = Array.from({ length: ROWS }, (_, i) => ({ v: Array.from({ length: DIMENSION }, (_, j) => (i * 7 + j * 13) % 101) }));
    expect((await server.post("/db/stats:main/tables/big/bulk", { records })).status).toBe(200);
    await expect.poll(async () => (await server.get(STATISTICS)).body.search).toMatchObject({ ready: true, lagMs: 0, vectors: ROWS });
    const { tables, search } = (await server.get(STATISTICS)).body;
    const [big, small] = tables;
    expect(big.sizeBytes - before.body.tables[0].sizeBytes).toBeGreaterThan(ROWS * DIMENSION * 4);
    expect(small.sizeBytes).toBe(before.body.tables[1].sizeBytes);
    expect(search.memoryBytes).toBeGreaterThan(ROWS * DIMENSION * 4);
    // The database counts in the background.
    await expect.poll(async () => (await server.get(STATISTICS)).body.tables[0].estimatedRows).toBe(ROWS);
  });

  it("says which is missing, the database or the branch", async () => {
    expect((await server.get("/db/nothing:main/statistics")).body.message).toContain('Database "nothing" does not exist');
    const { status, body } = await server.get("/db/stats:nothing/statistics");
    expect(status).toBe(404);
    expect(body.message).toContain('Branch "nothing"');
  });
}

describeOnce("the statistics of a branch, on the embedded database", () => suite(sharedServer));

describeWith("postgresql", "the statistics of a branch, on a PostgreSQL server", (bin) => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres(bin);
  });
  afterAll(() => postgres?.stop());
  suite(async () => startServer({ databaseUrl: await postgres.createDatabase() }));
});
