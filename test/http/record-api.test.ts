import { afterAll, beforeAll } from "vitest";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeOnce, describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import type { ServerClient } from "../support/server-client.ts";
import { type SharedServer, sharedServer } from "../support/shared-server.ts";
import { apiOf } from "./record-api/api.ts";
import { describeBranches } from "./record-api/branches.ts";
import { describeQueries } from "./record-api/query.ts";
import { describeRecords } from "./record-api/records.ts";
import { describeSql } from "./record-api/sql.ts";
import { describeTables } from "./record-api/tables.ts";
import { describeTransactions } from "./record-api/transactions.ts";

function describeRecordApi(server: () => ServerClient): void {
  const api = apiOf(server);
  describeBranches(api);
  describeTables(api);
  describeRecords(api);
  describeQueries(api);
  describeSql(api);
  describeTransactions(api);
}

describeOnce("on the embedded database", () => {
  let server: SharedServer;
  beforeAll(async () => {
    server = await sharedServer();
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
