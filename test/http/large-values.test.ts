/**
 * A value, beside a vector, that one statement of SQL can store but no request could send. It must break
 * nothing: searches continue, and what cannot be answered is refused with the reason. Both engines.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { TestServer } from "../support/server.ts";

const BRANCH = "/db/values:main";

function behaves(create: () => TestServer | Promise<TestServer>, bytes: number): void {
  let server: TestServer;
  let pid: number;
  const sql = (statement: string) => server.post(`${BRANCH}/sql`, { statement });
  const search = (options: object) =>
    server.post(`${BRANCH}/tables/h/vectorSearch`, { column: "v", queryVector: [1, 1], consistency: "strong", ...options });

  beforeAll(async () => {
    server = await create();
    // To store it may take as long as it takes.
    await server.start(["--statement-timeout", "3600"]);
    await server.put(BRANCH);
    await server.put(`${BRANCH}/tables/h`, {
      columns: [
        { name: "l", type: "text" },
        { name: "o", type: "link", link: { table: "h" } },
        { name: "v", type: "vector", vector: { dimension: 2 } },
      ],
    });
    await sql(`INSERT INTO "h" ("id", "l", "v") VALUES ('small', 'little', '{1,0}')`);
    expect((await sql(`INSERT INTO "h" ("id", "l", "o", "v") VALUES ('big', repeat('x', ${bytes}), 'small', '{1,1}')`)).status).toBe(200);
    for (let n = 0; n < 2; n++) expect((await sql(`UPDATE "h" SET "l" = repeat('y', ${bytes}) WHERE "id" = 'big'`)).status).toBe(200);
    await server.end("SIGTERM");
    await server.start();
    await server.untilReady();
    ({ pid } = server);
  });
  afterAll(() => server.stop());

  it("strong searches find it, with any columns except that one", async () => {
    expect((await search({})).body.results.map(({ id }: { id: string }) => id)).toEqual(["big", "small"]);
    expect((await search({ columns: ["o"] })).body.results[0].record.o).toMatchObject({ id: "small" });
    expect((await search({ filter: { "o.l": "little" } })).body.results.map(({ id }: { id: string }) => id)).toEqual(["big"]);
  });

  it("filters that can be answered are, the others name the value", async () => {
    const ids = async (filter: object) => (await search({ filter })).body.results.map(({ id }: { id: string }) => id);
    expect(await ids({ l: "little" })).toEqual(["small"]);
    expect(await ids({ l: { $isNot: "little" } })).toEqual(["big"]);
    expect(await ids({ $exists: "l" })).toEqual(["big", "small"]);
    expect(await search({ filter: { l: { $contains: "x" } } })).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/column "l" of the record "big"/) },
    });
  });

  it("requests for the value are refused, wherever it is", async () => {
    // The database may find it too much first, or not finish it in time.
    const refused = async (answer: Promise<{ status: number }>) => expect([400, 413, 504]).toContain((await answer).status);
    await refused(search({ columns: ["*"] }));
    await refused(sql(`SELECT "l" FROM "h" WHERE "id" = 'big'`));
    const columns = Array.from({ length: 7 }, (_, n) => ({ name: "<-h.o", as: `r${n}`, columns: ["l"] }));
    await refused(server.post(`${BRANCH}/tables/h/query`, { filter: { id: "small" }, columns }));
  });

  it("the process is still the same, and ready, also after a restart", async () => {
    expect([server.pid, server.isRunning]).toEqual([pid, true]);
    expect(server.log).not.toContain('"status":500');
    await server.end("SIGTERM");
    await server.start();
    expect((await search({})).body.results).toHaveLength(2);
    await expect.poll(async () => (await server.get("/readyz")).status).toBe(200);
  });
}

/** Requests have the product's own limits of time: these end what takes ever more memory of the database. */
const LIMITED = { env: { LODESTONE_STATEMENT_TIMEOUT: undefined } };

describe("a value of 140 MB on the embedded engine", () => behaves(() => new TestServer(LIMITED), 140_000_000));

describeWith("postgresql", "a value of 600 MB on a PostgreSQL server", (bin) => {
  let postgres: TestPostgres | undefined;
  afterAll(() => postgres?.stop());
  behaves(async () => {
    postgres = await startPostgres(bin);
    return new TestServer({ ...LIMITED, databaseUrl: await postgres.createDatabase() });
  }, 600_000_000);
});
