/** A minute of faults over three servers. `npm run soak:cluster` runs it for an hour. */
import { expect, it } from "vitest";
import { LIMIT_MS } from "../support/patience.ts";
import { describeWith } from "../support/requirements.ts";
import { clusterRun } from "./cluster-run.ts";

describeWith("postgresql", "Three servers", (postgresBin) => {
  describeWith("nginx", "behind a balancer", (nginxBin) => {
    describeWith("chromium", "and replicas in programs and pages", (chromium) => {
      it("give answers that fit one history through kills, outages and promotions", { timeout: 3 * LIMIT_MS }, async () => {
        const report = await clusterRun({
          postgresBin,
          nginxBin,
          rounds: 1,
          outageSeconds: 5,
          calmOperations: 100,
          clients: 6,
          seed: 11,
          replicas: { programs: 2, pages: 3, chromium },
        });
        expect(report.faults).toEqual([]);
        expect(report.unexpected).toEqual([]);
        expect(report.recoveriesMs.length).toBe(3);
        expect(report.lostWrites).toBeGreaterThan(0);
        expect(report.keysJudged).toBeGreaterThan(5);
        expect(Object.entries(report.answered).filter(([, count]) => count === 0)).toEqual([]);
      });
    });

    it("that hold search parts do so through an outage and a promotion", { timeout: 3 * LIMIT_MS }, async () => {
      const events = ["outage", "promotion"] as const;
      const base = { postgresBin, nginxBin, rounds: 1, outageSeconds: 5, calmOperations: 100, clients: 6, seed: 12 };
      const report = await clusterRun({ ...base, events, parts: true });
      expect(report.faults).toEqual([]);
      expect(report.unexpected).toEqual([]);
      expect(report.recoveriesMs.length).toBe(2);
      expect(report.keysJudged).toBeGreaterThan(5);
      expect(Object.entries(report.answered).filter(([, count]) => count === 0)).toEqual([]);
    });
  });
});
