import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";

/** A parser of its own: that of the process may have a thread already. */
const PARSER = new URL("../../../dist/records/sql/parser.js?of-its-own", import.meta.url).href;

/** Takes every descriptor, asks, gives them back, and asks again. */
const WITHOUT_DESCRIPTORS = `
import { closeSync, openSync } from "node:fs";
const { analyseStatement } = await import(${JSON.stringify(PARSER)});
const outcome = () => analyseStatement("SELECT 1", { caller: "" }).then(({ kind }) => kind, ({ code }) => code);
const files = [];
try {
  for (;;) files.push(openSync("/dev/null"));
} catch {}
const without = await outcome();
for (const file of files) closeSync(file);
console.log(without, await outcome());
`;

afterEach(() => vi.useRealTimers());

/** On a very busy machine a thread starts late. */
test("a statement is not refused because the parser's thread takes long to start", async () => {
  const { analyseStatement } = (await import(/* @vite-ignore */ PARSER)) as typeof import("../../../src/records/sql/parser.ts");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const analysis = analyseStatement('SELECT "id" FROM "t"', { caller: "" });
  // Longer than any statement may take. The thread cannot have started yet, since nothing has been awaited.
  vi.advanceTimersByTime(30_000);
  expect(await analysis).toMatchObject({ tables: ["t"] });
});

test("a statement is not to blame for a thread that cannot start, and the next one starts another", () => {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-parser-start-"));
  const script = join(folder, "without-descriptors.mjs");
  writeFileSync(script, WITHOUT_DESCRIPTORS);
  const command = ["-c", 'ulimit -n 64 && exec "$0" "$1"', process.execPath, script];
  expect(execFileSync("sh", command, { encoding: "utf8" })).toBe("UNAVAILABLE SELECT\n");
  rmSync(folder, { recursive: true });
});
