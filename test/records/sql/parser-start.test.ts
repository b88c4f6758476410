import { afterEach, expect, test, vi } from "vitest";

/** A parser of its own: that of the process may have a thread already. */
const PARSER = new URL("../../../dist/records/sql/parser.js?of-its-own", import.meta.url).href;

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
