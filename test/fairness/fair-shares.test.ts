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

  test("the last quarter is reserved for those below their share", () => {
    const shares = new FairShares(100);
    expect(takeAll(shares, "greedy")).toBe(75);
    expect(takeAll(shares, "second")).toBe(25);
    expect(shares.take("third")).toBe(false);
    // What the greedy caller gives back goes to callers below their share before it can have it again.
    for (let i = 0; i < 10; i++) shares.give("greedy");
    expect(shares.take("greedy")).toBe(false);
    expect(takeAll(shares, "third")).toBe(10);
    expect([shares.total, shares.heldBy("greedy"), shares.heldBy("second"), shares.heldBy("third")]).toEqual([100, 65, 25, 10]);
  });

  test("forgets a caller who has given everything back", () => {
    const shares = new FairShares(8);
    expect(shares.take("a", 6)).toBe(true);
    shares.give("a", 6);
    expect([shares.total, shares.heldBy("a")]).toEqual([0, 0]);
    expect(shares.take("b", 7)).toBe(false);
    expect(shares.take("b", 6)).toBe(true);
  });
});
