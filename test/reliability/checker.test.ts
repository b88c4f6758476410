/**
 * The checker must find every fault and accuse nobody wrongly. Tested with hand-made histories of each fault,
 * a brute-force oracle, and simulated correct servers.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../support/random-runs.ts";
import { agree } from "./checker/group.ts";
import type { Action, FaultKind, Operation, Promotion } from "./checker/history.ts";
import { linearize } from "./checker/linearizability.ts";
import { isAnswered } from "./checker/record-model.ts";
import { advance, type Configuration, initially, type Step, stepsOf } from "./checker/turning-points.ts";
import { judge } from "./checker/verdict.ts";
import {
  add,
  create,
  follow,
  history,
  honestServer,
  put,
  putUnanswered,
  read,
  remove,
  removeUnanswered,
  update,
} from "./made-histories.ts";

const NEVER = Number.POSITIVE_INFINITY;

describe("The checker finds guilty", () => {
  const guilty: [string, FaultKind, Operation[]][] = [
    ["an acknowledged write that a later read does not see", "lost", history([0, 1, put(7)], [2, 3, read(null)])],
    [
      "an acknowledged write that is gone after the server was killed",
      "lost",
      history([0, 1, put(7)], [2, 9, putUnanswered(8)], [10, 11, read(null)]),
    ],
    ["a write that was there, and is gone without a delete", "lost", history([0, 1, put(7)], [2, 3, read(7)], [4, 5, read(null)])],
    ["a read of a value that had been replaced", "stale", history([0, 1, put(7)], [2, 3, put(8)], [4, 5, read(7)])],
    ["a read of a record that was deleted", "resurrected", history([0, 1, put(7)], [2, 3, remove()], [4, 5, read(7)])],
    [
      "a deleted record that comes back after a while",
      "resurrected",
      history([0, 1, put(7)], [2, 3, remove()], [4, 5, read(null)], [6, 7, read(7)]),
    ],
    [
      "two reads, one after the other, that see a write and then do not",
      "non-monotonic",
      history([0, 1, put(7)], [2, 20, put(8)], [3, 4, read(8)], [5, 6, read(7)]),
    ],
    [
      "a write without an answer that is seen, and then is not",
      "non-monotonic",
      history([0, 1, put(7)], [2, NEVER, putUnanswered(8)], [3, 4, read(8)], [5, 6, read(7)]),
    ],
    ["a value that nobody wrote", "phantom", history([0, 1, put(7)], [2, 3, read(9)])],
    ["a value before it was written", "phantom", history([0, 1, read(7)], [2, 3, put(7)])],
    ["the value of a write that was refused", "phantom", history([0, 1, put(7)], [2, 3, create(8, false)], [4, 5, read(8)])],
    ["an update that found nothing where a record was", "not linearizable", history([0, 1, put(7)], [2, 3, update(8, false)])],
    ["a create that was let in where a record was", "not linearizable", history([0, 1, put(7)], [2, 3, create(8)])],
    ["a delete that found nothing where a record was", "not linearizable", history([0, 1, put(7)], [2, 3, remove(false)])],
    ["two deletes of one record that both found it", "not linearizable", history([0, 1, put(7)], [2, 9, remove()], [2, 9, remove()])],
    [
      "a write that takes effect after its server was killed",
      "phantom",
      history([0, 1, put(7)], [2, 5, read(8)], [6, NEVER, putUnanswered(8)]),
    ],
    [
      "an unanswered delete that takes effect when it cannot any more",
      "not linearizable",
      history([0, 1, put(7)], [2, 5, removeUnanswered], [6, 7, read(7)], [8, 9, read(null)]),
    ],
    ["a version that was skipped", "not linearizable", history([0, 1, put(7, 0)], [2, 3, update(8, true, 2)])],
    [
      "two updates that got the same version",
      "not linearizable",
      history([0, 1, put(7, 0)], [2, 9, update(8, true, 1)], [2, 9, update(9, true, 1)]),
    ],
    [
      "a compare-and-set that won twice",
      "not linearizable",
      history(
        [0, 1, put(7, 0)],
        [2, 9, { do: "update", value: 8, ifVersion: 0, answer: { done: true } }],
        [2, 9, { do: "update", value: 9, ifVersion: 0, answer: { done: true } }],
      ),
    ],
    ["an increment that was lost", "not linearizable", history([0, 1, put(0)], [2, 9, add(1)], [2, 9, add(1)], [10, 11, read(1)])],
    ["two increments that saw the same sum", "not linearizable", history([0, 1, put(0)], [2, 9, add(1, 1)], [2, 9, add(1, 1)])],
    ["a search that is too far behind", "stale", history([0, 1, put(7)], [2, 3, put(8)], [200, 201, follow(7)])],
    ["a search that finds a record deleted long ago", "resurrected", history([0, 1, put(7)], [2, 3, remove()], [200, 201, follow(7)])],
    ["a search that does not find a record written long ago", "lost", history([0, 1, put(7)], [200, 201, follow(null)])],
    ["a search that shows the future", "phantom", history([0, 1, follow(7)], [2, 3, put(7)])],
    [
      "a search that goes back behind another, both within the limit",
      "non-monotonic",
      history([0, 1, put(7)], [2, 3, put(8)], [10, 11, follow(8)], [12, 13, follow(7)]),
    ],
    [
      "a search that goes back to the other of two concurrent writes, whose versions tell their order",
      "non-monotonic",
      history([0, 1, put(6, 0)], [2, 9, put(7, 1)], [2, 9, put(8, 2)], [10, 11, follow(8)], [12, 13, follow(7)]),
    ],
    [
      "a search that goes back over a delete",
      "non-monotonic",
      history([0, 1, put(7)], [2, 3, follow(7)], [300, 301, remove()], [302, 303, follow(null)], [304, 305, follow(7)]),
    ],
  ];
  it.each(guilty)("%s", (_name, kind, operations) => {
    const { faults } = judge(operations);
    expect(faults.map((fault) => fault.kind)).toEqual([kind]);
    expect(faults[0]!.key).toBe("k");
  });

  it("a group that shows half of a transaction", () => {
    const halves = agree("g", [{ value: 7 }, { value: 7 }, { value: 6 }], "query");
    expect(halves).toMatchObject({ fault: { kind: "torn", key: "g" } });
    expect(agree("g", [{ value: 7 }, null], "query")).toMatchObject({ fault: { kind: "torn" } });
    expect(
      agree(
        "g",
        [
          { value: 7, version: 1 },
          { value: 7, version: 2 },
        ],
        "query",
      ),
    ).toMatchObject({ fault: { kind: "torn" } });
    expect(agree("g", [{ value: 7 }, { value: 7 }], "query")).toEqual({ saw: { value: 7 } });
    expect(agree("g", [null, null], "query")).toEqual({ saw: null });
  });

  it("a search for an order that had to be given up, rather than passing it", () => {
    const open = Array.from({ length: 12 }, (_, i): [number, number, Action] => [0, 10, put(i, i === 11 ? 99 : undefined)]);
    expect(judge(history(...open), { maxSteps: 500 }).faults.map(({ kind }) => kind)).toEqual(["undecided"]);
    expect(judge(history(...open)).faults.map(({ kind }) => kind)).toEqual(["not linearizable"]);
  });

  it("each guilty key of many", () => {
    const of = (key: string, operations: Operation[]): Operation[] => operations.map((operation) => ({ ...operation, key }));
    const verdict = judge([
      ...of("lost", history([0, 1, put(7)], [2, 3, read(null)])),
      ...of("fine", history([0, 1, put(7)], [2, 3, read(7)])),
      ...of("stale", history([0, 1, put(7)], [2, 3, put(8)], [4, 5, read(7)])),
    ]);
    expect(verdict.faults.map(({ key, kind }) => [key, kind])).toEqual([
      ["lost", "lost"],
      ["stale", "stale"],
    ]);
    expect(verdict).toMatchObject({ operations: 7, keys: 3 });
  });
});

describe("The checker finds innocent", () => {
  const innocent: [string, Operation[]][] = [
    ["nothing at all", []],
    ["a read beside a write, either way", history([0, 1, put(7)], [2, 20, put(8)], [3, 4, read(7)], [5, 6, read(8)], [21, 22, read(8)])],
    ["a write without an answer that took effect", history([0, 1, put(7)], [2, 5, putUnanswered(8)], [6, 7, read(8)])],
    ["a write without an answer that did not", history([0, 1, put(7)], [2, 5, putUnanswered(8)], [6, 7, read(7)], [8, 9, read(7)])],
    [
      "a delete without an answer, either way",
      history([0, 1, put(7)], [2, 5, removeUnanswered], [6, 7, read(null)], [8, 9, create(8)], [10, 11, read(8)]),
    ],
    [
      "a late effect of a request whose client went away",
      history([0, 1, put(7)], [2, NEVER, putUnanswered(8)], [3, 4, read(7)], [50, 51, read(8)]),
    ],
    ["a record deleted and created again", history([0, 1, create(7)], [2, 3, remove()], [4, 5, create(8)], [6, 7, read(8, 0)])],
    ["versions that grow by one", history([0, 1, put(7, 0)], [2, 9, update(8, true, 2)], [2, 9, update(9, true, 1)], [10, 11, read(8, 2)])],
    ["a search within its limit", history([0, 1, put(7)], [2, 3, put(8)], [50, 51, follow(7)], [99, 103, follow(8)])],
    ["a search that shows a write before its answer", history([0, 90, put(7)], [5, 6, follow(7)], [7, 8, follow(7)])],
    [
      "searches that see concurrent writes in one order, whichever it was",
      history([0, 1, put(6)], [2, 9, put(7)], [2, 9, put(8)], [10, 11, follow(7)], [12, 13, follow(8)], [14, 15, put(9)]),
    ],
    [
      "searches that see concurrent writes in the other order",
      history([0, 1, put(6)], [2, 9, put(7)], [2, 9, put(8)], [10, 11, follow(8)], [12, 13, follow(7)], [14, 15, put(9)]),
    ],
    ["increments that all count", history([0, 1, put(0)], [2, 9, add(1, 2)], [2, 9, add(1, 1)], [10, 11, read(2)])],
  ];
  it.each(innocent)("%s", (_name, operations) => {
    expect(judge(operations).faults).toEqual([]);
  });

  it("a correct server, whatever its clients do concurrently, with lost responses and searches that are behind", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const { operations } = honestServer(seed, 60, 6);
        expect(judge(operations).faults).toEqual([]);
      }),
      { numRuns: runs(300) },
    );
  });

  it("four thousand operations of sixteen clients on one key, in a few seconds", () => {
    const { operations } = honestServer(42, 4_000, 16);
    expect(judge(operations).faults).toEqual([]);
  });
});

describe("The search for an order agrees with trying every order", () => {
  const action: fc.Arbitrary<Action> = fc.oneof(
    fc.record({ do: fc.constant("read" as const), saw: fc.option(fc.record({ value: fc.integer({ min: 0, max: 2 }) }), { nil: null }) }),
    fc.record({ do: fc.constant("put" as const), value: fc.integer({ min: 0, max: 2 }), answer: fc.constant({}) }),
    fc.record({ do: fc.constant("put" as const), value: fc.integer({ min: 0, max: 2 }) }),
    fc.record({ do: fc.constant("create" as const), value: fc.integer({ min: 0, max: 2 }), answer: fc.record({ done: fc.boolean() }) }),
    fc.record({ do: fc.constant("delete" as const), answer: fc.record({ found: fc.boolean() }) }),
    fc.record({ do: fc.constant("delete" as const) }),
  );
  const operation = fc.record({ action, invokedMs: fc.integer({ min: 0, max: 12 }), lasts: fc.integer({ min: 1, max: 6 }) });
  const operations = fc.array(operation, { maxLength: 6 }).map((drawn) =>
    drawn.map(
      ({ action: drawnAction, invokedMs, lasts }, client): Operation => ({
        client,
        key: "k",
        action: drawnAction,
        invokedMs,
        returnedMs: invokedMs + lasts,
      }),
    ),
  );

  it.each([
    ["arbitrary answers", [], 3_000],
    ["arbitrary answers around a promotion", [{ leftUntilMs: 4, lostFromMs: 6, cutOffMs: 8, reachedMs: 9, wholeMs: 10 }], 3_000],
  ])("on small histories with %s", (_name, promotions: Promotion[], numRuns) => {
    let possible = 0;
    fc.assert(
      fc.property(operations, (drawn) => {
        const expected = someOrderExplains(stepsOf(drawn, promotions), initially(null));
        if (expected) possible++;
        expect(linearize(drawn, { promotions }).outcome).toBe(expected ? "linearizable" : "impossible");
      }),
      { numRuns: runs(numRuns) },
    );
    expect(possible).toBeGreaterThan(300);
  });

  it("and one wrong answer among a correct server's is found", () => {
    let found = 0;
    let judged = 0;
    for (let seed = 0; seed < 200; seed++) {
      const { operations, random } = honestServer(seed, 60, 3);
      const reads = operations.filter(({ action }) => action.do === "read");
      const victim = reads[Math.floor(random() * reads.length)];
      if (victim === undefined) continue;
      judged++;
      // A state that the key had long before, or never.
      const forged = operations.map((operation) => (operation === victim ? { ...operation, action: read(1_000_000) } : operation));
      if (judge(forged).faults.length > 0) found++;
    }
    expect(judged).toBeGreaterThan(150);
    expect(found).toBe(judged);
  });
});

/** The definition, word for word: every order that respects time, with unanswered operations in or out. */
function someOrderExplains(left: readonly Step[], configuration: Configuration): boolean {
  if (left.length === 0) return true;
  return left.some((candidate) => {
    if (left.some((other) => other !== candidate && other.toMs < candidate.fromMs)) return false;
    const others = left.filter((other) => other !== candidate);
    const next = advance(configuration, candidate);
    if (next !== undefined && someOrderExplains(others, next)) return true;
    const mayBeOmitted = candidate.operation !== undefined && !isAnswered(candidate.operation.action);
    return mayBeOmitted && someOrderExplains(others, configuration);
  });
}
