/** Each kind of slow weather once. `npm run soak:weather` makes it for an hour. */
import { expect, it } from "vitest";
import { LIMIT_MS } from "../support/patience.ts";
import { describeWith } from "../support/requirements.ts";
import { weatherRun } from "./weather-run.ts";

describeWith("strace", "In slow weather", (strace) => {
  const base = { strace, rounds: 1, badSeconds: 3, calmOperations: 100, clients: 6, seed: 5 };

  it("a server with the embedded database loses nothing, answers rightly, and ends when it is told to", {
    timeout: 3 * LIMIT_MS,
  }, async () => {
    const report = await weatherRun(base);
    expect(report.faults).toEqual([]);
    expect(report.unexpected).toEqual([]);
    expect(report.keysJudged).toBeGreaterThan(0);
    expect(Object.entries(report.answered).filter(([, count]) => count === 0)).toEqual([]);
  });

  describeWith("postgresql", "with PostgreSQL", (postgresBin) => {
    it("a server does so as well", { timeout: 3 * LIMIT_MS }, async () => {
      const report = await weatherRun({ ...base, postgresBin });
      expect(report.faults).toEqual([]);
      expect(report.unexpected).toEqual([]);
      expect(report.keysJudged).toBeGreaterThan(0);
      expect(Object.entries(report.answered).filter(([, count]) => count === 0)).toEqual([]);
    });
  });
});
