/**
 * The memory of a replaced session of the embedded database is given back at that moment, not when the main
 * thread's heap happens to be collected.
 *
 * Counted in reserved addresses, which are exact: V8 reserves the same range for every WebAssembly memory, however
 * much of it is used. In a process of its own: where other tests ran before, their memories may be freed meanwhile.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { LIMIT_MS } from "../../support/patience.ts";
import { copyTemplate } from "../../support/server-template.ts";

const PROGRAM = `
  import { readFileSync } from "node:fs";
  import { EmbeddedEngine } from "${new URL("../../../dist/records/engine/embedded/embedded-engine.js", import.meta.url)}";
  const greedy = "SELECT array_length(array_agg(repeat('x',1000000)||g),1) FROM generate_series(1,2000) g";
  const reservedBytes = () => 1024 * Number(/VmSize:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
  const before = reservedBytes();
  const engine = await EmbeddedEngine.open({
    dataDir: process.argv[2],
    statementTimeoutMs: 3_600_000,
    sqlTimeoutMs: 3_600_000,
    maxMemoryBytes: 128 * 2 ** 20,
    replacePatienceMs: ${LIMIT_MS},
  });
  const first = reservedBytes();
  const codes = [];
  for (let round = 0; round < 2; round++) {
    await engine.query("PREPARE alive AS SELECT 1"); // fails if the session was not replaced
    await engine.query(greedy).catch(({ code }) => codes.push(code));
    await engine.query("SELECT 1");
  }
  console.log(JSON.stringify({ oneMemory: first - before, more: reservedBytes() - first, codes }));
  await engine.close();`;

describe.skipIf(process.platform !== "linux")("memory of the embedded database's sessions", () => {
  it("a process holds that of one session, however many statements filled theirs", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lodestone-session-memory-"));
    const [dataDir, program] = [join(folder, "data"), join(folder, "program.mjs")];
    copyTemplate(dataDir);
    // A file: the database's thread would inherit options that say that there is none.
    writeFileSync(program, PROGRAM);
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [program, dataDir]);
      const { oneMemory, more, codes } = JSON.parse(stdout) as { oneMemory: number; more: number; codes: string[] };
      expect(codes).toEqual(["INVALID", "INVALID"]);
      expect(oneMemory).toBeGreaterThan(128 * 2 ** 20);
      expect(more).toBeLessThan(oneMemory / 2);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
