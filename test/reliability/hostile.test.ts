/**
 * One hostile caller, each of its kinds of requests once, with checks of its effect on the server and on others. `npm run
 * soak:hostile` does this for an hour, on larger tables, and bounds memory and latencies.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";
import { HOSTILE_KINDS } from "./hostile/hostile-requests.ts";
import { writeKeyFile } from "./hostile/stage.ts";
import { hostileRun } from "./hostile-run.ts";

const folder = mkdtempSync(join(tmpdir(), "lodestone-hostile-"));
let server: TestServer;

beforeAll(async () => {
  const keyFile = join(folder, "keys.json");
  writeKeyFile(keyFile);
  server = await startServer({
    // Statements that never end make way for the others, who always wait here. What takes the session is ended, too.
    env: { LODESTONE_LOG_LEVEL: "warn", LODESTONE_STATEMENT_TIMEOUT: "60" },
    args: ["--key-file", keyFile],
  });
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it("withstands a hostile caller: no exit, no fault, no change behind an error, and others are served", async () => {
  const report = await hostileRun({
    server,
    attackers: 4,
    seed: 1,
    size: { texts: 200, bigRecords: 6, bigCharacters: 6_000_000, smallRecords: 500 },
  });
  console.log(JSON.stringify({ ...report, kinds: Object.keys(report.kinds).length }));
  expect(report.exits).toEqual([]);
  expect(report.wrongErrors).toEqual([]);
  expect(report.behindErrors).toEqual([]);
  expect(report.othersRefused).toEqual({});
  expect(report.isReadyAfterwards).toBe(true);
  // Both sides must have done everything at least once.
  expect(Object.keys(report.kinds).toSorted()).toEqual(HOSTILE_KINDS.toSorted());
  expect(Object.keys(report.others).toSorted()).toEqual(["all", "get", "insert", "query", "search"]);
});

it("stops cleanly on SIGTERM", async () => {
  expect(await server.end("SIGTERM")).toBe(0);
});
