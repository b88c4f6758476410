import { describe, expect, test } from "vitest";
import { FairShares } from "../../src/fairness/fair-shares.ts";

const takeAll = (shares: FairShares, caller: string): number => {
  let taken = 0;
  while (shares.take(caller)) taken++;
  return taken;
};

describe("FairShares", () => {
  test.each([
    [1, 1],
    [3, 3],
    [4, 3],
    [256, 192],
  ])("of %i one caller gets %i at most", (capacity, most) => {
    const shares = new FairShares(capacity);
    expect(takeAll(shares, "a")).toBe(most);
    shares.give("a");
    expect(takeAll(shares, "a")).toBe(1);
  });

  test("the last quarter is for those who hold less than their share", () => {
    const shares = new FairShares(100);
    expect(takeAll(shares, "greedy")).toBe(75);
    expect(takeAll(shares, "second")).toBe(25);
    expect(shares.take("third")).toBe(false);
    // What the greedy one gives back goes to those below their share before it goes to it again.
    for (let i = 0; i < 10; i++) shares.give("greedy");
    expect(shares.take("greedy")).toBe(false);
    expect(takeAll(shares, "third")).toBe(10);
    expect([shares.total, shares.heldBy("greedy"), shares.heldBy("second"), shares.heldBy("third")]).toEqual([100, 65, 25, 10]);
  });

  test("nothing is left of who has given everything back", () => {
    const shares = new FairShares(8);
    expect(shares.take("a", 6)).toBe(true);
    shares.give("a", 6);
    expect([shares.total, shares.heldBy("a")]).toEqual([0, 0]);
    expect(shares.take("b", 7)).toBe(false);
    expect(shares.take("b", 6)).toBe(true);
  });
});
