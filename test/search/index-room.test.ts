/**
 * Memory for indexes is bounded: the largest user gives way, the others continue, and it returns when there
 * is room.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { BranchRef } from "../../src/records/schema.ts";
import { IndexRoom } from "../../src/search/index-room.ts";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { startSearchWorker } from "../../src/search/worker-client.ts";
import { MemoryRecords } from "./memory-records.ts";

describe("room for indexes", () => {
  it("the largest branch of the database that uses most gives way, until the rest fits", () => {
    const room = new IndexRoom<{ incarnation: string }>(100);
    const [fair, one, two] = [{ incarnation: "1" }, { incarnation: "2" }, { incarnation: "3" }];
    room.set(fair, "a:main", 40);
    room.set(one, "b:one", 25);
    room.set(two, "b:two", 30);
    expect(room.giveWay()).toBeUndefined();
    room.set(one, "b:one", 35);
    expect(room.giveWay()).toBe(one);
    expect(room.giveWay()).toBeUndefined();
    expect(() => room.require("b:one", "2")).toThrow(
      expect.objectContaining({ code: "OUT_OF_MEMORY", message: expect.stringContaining("b:one") }),
    );
    expect([room.isRefused("b:one"), room.isRefused("b:two")]).toEqual([true, false]);
    // When it is rebuilt, its size may differ.
    room.require("b:one", "4");
    room.require("a:main", "1");
    room.delete(two);
    room.require("b:one", "2");
  });
});

describe("the search store, when there is too little memory for all indexes", () => {
  const DIMENSION = 256;
  const [small, large]: BranchRef[] = [
    { database: "small", branch: "main" },
    { database: "large", branch: "main" },
  ];
  let store: SearchStore | undefined;
  afterEach(() => store?.close());

  it("refuses the searches of the largest branch with the reason, answers all others, and is ready", { timeout: 60_000 }, async () => {
    const records = new MemoryRecords();
    for (const ref of [small!, large!]) {
      records.createBranch(ref);
      records.createTable(ref, "items", [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
    }
    const faults: unknown[] = [];
    store = await openSearchStore(records, {
      pollMs: 50,
      waitMs: 30_000,
      maxIndexBytes: 24 * 2 ** 20,
      onFault: (error) => faults.push(error),
    });
    const vector = (n: number) => Array.from({ length: DIMENSION }, (_, i) => Math.sin(n + i));
    const rows = (from: number, count: number) => Array.from({ length: count }, (_, i) => ({ id: `r${from + i}`, v: vector(from + i) }));
    const search = (ref: BranchRef) =>
      store!.vectorSearch(ref, "items", { column: "v", queryVector: vector(7), size: 1, consistency: "strong" });
    records.write(small!, "items", rows(0, 50));
    records.write(large!, "items", rows(0, 1_000));
    expect((await search(large!)).totalCount).toBe(1_000);
    for (let from = 1_000; from < 20_000; from += 2_000) records.write(large!, "items", rows(from, 2_000));
    const refused = {
      code: "UNAVAILABLE",
      retryAfterSeconds: 60,
      message: expect.stringContaining("branch large:main cannot be searched"),
    };
    await expect(search(large!)).rejects.toMatchObject(refused);
    await expect(search(large!)).rejects.toMatchObject(refused);
    expect((await search(small!)).results[0]!.id).toBe("r7");
    records.write(small!, "items", rows(50, 50));
    expect((await search(small!)).totalCount).toBe(100);
    expect(store.status()).toMatchObject({ ready: true, pending: [] });
    expect(store.status().memoryBytes).toBeLessThan(24 * 2 ** 20);
    expect(faults.length).toBeGreaterThan(0);
    // A branch that is recreated, and smaller.
    records.dropBranch(large!);
    records.createBranch(large!);
    records.createTable(large!, "items", [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
    records.write(large!, "items", rows(0, 10));
    await expect
      .poll(
        () =>
          search(large!).then(
            (answer) => answer.totalCount,
            () => 0,
          ),
        { timeout: 30_000 },
      )
      .toBe(10);
  });
});

it("the heap of the search thread holds all that indexes may take, even if it is only texts", async () => {
  const maxIndexBytes = 24 * 2 ** 30; // more than V8 gives to any thread by itself
  const worker = startSearchWorker({ maxIndexBytes });
  expect(worker.resourceLimits?.maxOldGenerationSizeMb).toBeGreaterThan(maxIndexBytes / 2 ** 20);
  await worker.terminate();
});
