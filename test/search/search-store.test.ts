/** From the first read of the records to the close. */
import type { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import { startSearchWorker } from "../../src/search/worker-client.ts";
import { describeOnEngines } from "./engines.ts";
import { item, itemsStore, OPTIONS, REF, recordsWithItems } from "./items-store.ts";

describeOnEngines("a search store over", (start) => {
  const at = itemsStore(start);

  test("is ready when every branch has been read, and names what is not", async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    await expect.poll(() => at.store.status().ready).toBe(true);
    await at.store.close();
    await at.engine.reset();
    at.records.beforeRead = (kind) => (kind === "all" ? gate : undefined);
    at.store = await at.engine.open(at.records, { ...OPTIONS, waitMs: 100 });
    await expect.poll(() => at.store.status()).toMatchObject({ ready: false, pending: ["db:main"] });
    await expect(at.search({ consistency: "eventual" })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "The search store is still reading branch db:main; try again in a moment.",
    });
    release();
    await expect.poll(() => at.store.status().ready).toBe(true);
    expect(at.store.status()).toMatchObject({ pending: [], rows: 0 });
  });

  test("reads many branches a few at a time, and follows them all", async () => {
    await at.store.close();
    await at.engine.reset();
    const refs = Array.from({ length: 120 }, (_, i) => ({ database: "many", branch: `b${i}` }));
    for (const [i, ref] of refs.entries()) {
      at.records.createBranch(ref);
      at.records.createTable(ref, "items", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
      at.records.write(ref, "items", [{ id: `i${i}`, v: [1, i] }]);
    }
    let reading = 0;
    let most = 0;
    at.records.beforeRead = async (kind) => {
      if (kind === "since") return;
      most = Math.max(most, ++reading);
      await new Promise((resolve) => setTimeout(resolve, 1));
      reading--;
    };
    at.store = await at.engine.open(at.records, OPTIONS);
    await expect.poll(() => at.store.status().ready).toBe(true);
    expect(most).toBeLessThanOrEqual(2);
    expect(at.store.status().rows).toBe(120);
    // Without notifications, polling must reach all of them.
    at.records.isSilent = true;
    for (const ref of refs) at.records.write(ref, "items", [{ id: "second", v: [1, 1] }]);
    await expect.poll(() => at.store.status().rows).toBe(240);
  });

  test("is UNAVAILABLE once closed", async () => {
    await at.store.close();
    await expect(at.search({})).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("search store in memory", () => {
  test("starts another worker when one dies, and reads everything again; searches wait for it", async () => {
    const records = recordsWithItems();
    const workers: Worker[] = [];
    const faults: unknown[] = [];
    const startWorker = (): Worker => {
      workers.push(startSearchWorker());
      return workers.at(-1)!;
    };
    const store = await openSearchStore(records, { ...OPTIONS, startWorker, onFault: (error) => faults.push(error) });
    const ids = async (consistency: "strong" | "eventual" = "strong"): Promise<string[]> => {
      const { results } = await store.vectorSearch(REF, "items", { column: "embedding", queryVector: [1, 2, 3], consistency });
      return results.map(({ id }) => id);
    };
    records.write(REF, "items", [item("a", [1, 2, 3]), item("b", [3, 2, 1])]);
    expect(await ids()).toEqual(["a", "b"]);
    for (let crash = 1; crash <= 3; crash++) {
      const inFlight = store.vectorSearchMany(REF, "items", {
        column: "embedding",
        queryVectors: Array.from({ length: 100 }, () => [1, 2, 3]),
      });
      // Answered before the worker ended, or refused; never left hanging.
      const outcome = inFlight.then(
        (answers) => expect(answers).toHaveLength(100),
        (error) => expect(error).toMatchObject({ code: "UNAVAILABLE", retryAfterSeconds: 1 }),
      );
      await workers.at(-1)!.terminate();
      await outcome;
      expect(store.status().ready).toBe(false);
      records.write(REF, "items", [item(`c${crash}`, [0, 0, 1])], [`c${crash - 1}`]);
      expect(await ids("eventual")).toEqual(["a", `c${crash}`, "b"]);
      await expect.poll(() => store.status().ready).toBe(true);
      expect(workers).toHaveLength(crash + 1);
    }
    expect(faults.length).toBeGreaterThanOrEqual(3);
    await store.close();
  });
});
