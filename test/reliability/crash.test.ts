/**
 * kill -9 at named points and at random times, while clients write: nothing acknowledged is lost, nothing
 * deleted returns. `npm run soak:crash` does this 200 times.
 */
import { expect, it } from "vitest";
import { LIMIT_MS } from "../support/patience.ts";
import { crashRun, POINTS_AT_WORK, POINTS_OF_FIRST_START } from "./crash-run.ts";

it("loses nothing that it acknowledged when it is killed, in the records and in the search store", { timeout: 3 * LIMIT_MS }, async () => {
  const seed = 20_260_228;
  // Every point of a running server once, one random kill for every two of these, and the points of a first
  // start.
  const kills = POINTS_AT_WORK.length + Math.floor(POINTS_AT_WORK.length / 2) + POINTS_OF_FIRST_START.length;
  const report = await crashRun({ kills, seed, clients: 16 });
  expect(report.faults).toEqual([]);
  expect(report.unexpected).toEqual([]);
  expect(report.kills).toBeGreaterThanOrEqual(kills);
  // Every point must have been passed: a run that never got there would prove nothing.
  const points = [...POINTS_AT_WORK.map(([point]) => point), ...POINTS_OF_FIRST_START];
  expect(Object.keys(report.killsByPoint).sort()).toEqual([...points, "at a random time"].sort());
  expect(report.keysJudged).toBeGreaterThan(10);
  expect(report.recordsAudited).toBeGreaterThan(0);
  expect(Object.entries(report.answered).filter(([, count]) => count === 0)).toEqual([]);
});
