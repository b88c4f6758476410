import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FairQueue } from "../../src/fairness/fair-queue.ts";
import { runs } from "../support/random-runs.ts";

interface Work {
  readonly caller: string;
  readonly number: number;
}

const fill = (queue: FairQueue<Work>, caller: string, count: number): Work[] =>
  Array.from({ length: count }, (_, number) => {
    const work = { caller, number };
    queue.push(caller, work);
    return work;
  });

describe("FairQueue", () => {
  test("keeps one caller's order", () => {
    const queue = new FairQueue<Work>();
    const all = fill(queue, "a", 5);
    expect(queue.delete("a", all[2]!)).toBe(true);
    expect(queue.delete("a", all[2]!)).toBe(false);
    expect(queue.delete("b", all[1]!)).toBe(false);
    expect([queue.size, queue.sizeOf("a"), queue.sizeOf("b")]).toEqual([4, 4, 0]);
    expect([...queue.drain()].map(({ number }) => number)).toEqual([0, 1, 3, 4]);
    expect(queue.shift()).toBeUndefined();
  });

  test("lets callers take turns, however much work of each is waiting", () => {
    const queue = new FairQueue<Work>();
    fill(queue, "greedy", 1_000);
    fill(queue, "modest", 2);
    const order: string[] = [];
    for (let i = 0; i < 6; i++) {
      const { caller } = queue.shift()!;
      queue.charge(caller, 1);
      order.push(caller);
    }
    expect(order.filter((caller) => caller === "modest")).toHaveLength(2);
    expect(order.slice(0, 4).filter((caller) => caller === "modest")).toHaveLength(2);
  });

  test("counts the cost of work, not its number", () => {
    const queue = new FairQueue<Work>();
    fill(queue, "slow", 100);
    fill(queue, "quick", 1_000);
    const served = { slow: 0, quick: 0 };
    for (let i = 0; i < 505; i++) {
      const { caller } = queue.shift()!;
      queue.charge(caller, caller === "slow" ? 100 : 1);
      served[caller as keyof typeof served]++;
    }
    // Each has had the same time, up to one piece of work.
    expect(Math.abs(served.slow * 100 - served.quick)).toBeLessThanOrEqual(100);
  });

  test("charges work that runs concurrently when it begins, and corrects the charge when it ends", () => {
    const queue = new FairQueue<Work>();
    fill(queue, "a", 10);
    fill(queue, "b", 10);
    const first = [queue.shift(10)!.caller, queue.shift(10)!.caller];
    expect(first.sort()).toEqual(["a", "b"]);
    queue.charge("a", -9);
    expect([queue.shift(1)!.caller, queue.shift(1)!.caller]).toEqual(["a", "a"]);
  });

  test("gives nobody more for having been away, and nobody less for having been alone", () => {
    const queue = new FairQueue<Work>();
    fill(queue, "early", 1_000);
    for (let i = 0; i < 500; i++) queue.charge(queue.shift()!.caller, 10);
    fill(queue, "late", 500);
    const served: string[] = [];
    for (let i = 0; i < 100; i++) {
      const { caller } = queue.shift()!;
      queue.charge(caller, 10);
      served.push(caller);
    }
    expect(served.filter((caller) => caller === "late").length).toBeGreaterThanOrEqual(49);
    expect(served.filter((caller) => caller === "late").length).toBeLessThanOrEqual(51);
  });

  test("remembers the debt of a caller that has nothing waiting", () => {
    const queue = new FairQueue<Work>();
    fill(queue, "hog", 1);
    fill(queue, "other", 3);
    const order: string[] = [];
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      order.push(next.caller);
      queue.charge(next.caller, next.caller === "hog" ? 1_000 : 1);
      if (next.caller === "hog" && order.length < 3) fill(queue, "hog", 1);
    }
    expect(order.indexOf("hog")).toBeLessThan(2);
    expect(order.at(-1)).toBe("hog");
    expect(order).toHaveLength(5);
  });

  test("serves everything once, and leaves nobody behind by more than each caller's largest cost", () => {
    const callers = ["a", "b", "c"];
    fc.assert(
      fc.property(
        fc.array(fc.record({ caller: fc.constantFrom(...callers), cost: fc.integer({ min: 1, max: 50 }) }), { minLength: 1 }),
        (works) => {
          const queue = new FairQueue<{ caller: string; cost: number }>();
          for (const work of works) queue.push(work.caller, work);
          const had = new Map(callers.map((caller) => [caller, 0]));
          const left = new Map(callers.map((caller) => [caller, works.filter((work) => work.caller === caller).length]));
          let count = 0;
          for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
            const { caller, cost } = next.item;
            count++;
            for (const other of callers) {
              if (other !== caller && left.get(other)! > 0) expect(had.get(caller)!).toBeLessThanOrEqual(had.get(other)! + 50);
            }
            queue.charge(caller, cost);
            had.set(caller, had.get(caller)! + cost);
            left.set(caller, left.get(caller)! - 1);
          }
          expect(count).toBe(works.length);
        },
      ),
      { numRuns: runs(300) },
    );
  });
});
