import { beforeEach, describe, expect, it } from "vitest";
import { UnitQueue } from "../../../src/records/engine/embedded/unit-queue.ts";

describe("the embedded database's queue", () => {
  let now: number;
  let queue: UnitQueue<{ caller: string; isUrgent: boolean }>;
  beforeEach(() => {
    now = 1_000;
    queue = new UnitQueue(() => now);
  });

  const push = (caller: string, isUrgent = false) => {
    const unit = { caller, isUrgent };
    queue.push(unit);
    return unit;
  };
  /** Runs the next unit for this long; returns its caller. */
  const run = (elapsedMs: number): string | undefined => {
    const unit = queue.shift();
    if (unit === undefined) return undefined;
    now += elapsedMs;
    queue.charge(unit, elapsedMs);
    return unit.caller;
  };

  it("a caller who is alone never rests", () => {
    for (let i = 0; i < 3; i++) push("a");
    expect([run(5_000), run(5_000), run(5_000)]).toEqual(["a", "a", "a"]);
  });

  it("after a long unit its caller rests for as long, if others are there: they find the session free", () => {
    push("b");
    expect(run(1)).toBe("b");
    for (let i = 0; i < 2; i++) push("a");
    expect(run(3_000)).toBe("a");
    expect(run(1)).toBeUndefined();
    expect(queue.restMs).toBe(3_000);
    now += 2_000;
    push("b");
    expect([run(1), run(1)]).toEqual(["b", undefined]);
    expect(queue.restMs).toBe(999);
    now += 999;
    expect(run(20_000)).toBe("a");
    // The others have left.
    push("a");
    push("a");
    now += 10_000;
    expect([run(3_000), run(3_000)]).toEqual(["a", "a"]);
  });

  it("a unit that cost the session makes everything of its caller rest nine times as long, if others are there", () => {
    push("b");
    run(1);
    push("a");
    const unit = queue.shift()!;
    now += 2_500;
    queue.charge(unit, 2_500, true);
    push("a");
    for (let i = 0; i < 22; i++) {
      push("b");
      expect([run(1), run(1)]).toEqual(["b", undefined]);
      now += 1_000;
    }
    now += 500;
    expect(run(1)).toBe("a");
  });

  it("after an urgent unit that took a while those who wait go first for as long; when nobody does, the next one is at once", () => {
    push("a");
    push("b");
    expect([run(1), run(1), queue.callers]).toEqual(["a", "b", 2]);
    push("", true);
    push("", true);
    push("", true);
    for (let i = 0; i < 3; i++) push("b");
    expect([run(99), run(49), run(49), run(1), run(250), run(1), run(1)]).toEqual(["", "b", "b", "b", "", "", undefined]);
    // It waits longer for nobody.
    push("", true);
    run(250);
    push("", true);
    push("b");
    now += 250;
    expect([run(10), run(1)]).toEqual(["", "b"]);
  });

  it("after a long turn those who waited go before urgent units", () => {
    push("a");
    push("b");
    expect([run(1), run(1)]).toEqual(["a", "b"]);
    push("a");
    queue.putBack(queue.shift()!);
    now += 1_000;
    const long = queue.shift()!;
    push("b");
    push("", true);
    now += 1_500;
    queue.charge(long, 1_500);
    expect([long.caller, run(1), run(1)]).toEqual(["a", "b", ""]);
  });

  it("before a caller who is alone urgent units go always", () => {
    push("a");
    run(1);
    push("", true);
    push("", true);
    push("a");
    expect([run(2_000), run(2_000), run(1)]).toEqual(["", "", "a"]);
  });

  it("a read that may be for another caller waits for a running unit, if another was there", () => {
    push("a");
    const alone = queue.shift()!;
    push("", true);
    expect(queue.isWaitedFor).toBe(false);
    queue.charge(alone, 10);
    run(1);
    push("b");
    run(1);
    push("a");
    queue.shift();
    expect(queue.isWaitedFor).toBe(false);
    push("", true);
    expect(queue.isWaitedFor).toBe(true);
  });

  it("short units, urgent units and the service's own never rest", () => {
    push("b");
    run(1);
    for (let i = 0; i < 3; i++) push("a");
    expect([run(49), run(49), run(49)]).toEqual(["a", "a", "a"]);
    push("");
    push("");
    expect([run(3_000), run(3_000)]).toEqual(["", ""]);
    push("b");
    push("a");
    expect([run(1), run(5_000)]).toEqual(["b", "a"]);
    push("a");
    push("a", true);
    expect([run(60), run(1)]).toEqual(["a", undefined]);
  });

  it("nobody rests once the database is being closed", () => {
    push("b");
    run(1);
    push("a");
    push("a");
    expect([run(3_000), run(1)]).toEqual(["a", undefined]);
    queue.drain();
    expect(run(1)).toBe("a");
  });

  it("a unit that is given up is gone", () => {
    const [first, second] = [push("a"), push("a", true)];
    queue.delete(first);
    queue.delete(second);
    expect([queue.size, run(1)]).toEqual([0, undefined]);
  });
});

