/**
 * The memory of a replaced session of the embedded database is given back at that moment, not when the main
 * thread's heap happens to be collected.
 *
 * Counted in reserved addresses, which are exact: V8 reserves the same range for every WebAssembly memory, however
 * much of it is used.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { EmbeddedEngine } from "../../../src/records/engine/embedded/embedded-engine.ts";
import { LIMIT_MS } from "../../support/patience.ts";
import { copyTemplate } from "../../support/server-template.ts";

const GREEDY = "SELECT array_length(array_agg(repeat('x',1000000)||g),1) FROM generate_series(1,2000) g";
const ROUNDS = 2;

const reservedBytes = (): number => 1024 * Number(/VmSize:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))![1]);

describe.skipIf(process.platform !== "linux")("memory of the embedded database's sessions", () => {
  it("a process holds that of one session, however many statements filled theirs", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "lodestone-session-memory-"));
    copyTemplate(dataDir);
    const before = reservedBytes();
    const engine = await EmbeddedEngine.open({
      dataDir,
      statementTimeoutMs: 3_600_000,
      sqlTimeoutMs: 3_600_000,
      maxMemoryBytes: 128 * 2 ** 20,
      replacePatienceMs: LIMIT_MS,
    });
    try {
      const first = reservedBytes();
      const oneMemory = first - before;
      expect(oneMemory).toBeGreaterThan(128 * 2 ** 20);
      for (let round = 0; round < ROUNDS; round++) {
        await engine.query("PREPARE alive AS SELECT 1"); // fails if the session was not replaced
        await expect(engine.query(GREEDY)).rejects.toMatchObject({ code: "INVALID" });
        await engine.query("SELECT 1");
      }
      expect(reservedBytes() - first).toBeLessThan(oneMemory / 2);
    } finally {
      await engine.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});
