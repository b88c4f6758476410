/** Many operations on 64 connections, on both engines. `npm run soak:load` runs this for 10 minutes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { loadRun } from "./load-run.ts";

const OPERATIONS = 1_500;
const QUIET = { env: { LODESTONE_LOG_LEVEL: "warn" } };

function bearsTheLoad(serverOf: () => TestServer): void {
  it("answers 64 connections without a 5xx, and all responses fit one history", async () => {
    const report = await loadRun({ server: serverOf(), clients: 64, duration: { operations: OPERATIONS }, seed: 7 });
    expect(report.faults).toEqual([]);
    expect(report.unexpected).toEqual([]);
    expect(Object.keys(report.statuses).filter((status) => status >= "500")).toEqual([]);
    expect(report.keysJudged).toBeGreaterThan(40);
  });

  it("stops on SIGTERM with nothing lost", async () => {
    expect(await serverOf().end("SIGTERM")).toBe(0);
  });
}

describe("The embedded engine under load", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(QUIET);
  });
  afterAll(() => server.stop());
  bearsTheLoad(() => server);
});

describeWith("postgresql", "A PostgreSQL server under load", (bin) => {
  let postgres: TestPostgres;
  let server: TestServer;
  beforeAll(async () => {
    postgres = await startPostgres(bin);
    server = await startServer({ ...QUIET, databaseUrl: await postgres.createDatabase() });
  });
  afterAll(async () => {
    await server.stop();
    await postgres.stop();
  });
  bearsTheLoad(() => server);
});
