/** One hostile caller for a minute, and the judge of what it did to the server and to the others. `npm run soak:hostile` does it for an hour, on larger tables. */
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

it("bears a hostile caller: no exit, no fault, nothing changed behind an error, and the others are served", {
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
  // It was a run: both sides did their work.
  expect(report.requests).toBeGreaterThan(10);
  expect(report.others.all!.count).toBeGreaterThan(50);
});

it("stops on SIGTERM with nothing left undone", async () => {
  expect(await server.end("SIGTERM")).toBe(0);
});
