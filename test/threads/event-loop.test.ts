import { expect, test } from "vitest";
import { Slices } from "../../src/threads/event-loop.ts";

test("who holds what others need has his slices before all others, who take turns", async () => {
  const order: string[] = [];
  const work = async (name: string, slices: Slices, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      await slices.rest();
      order.push(name);
    }
  };
  await Promise.all([
    work("a", new Slices(1, "a"), 3),
    work("a", new Slices(1, "a"), 3),
    work("b", new Slices(1, "b"), 3),
    work("holding", new Slices(1, "", { isHolding: true }), 4),
  ]);
  expect(order.slice(0, 4)).toEqual(["holding", "holding", "holding", "holding"]);
  expect(order.slice(4, 8).filter((name) => name === "b")).toHaveLength(2);
});

test("a signal ends the work at its next slice", async () => {
  const controller = new AbortController();
  const slices = new Slices(1, "", { signal: controller.signal });
  await slices.rest();
  const reason = new Error("nobody waits for it");
  const resting = slices.rest();
  controller.abort(reason);
  await expect(resting).rejects.toBe(reason);
});
