/** Snapshots that are as they were written. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { SearchEngine, StartEngine } from "../../src/search/search-engine.ts";
import { startSearchWorker, WorkerClient } from "../../src/search/worker-client.ts";
import { withId } from "./memory-records.ts";
import { item, REF, ROWS, snapshotStore } from "./snapshot-store.ts";

describe("snapshots", () => {
  const at = snapshotStore();

  test("a restart reads the file and later changes, not the records", async () => {
    const before = await at.answers();
    await at.restart();
    expect(at.records.reads.all).toBe(0);
    expect(await at.answers()).toEqual(before);
    expect(before).toEqual(await at.answersWithoutSnapshot());
    expect(at.faults).toEqual([]);
  });

  test("is written soon after the records were read, and with what has changed meanwhile", async () => {
    await at.restart(() => {
      for (const file of readdirSync(at.directory)) if (/\.(snapshot|journal)/.test(file)) rmSync(join(at.directory, file));
    });
    at.records.write(REF, "items", [item(7, { title: "after" })]);
    await at.answers();
    await at.restart();
    expect(at.records.reads.all).toBe(0);
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
    expect(at.faults).toEqual([]);
  });

  test("what was written, changed and deleted while the store was closed is seen; deleted records stay deleted", async () => {
    await at.restart(() => {
      at.records.write(REF, "items", [item(1, { v: [9, 9, 9] }), item(5, { title: "é" }), item(ROWS + 1)], ["i2", "i3", "i4"]);
      at.records.write(REF, "others", [{ id: "o3", name: "renamed" }], ["o1"]);
    });
    expect(at.records.reads.all).toBe(0);
    const now = await at.answers();
    expect(now).toEqual(await at.answersWithoutSnapshot());
    expect(now.flatMap(({ results }) => results.map(({ id }) => id))).not.toContain("i2");
    // Once more: the second file is made from the restored state.
    await at.restart(() => at.records.write(REF, "items", [], ["i5"]));
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
  });

  test("vectors that are not finite stay in it and are never found", async () => {
    at.records.write(REF, "items", [item(1, { v: [Number.NaN, 0, 0] })]);
    await at.answers();
    await at.restart();
    expect(at.records.reads.all).toBe(0);
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
  });

  test("says how far the reading of a branch is, of its file and of its records", async () => {
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const startEngine: StartEngine = (events) => {
      const engine = new WorkerClient(events, startSearchWorker);
      const call: SearchEngine["call"] = async (method, argument, transfer) => {
        const answer = await engine.call(method, argument, transfer);
        if (method === "restore" || method === "load") await held;
        return answer;
      };
      return { call, close: () => engine.close() };
    };
    const pending = (): string => at.store.status().pending.join();
    await expect.poll(() => at.store.status().ready).toBe(true);
    await at.store.close();
    await at.open({ startEngine });
    await expect.poll(pending).toMatch(/^db:main \(\d\d %\)$/);
    goOn();
    await expect.poll(() => at.store.status()).toMatchObject({ ready: true, pending: [] });
    await at.store.close();

    const { feed } = at.records;
    const { readAll } = feed;
    let batches = 0;
    Object.assign(feed, {
      readAll: (...[ref, tables, onBatch]: Parameters<typeof readAll>) =>
        readAll(ref, tables, (batch, isChange) => (++batches === 3 ? new Promise<void>(() => {}) : onBatch(batch, isChange))),
    });
    await at.open({ snapshotDir: join(at.directory, "none") });
    await expect.poll(pending).toBe(`db:main (table items, ${2 * at.records.readLimit} records so far)`);
  });

  test("answers nothing before later changes are applied", async () => {
    await at.store.close();
    at.records.write(
      REF,
      "items",
      [],
      Array.from({ length: ROWS }, (_, i) => `i${i}`),
    );
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    at.records.beforeRead = () => gate;
    await at.open({ waitMs: 300 });
    const search = () => at.store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3] });
    await expect(search()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(at.store.status().ready).toBe(false);
    release();
    await at.ready();
    // It waits for 300 ms only.
    await expect.poll(() => search().catch(() => undefined)).toEqual({ totalCount: 0, results: [] });
  });

  test("a schema that changed in the meantime is adopted", async () => {
    await at.restart(() => {
      at.records.alter(REF, (tables) => {
        const items = tables.find((table) => table.name === "items")!;
        items.columns = items.columns
          .filter(({ name }) => name !== "title")
          .map((column) => (column.name === "done" ? { ...column, name: "finished" } : column));
        items.columns.push(withId({ name: "title", type: "int" }));
        for (const record of items.records.values()) {
          record.finished = record.done;
          record.title = 5n;
        }
      });
    });
    const ids = async (filter: unknown) =>
      (await at.store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3], filter })).totalCount;
    expect(await ids({ title: 5 })).toBe(ROWS * 0.9);
    expect(await ids({ finished: true })).toBe(ROWS * 0.3);
    expect(await ids({ finished: false })).toBe(ROWS * 0.3);
  });

  test("is read again after the worker died", async () => {
    await at.restart();
    const before = await at.answers();
    await at.restart();
    expect(await at.answers()).toEqual(before);
  });

  test("are written on schedule while records change and searches run, and are complete", async () => {
    await at.store.close();
    await at.open({ snapshotEveryMs: 20 });
    await at.ready();
    for (let n = 1; n <= 60; n++) {
      at.records.write(REF, "items", [item(n % ROWS, { title: `t${n}` }), item(ROWS + n)], [`i${(n * 7) % ROWS}`]);
      await at.store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, n], consistency: "eventual" });
      await sleep(5);
    }
    const written = at.snapshotFile();
    // As after kill -9: the next start finds what is on disk now, whatever a close would write.
    const killed = readFileSync(written);
    await at.store.close();
    writeFileSync(written, killed);
    at.records.reads = { all: 0, since: 0 };
    at.records.positionsRead = [];
    await at.open();
    await at.ready();
    expect(at.records.reads.all).toBe(0);
    expect(at.faults).toEqual([]);
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
  });

  test("of branches that are gone are deleted", async () => {
    await at.store.close();
    writeFileSync(join(at.directory, `${"0".repeat(32)}.snapshot`), "x");
    writeFileSync(join(at.directory, "somebody-else's.txt"), "x");
    await at.open();
    await at.ready();
    await expect.poll(() => readdirSync(at.directory)).not.toContain(`${"0".repeat(32)}.snapshot`);
    expect(readdirSync(at.directory)).toContain("somebody-else's.txt");
    expect(readdirSync(at.directory).filter((file) => !file.endsWith(".journal"))).toHaveLength(2);
  });
});
