/** The store follows what is written, whatever becomes of notifications, reads and the clock. */
import { expect, test, vi } from "vitest";
import { describeOnEngines } from "./engines.ts";
import { item, itemsStore, OPTIONS, REF } from "./items-store.ts";

describeOnEngines("a search store over", (start) => {
  const at = itemsStore(start);

  test("follows inserts, updates and deletes; strong answers reflect every write made before", async () => {
    expect(await at.search({})).toEqual({ totalCount: 0, results: [] });
    for (let i = 0; i < 50; i++) {
      at.records.write(REF, "items", [item("a", [i, 1, 0]), item(`b${i}`, [1, i, 0])], i > 0 ? [`b${i - 1}`] : []);
      const { totalCount, results } = await at.search({ queryVector: [i, 1, 0], similarityFunction: "l2" });
      expect(totalCount).toBe(2);
      expect(results[0]!).toEqual({ id: i === 1 ? "a" : "a", score: 1 });
      expect(results.map(({ id }) => id).sort()).toEqual(["a", `b${i}`]);
    }
    at.records.write(REF, "items", [item("a", null)]);
    expect(await at.ids({})).toEqual(["b49"]);
  });

  test("catches up by itself, even when a notification was lost", async () => {
    await at.search({});
    at.records.isSilent = true;
    at.records.write(REF, "items", [item("a", [1, 2, 3])]);
    await expect.poll(async () => (await at.search({ consistency: "eventual" })).totalCount).toBe(1);
  });

  test.each([
    ["is told of", false],
    ["is not told of", true],
  ])("follows what it %s after the clock was set back", async (_, isSilent) => {
    at.records.write(REF, "items", [item("a", [1, 2, 3])]);
    await at.search({});
    const { now } = Date;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
    try {
      at.records.isSilent = isSilent;
      at.records.write(REF, "items", [item("b", [1, 2, 3])]);
      await expect.poll(async () => (await at.search({ consistency: "eventual" })).totalCount).toBe(2);
    } finally {
      clock.mockRestore();
    }
  });

  test("applies a transaction that comes in several reads as one", async () => {
    at.records.readLimit = 7;
    await at.search({});
    const half = (n: number) => Array.from({ length: 40 }, (_, i) => item(`i${i}`, [n, 0, 1]));
    let isWriting = true;
    const seen = new Set<number>();
    const reader = (async () => {
      while (isWriting) {
        const { results, totalCount } = await at.search({ queryVector: [1, 0, 0], size: 1000, consistency: "eventual" });
        expect(new Set(results.map(({ score }) => score)).size).toBeLessThanOrEqual(1);
        seen.add(totalCount);
      }
    })();
    for (let n = 1; n < 40; n++) {
      at.records.write(REF, "items", half(n));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    isWriting = false;
    await reader;
    expect([...seen].every((count) => count === 0 || count === 40)).toBe(true);
  });

  test("shares one read among concurrent strong searches", async () => {
    await at.store.close();
    // Polls read too.
    at.store = await at.engine.open(at.records, { ...OPTIONS, pollMs: 60_000 });
    await at.search({});
    const before = at.records.reads.since;
    await Promise.all(Array.from({ length: 50 }, () => at.search({})));
    expect(at.records.reads.since - before).toBeLessThanOrEqual(4);
  });

  test("reads the branch again when the position is too old", async () => {
    at.records.write(REF, "items", [item("a", [1, 2, 3]), item("b", [1, 2, 3])]);
    expect(await at.ids({})).toEqual(["a", "b"]);
    at.records.isSilent = true;
    at.records.write(REF, "items", [], ["a"]);
    at.records.trimmedBelow = 3;
    expect(await at.ids({})).toEqual(["b"]);
  });

  test("continues after reads that fail", async () => {
    let failures = 3;
    at.records.beforeRead = () => {
      if (failures-- > 0) throw new Error("the database is away");
    };
    at.records.write(REF, "items", [item("a", [1, 2, 3])]);
    await expect.poll(async () => (await at.search({ consistency: "eventual" })).totalCount).toBe(1);
  });
});
