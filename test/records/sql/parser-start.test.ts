import { afterEach, expect, test, vi } from "vitest";
import { analyseStatement } from "../../../src/records/sql/parser.ts";

afterEach(() => vi.useRealTimers());

/** On a very busy machine a thread starts late. */
test("a statement is not refused because the parser's thread takes long to start", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const analysis = analyseStatement('SELECT "id" FROM "t"', { caller: "" });
  // Longer than any statement may take. The thread cannot have started yet, since nothing has been awaited.
  vi.advanceTimersByTime(30_000);
  expect(await analysis).toMatchObject({ tables: ["t"] });
});
