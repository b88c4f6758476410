/** What the search store says of one branch among several. */
import { afterEach, expect, test } from "vitest";
import type { BranchRef } from "../../src/records/schema.ts";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { MemoryRecords } from "./memory-records.ts";

const BUSY: BranchRef = { database: "db", branch: "busy" };
const QUIET: BranchRef = { database: "db", branch: "quiet" };

let store: SearchStore | undefined;
afterEach(() => store?.close());

test("the lag is that of the branch whose changes wait, and the vectors are its own", async () => {
  const records = new MemoryRecords();
  for (const [ref, count] of [
    [BUSY, 3],
    [QUIET, 5],
  ] as const) {
    records.createBranch(ref);
    records.createTable(ref, "t", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
    records.write(
      ref,
      "t",
      Array.from({ length: count }, (_, i) => ({ id: `r${i}`, v: [i, 1] })),
    );
  }
  const opened = await openSearchStore(records);
  store = opened;
  await expect.poll(() => opened.status().ready).toBe(true);
  expect(opened.branchStatus(BUSY)).toMatchObject({ ready: true, lagMs: 0, vectors: 3 });
  expect(opened.branchStatus(QUIET)).toMatchObject({ ready: true, lagMs: 0, vectors: 5 });
  expect(opened.branchStatus(QUIET).memoryBytes).toBeGreaterThan(0);
  let goOn = (): void => {};
  const isHeld = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  records.beforeRead = () => isHeld;
  records.write(BUSY, "t", [{ id: "new", v: [1, 1] }]);
  await expect.poll(() => opened.branchStatus(BUSY).lagMs).toBeGreaterThan(50);
  expect(opened.branchStatus(BUSY)).toMatchObject({ ready: true, vectors: 3 });
  expect(opened.branchStatus(QUIET).lagMs).toBe(0);
  goOn();
  await expect.poll(() => opened.branchStatus(BUSY)).toMatchObject({ lagMs: 0, vectors: 4 });
});

test("a branch that is created makes nobody wait; one that has to be read again, or was there at the start, does", async () => {
  const records = new MemoryRecords();
  const create = (ref: BranchRef): void => {
    records.createBranch(ref);
    records.createTable(ref, "t", [{ name: "v", type: "vector", vector: { dimension: 2 } }]);
    records.write(ref, "t", [{ id: "r", v: [1, 1] }]);
  };
  let goOn = (): void => {};
  const hold = (): void => {
    const isHeld = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    records.beforeRead = (kind) => (kind === "all" ? isHeld : undefined);
  };
  create(QUIET);
  hold();
  const opened = await openSearchStore(records, { pollMs: 50 });
  store = opened;
  await expect.poll(() => records.reads.all).toBe(1);
  expect(opened.status()).toMatchObject({ ready: false, pending: ["db:quiet"] });
  goOn();
  await expect.poll(() => opened.status().ready).toBe(true);
  // Created, and then another one in its place.
  for (let life = 0; life < 2; life++) {
    hold();
    const reads = records.reads.all;
    if (life === 1) records.dropBranch(BUSY);
    create(BUSY);
    await expect.poll(() => records.reads.all).toBeGreaterThan(reads);
    expect(opened.status()).toMatchObject({ ready: true, pending: [] });
    expect(opened.branchStatus(BUSY).ready).toBe(false);
    goOn();
    await expect.poll(() => opened.branchStatus(BUSY).ready).toBe(true);
  }
  hold();
  const reads = records.reads.all;
  records.trimmedBelow = 1_000;
  records.write(QUIET, "t", [{ id: "r", v: [1, 2] }]);
  await expect.poll(() => records.reads.all).toBeGreaterThan(reads);
  expect(opened.status()).toMatchObject({ ready: false, pending: expect.arrayContaining(["db:quiet"]) });
  records.trimmedBelow = 0;
  goOn();
  await expect.poll(() => opened.status().ready).toBe(true);
});
