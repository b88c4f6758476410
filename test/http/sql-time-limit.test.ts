/**
 * The embedded database runs one statement at a time, so users' SQL gives way to others soon, unless the
 * operator of the server configures otherwise.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ env: { LODESTONE_STATEMENT_TIMEOUT: undefined } });
  await server.put("/db/long:main");
});
afterAll(() => server?.stop());

it("a statement is ended after ten seconds, and the others continue", async () => {
  const long = server.post("/db/long:main/sql", { statement: "SELECT count(*) FROM generate_series(1, 1e12)" });
  const others = [server.get("/db/long:main"), server.put("/db/long:main/tables/t", { columns: [{ name: "n", type: "int" }] })];
  expect(await long).toMatchObject({ status: 504, body: { message: expect.stringContaining("longer than 10 seconds") } });
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 201]);
});
