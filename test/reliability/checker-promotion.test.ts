/** What the checker says of histories around the promotion of an asynchronous standby. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../support/random-runs.ts";
import type { FaultKind, Operation, Promotion } from "./checker/history.ts";
import { judge } from "./checker/verdict.ts";
import { add, create, follow, history, honestStandby, put, putUnanswered, read, remove, update } from "./made-histories.ts";

/** The commits before 10 are left, those from 20 on are lost; the standby is the primary from 40 on. */
const PROMOTION: Promotion = { leftUntilMs: 10, lostFromMs: 20, cutOffMs: 30, reachedMs: 40, wholeMs: 50 };

describe("Around the promotion of an asynchronous standby, the checker finds innocent", () => {
  const innocent: [string, Operation[]][] = [
    ["that the last writes are gone", history([0, 1, put(7, 0)], [21, 22, put(8, 1)], [23, 24, read(8, 1)], [41, 42, read(7, 0)])],
    ["that a record created last is gone", history([21, 22, create(7)], [41, 42, read(null)], [43, 44, create(8)], [45, 46, read(8, 0)])],
    ["that a record deleted last is back", history([0, 1, put(7)], [21, 22, remove()], [23, 24, read(null)], [41, 42, read(7)])],
    ["that a write between the known commits is left", history([0, 1, put(7)], [12, 13, put(8)], [41, 42, read(8)])],
    ["that a write between the known commits is lost", history([0, 1, put(7)], [12, 13, put(8)], [41, 42, read(7)])],
    [
      "that all but the first of several are lost",
      history([11, 12, put(7, 0)], [13, 14, update(8, true, 1)], [15, 16, update(9, true, 2)], [17, 18, read(9)], [41, 42, read(7, 0)]),
    ],
    [
      "an unanswered request that the new primary carried out",
      history([0, 1, put(7)], [35, 45, putUnanswered(8)], [41, 42, read(7)], [46, 47, read(8)]),
    ],
    [
      "that versions begin again where they are left",
      history([0, 1, put(7, 0)], [21, 22, update(8, true, 1)], [41, 42, update(9, true, 1)]),
    ],
    ["increments that start from the sum that is left", history([0, 1, put(0)], [21, 22, add(5, 5)], [41, 42, add(1, 1)])],
    ["a search of the lost state while servers read the new primary", history([0, 1, put(7)], [21, 22, put(8)], [45, 46, follow(8)])],
    ["a search that is behind in what is left", history([0, 1, put(7)], [41, 42, put(8)], [51, 52, follow(7)])],
  ];
  it.each(innocent)("%s", (_name, operations) => {
    expect(judge(operations, { promotions: [PROMOTION] }).faults).toEqual([]);
  });

  it("a correct primary and its standby, whatever clients do concurrently", () => {
    let lost = 0;
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const { operations, promotion } = honestStandby(seed);
        expect(judge(operations, { promotions: [promotion] }).faults).toEqual([]);
        if (judge(operations).faults.length > 0) lost++;
      }),
      { numRuns: runs(200) },
    );
    expect(lost).toBeGreaterThan(100);
  });
});

describe("Around the promotion of an asynchronous standby, the checker finds guilty", () => {
  const guilty: [string, FaultKind, Operation[]][] = [
    ["that a write before the last commit that is left is gone", "lost", history([0, 1, put(7)], [41, 42, read(null)])],
    ["that it is replaced by an older one", "stale", history([0, 1, put(7)], [2, 3, put(8)], [41, 42, read(7)])],
    [
      "that a write after the first commit that is lost is left",
      "resurrected",
      history([0, 1, put(7)], [21, 22, put(8)], [41, 42, read(8)]),
    ],
    [
      "a lost write that comes back",
      "resurrected",
      history([0, 1, put(7)], [21, 22, put(8)], [41, 42, read(7)], [43, 44, read(7)], [45, 46, read(8)]),
    ],
    [
      "a lost increment that comes back",
      "not linearizable",
      history([0, 1, put(0)], [21, 22, add(5, 5)], [41, 42, read(0)], [43, 44, add(1, 6)]),
    ],
    [
      "that one of several is lost in their midst",
      "not linearizable",
      history([0, 1, put(7, 0)], [12, 13, update(8, true, 1)], [14, 15, update(9, true, 2)], [41, 42, read(9, 1)]),
    ],
    [
      "that an increment is lost in the midst of others",
      "not linearizable",
      history([0, 1, put(0)], [12, 13, add(1, 1)], [14, 15, add(10, 11)], [41, 42, read(10)]),
    ],
    [
      "a delete that is lost while what it deleted is not there",
      "not linearizable",
      history([0, 1, put(7)], [21, 22, remove()], [41, 42, read(null)]),
    ],
    ["an old state of the former primary", "stale", history([0, 1, put(7)], [2, 3, put(8)], [21, 22, put(9)], [41, 42, read(7)])],
    ["a search that goes on showing what is lost", "resurrected", history([0, 1, put(7)], [21, 22, put(8)], [51, 52, follow(8)])],
    [
      "what two servers see of the two primaries at a time",
      "resurrected",
      history([0, 1, put(7)], [21, 22, put(8)], [41, 44, read(7)], [42, 43, read(8)]),
    ],
  ];
  it.each(guilty)("%s", (_name, kind, operations) => {
    const { faults } = judge(operations, { promotions: [PROMOTION], servers: "many" });
    expect(faults.map((fault) => fault.kind)).toEqual([kind]);
  });

  it("a write that the second of two promotions has lost, and that is seen", () => {
    const second = { leftUntilMs: 110, lostFromMs: 120, cutOffMs: 130, reachedMs: 140, wholeMs: 150 };
    const operations = history(
      [0, 1, put(7)],
      [21, 22, put(8)],
      [41, 42, put(9)],
      [121, 122, put(10)],
      [141, 142, read(9)],
      [151, 152, follow(9)],
    );
    expect(judge(operations, { promotions: [PROMOTION, second] }).faults).toEqual([]);
    const guilty = [...operations, ...history([160, 161, read(10)])];
    expect(judge(guilty, { promotions: [PROMOTION, second] }).faults.map(({ kind }) => kind)).toEqual(["resurrected"]);
  });
});
