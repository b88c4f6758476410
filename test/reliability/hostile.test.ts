/**
 * One hostile caller for a minute, with checks of its effect on the server and on others. `npm run
 * soak:hostile` does this for an hour, on larger tables.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";
import { writeKeyFile } from "./hostile/stage.ts";
import { hostileRun } from "./hostile-run.ts";

const SECONDS = 60;
const MAX_RSS_MEGABYTES = 3_072;

const folder = mkdtempSync(join(tmpdir(), "lodestone-hostile-"));
let server: TestServer;

beforeAll(async () => {
  const keyFile = join(folder, "keys.json");
  writeKeyFile(keyFile);
  server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" }, args: ["--key-file", keyFile] });
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it("withstands a hostile caller: no exit, no fault, no change behind an error, and others are served", {
  timeout: 400_000,
}, async () => {
  const report = await hostileRun({
    server,
    seconds: SECONDS,
    attackers: 4,
    seed: 1,
    size: { texts: 200, bigRecords: 6, bigCharacters: 6_000_000, smallRecords: 500 },
  });
  console.log(JSON.stringify({ ...report, kinds: Object.keys(report.kinds).length }));
  expect(report.exits).toEqual([]);
  expect(report.wrongErrors).toEqual([]);
  expect(report.behindErrors).toEqual([]);
  expect(report.othersRefused).toEqual({});
  expect(report.peakRssMegabytes).toBeLessThan(MAX_RSS_MEGABYTES);
  expect(report.isReadyAfterwards).toBe(true);
  // Both sides must have done real work.
  expect(report.requests).toBeGreaterThan(10);
  expect(report.others.all!.count).toBeGreaterThan(50);
});

it("stops cleanly on SIGTERM", async () => {
  expect(await server.end("SIGTERM")).toBe(0);
});
