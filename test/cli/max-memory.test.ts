/**
 * `--max-memory`: a server with little memory answers or refuses every request, and stays below its limit.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, startServer, type TestServer } from "../support/server.ts";

const BRANCH = "/db/memory:main";
const MIB = 2 ** 20;

let server: TestServer;

beforeAll(async () => {
  server = await startServer({ env: { LODESTONE_MAX_MEMORY: "1GB" } });
  await server.put(BRANCH);
  await server.put(`${BRANCH}/tables/t`, {
    columns: [
      { name: "l", type: "text" },
      { name: "j", type: "json" },
    ],
  });
  const insert = `INSERT INTO "t" ("id", "l", "j") SELECT 'r' || n, repeat(md5(n::text), 32768), ('[' || repeat('{},', 20000) || '1]')::jsonb FROM generate_series(1, 40) n`;
  expect((await server.post(`${BRANCH}/sql`, { statement: insert })).status).toBe(200);
});
afterAll(() => server.stop());

describe("--max-memory", () => {
  it("is at most what the machine has, and at least what the server needs", async () => {
    for (const size of ["100MB", "lots", "-1GB", "1", "1e9"]) {
      const { code, stderr } = await runCommand(["serve", "--max-memory", size, "--port", "0", "--data-dir", "/nonexistent"]);
      expect([code === 0, stderr]).toEqual([false, expect.stringContaining("Expected memory such as 512MB or 4GB, at least 512MB.")]);
    }
  });

  it("makes the largest response smaller, and reports how large it may be", async () => {
    const answer = await server.post(`${BRANCH}/tables/t/query`, { page: { size: 40 } });
    expect(answer).toMatchObject({
      status: 413,
      body: { message: expect.stringMatching(/larger than 16 MiB|takes more than 64 MiB of memory/) },
    });
    expect((await server.post(`${BRANCH}/tables/t/query`, { page: { size: 5 } })).body.records).toHaveLength(5);
  });

  it("makes an export ask for fewer records at a time", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lodestone-export-"));
    try {
      const out = join(folder, "t.jsonl");
      expect(await runCommand(["export", "memory:main/t", "--out", out, "--url", server.url])).toMatchObject({ code: 0 });
      const lines = readFileSync(out, "utf8").trimEnd().split("\n").slice(1);
      expect(lines.map((line) => JSON.parse(line).l.length)).toEqual(Array.from({ length: 40 }, () => MIB));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("makes a migration verify fewer records at a time", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lodestone-large-"));
    try {
      writeFileSync(join(folder, "schema.json"), JSON.stringify({ tables: [{ name: "t", columns: [{ name: "l", type: "text" }] }] }));
      const record = (n: number): string => `${JSON.stringify({ id: `r${n}`, l: "l".repeat(MIB) })}\n`;
      writeFileSync(join(folder, "t.jsonl"), Array.from({ length: 20 }, (_, n) => record(n)).join(""));
      const run = await runCommand(["migrate", folder, "large:main", "--url", server.url]);
      expect(run, run.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("20 records, verified") });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it.skipIf(process.platform !== "linux")("is not exceeded by many clients who ask at once for as much as they can get", async () => {
    const statuses = new Map<number, number>();
    const ask = async (): Promise<void> => {
      for (let n = 0; n < 6; n++) {
        const { status } = await server.post(`${BRANCH}/tables/t/query`, { page: { size: 10 + n } });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: 16 }, ask));
    const peakBytes = 1024 * Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]);
    expect(peakBytes).toBeGreaterThan(0);
    expect(peakBytes).toBeLessThan(1_024 * MIB);
    expect(server.isRunning).toBe(true);
    for (const status of statuses.keys()) expect([200, 413, 429]).toContain(status);
    expect(statuses.get(200)).toBeGreaterThan(0);
  });
});
