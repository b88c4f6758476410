import { pino } from "pino";
import { expect, it } from "vitest";
import { StartSteps } from "../../src/cli/start-steps.ts";

const REPEATED = /^Lodestone is starting: reading 2 of 3(?:, for \d+ s)?\n$/;

it("says a step when it begins, and again while it lasts, in the words of that moment", async () => {
  const logged: string[] = [];
  const written: string[] = [];
  const log = pino({ level: "info" }, { write: (line) => void logged.push((JSON.parse(line) as { msg: string }).msg) });
  const steps = new StartSteps(log, { terminal: { write: (line: string) => written.push(line) }, repeatMs: 1 });
  steps.begin("opening the database");
  expect(written[0]).toBe("Lodestone is starting: opening the database\n");
  let page = 1;
  steps.begin(() => `reading ${page} of 3`);
  page = 2;
  await expect.poll(() => written.filter((line) => REPEATED.test(line)).length).toBeGreaterThan(2);
  steps.end();
  const said = written.length;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(written).toHaveLength(said);
  expect(logged).toHaveLength(said);
  expect(logged[0]).toBe("starting: opening the database");
  expect(logged).toContain("starting: reading 1 of 3");
  expect(logged.at(-1)).toBe("starting: reading 2 of 3");
});
