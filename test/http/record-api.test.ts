import { afterAll, beforeAll, describe } from "vitest";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { describeRecordApi } from "./record-api.ts";

describe("on the embedded database", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server?.stop());
  describeRecordApi(() => server);
});

describeWith("postgresql", "on a PostgreSQL server", (bin) => {
  let postgres: TestPostgres;
  let server: TestServer;
  beforeAll(async () => {
    postgres = await startPostgres(bin);
    server = await startServer({ databaseUrl: await postgres.createDatabase() });
  });
  afterAll(async () => {
    await server?.stop();
    await postgres?.stop();
  });
  describeRecordApi(() => server);
});