describe("long units in the embedded database's queue", () => {
  interface Sized {
    readonly caller: string;
    readonly isUrgent: boolean;
    /** How long it takes. */
    readonly ms: number;
    isLong?: boolean;
  }
  let now: number;
  let queue: UnitQueue<Sized>;
  beforeEach(() => {
    now = 1_000;
    queue = new UnitQueue(() => now);
  });

  const push = (caller: string, ms = 1) => queue.push({ caller, isUrgent: false, ms });
  /**
   * Runs the next unit to its end, or until it must make way; returns its caller, and whether it made way.
   */
  const run = (): string | undefined => {
    const unit = queue.shift();
    if (unit === undefined) return undefined;
    const startedAt = now;
    while (now - startedAt < unit.ms && !queue.mustBePreempted) now++;
    const elapsedMs = now - startedAt;
    if (elapsedMs < unit.ms) queue.putBack(unit);
    queue.charge(unit, elapsedMs);
    return elapsedMs < unit.ms ? `${unit.caller} makes way` : unit.caller;
  };

  it("makes way after its turn when another caller waits, and runs to its end once that one has been served", () => {
    push("heavy", 5_000);
    push("light");
    push("light");
    expect([run(), run(), run()]).toEqual(["heavy makes way", "light", "light"]);
    push("light");
    expect([run(), run()]).toEqual(["light", "heavy"]);
  });

  it("is not cut short when nobody else waits, or only the service", () => {
    push("light");
    run();
    push("heavy", 5_000);
    push("");
    expect(run()).toBe("heavy");
  });

  it("is not cut short for somebody who had more of the session recently", () => {
    push("light");
    run();
    push("heavy", 5_000);
    expect(run()).toBe("heavy");
    now += 10_000;
    push("light", 300);
    push("heavy", 10);
    expect([run(), run()]).toEqual(["light", "heavy"]);
  });

  it("gets a tenth of the time while others are there, in long turns; short units of its caller continue", () => {
    const longTurns: number[] = [];
    const served = { light: 0, heavy: 0 };
    for (let i = 0; i < 20; i++) push("heavy", 1_000);
    while (now < 60_000) {
      push("light");
      push("heavy");
      const startedAt = now;
      const whose = run();
      if (whose === "heavy" && now - startedAt === 1_000) longTurns.push(startedAt);
      else if (whose === "light" || whose === "heavy") served[whose]++;
      now++;
    }
    expect(longTurns.length).toBeGreaterThan(4);
    for (let i = 1; i < longTurns.length; i++) expect(longTurns[i]! - longTurns[i - 1]!).toBeGreaterThanOrEqual(10_000);
    expect(served.light).toBeGreaterThan(10_000);
    expect(served.heavy).toBeGreaterThan(5_000);
  });

  it("does not wait for a turn once its caller is alone", () => {
    push("light");
    run();
    push("heavy", 1_000);
    push("light");
    expect([run(), run(), run()]).toEqual(["heavy makes way", "light", "heavy"]);
    now += 1_000;
    push("heavy", 1_000);
    const unit = queue.shift()!;
    queue.putBack(unit);
    queue.charge(unit, 200);
    push("light");
    expect([run(), run()]).toEqual(["light", undefined]);
    now += 1_000;
    expect(run()).toBeUndefined();
    now += 1_500;
    expect(run()).toBe("heavy");
  });
});
