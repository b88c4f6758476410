import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BranchRef } from "../../src/records/schema.ts";
import { openSearchStore, type SearchStoreOptions } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { type MemoryRecord, MemoryRecords, withId } from "./memory-records.ts";

const REF: BranchRef = { database: "db", branch: "main" };
const ROWS = 3_000;

describe("snapshots", () => {
  let records: MemoryRecords;
  let directory: string;
  let store: SearchStore;
  let faults: Error[];

  const open = async (options: SearchStoreOptions = {}): Promise<void> => {
    faults = [];
    store = await openSearchStore(records, {
      pollMs: 50,
      snapshotDir: directory,
      snapshotEveryMs: 3_600_000,
      onFault: (error) => faults.push(error as Error),
      ...options,
    });
  };
  const ready = () => expect.poll(() => store.status().ready, { timeout: 60_000 }).toBe(true);
  const restart = async (between: () => void = () => {}): Promise<void> => {
    await store.close();
    between();
    records.reads = { all: 0, since: 0 };
    records.positionsRead = [];
    await open();
    await ready();
  };
  const snapshotFile = (): string => join(directory, readdirSync(directory).find((file) => file.endsWith(".snapshot"))!);

  const item = (i: number, more: object = {}): MemoryRecord => ({
    id: `i${i}`,
    v: i % 10 === 0 ? null : [i % 7, i % 11, 1],
    title: ["a", "é", null][i % 3],
    count: i % 4 === 0 ? null : BigInt(i) * 2n ** 40n,
    price: i % 5 === 0 ? Number.NaN : i / 3,
    done: [true, false, null][i % 3],
    at: BigInt(i) * 1_000_001n,
    tags: [null, [], ["a", null], ["b", "b"]][i % 4],
    config: [null, '{"k": 1}', '{"k": "x"}'][i % 3],
    other: `o${i % 5}`,
    ...more,
  });

  const FILTERS: unknown[] = [
    undefined,
    { title: "é" },
    { count: { $gt: String(2n ** 50n) } },
    { price: { $ge: 100 } },
    { done: false },
    { at: { $lt: "1970-01-01T00:05:00Z" } },
    { tags: { $includes: "b" } },
    { "config->k": 1 },
    { "other.name": "n3" },
    { $notExists: "v" },
    { $exists: "v" },
  ];
  /** Every kind of question, with strong consistency, so that the answers are those of the records. */
  const answers = () =>
    Promise.all(
      FILTERS.map((filter) =>
        store.vectorSearch(REF, "items", {
          column: "v",
          queryVector: [1, 2, 3],
          size: 1000,
          filter,
          similarityFunction: "l2",
          consistency: "strong",
        }),
      ),
    );
  const answersWithoutSnapshot = async () => {
    const plain = await openSearchStore(records, { pollMs: 50 });
    const kept = store;
    store = plain;
    try {
      return await answers();
    } finally {
      store = kept;
      await plain.close();
    }
  };

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "lodestone-search-"));
    records = new MemoryRecords();
    records.createBranch(REF);
    records.createTable(REF, "others", [{ name: "name", type: "string" }]);
    records.createTable(REF, "items", [
      { name: "v", type: "vector", vector: { dimension: 3 } },
      { name: "title", type: "string" },
      { name: "count", type: "int" },
      { name: "price", type: "float" },
      { name: "done", type: "bool" },
      { name: "at", type: "datetime" },
      { name: "tags", type: "multiple" },
      { name: "config", type: "json" },
      { name: "other", type: "link", link: { table: "others" } },
    ]);
    records.write(
      REF,
      "others",
      [0, 1, 2, 3, 4].map((i) => ({ id: `o${i}`, name: `n${i}` })),
    );
    records.write(
      REF,
      "items",
      Array.from({ length: ROWS }, (_, i) => item(i)),
    );
    await open();
    await ready();
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });

  test("a restart reads the file and later changes, not the records", async () => {
    const before = await answers();
    await restart();
    expect(records.reads.all).toBe(0);
    expect(await answers()).toEqual(before);
    expect(before).toEqual(await answersWithoutSnapshot());
    expect(faults).toEqual([]);
  });

  test("is written while the records are read: a stop immediately after has nothing left to write", async () => {
    const bytesOf = (end: string): number =>
      readdirSync(directory)
        .filter((file) => file.endsWith(end))
        .reduce((sum, file) => sum + readFileSync(join(directory, file)).length, 0);
    await expect.poll(() => bytesOf(".draft") + bytesOf(".snapshot")).toBeGreaterThan(100_000);
    const written = bytesOf(".draft");
    // Changed before the draft becomes the snapshot: its journal has the change.
    records.write(REF, "items", [item(7, { title: "after" })]);
    await answers();
    await restart();
    expect(records.reads.all).toBe(0);
    expect(records.positionsRead[0]).toBe(String(records.changeCount(REF)));
    expect(await answers()).toEqual(await answersWithoutSnapshot());
    // Except its end.
    expect(bytesOf(".snapshot") - written).toBeLessThan(100);
    expect(bytesOf(".draft")).toBe(0);
    expect(faults).toEqual([]);
  });

  test("what was written, changed and deleted while the store was closed is seen; deleted records stay deleted", async () => {
    await restart(() => {
      records.write(REF, "items", [item(1, { v: [9, 9, 9] }), item(5, { title: "é" }), item(ROWS + 1)], ["i2", "i3", "i4"]);
      records.write(REF, "others", [{ id: "o3", name: "renamed" }], ["o1"]);
    });
    expect(records.reads.all).toBe(0);
    const now = await answers();
    expect(now).toEqual(await answersWithoutSnapshot());
    expect(now.flatMap(({ results }) => results.map(({ id }) => id))).not.toContain("i2");
    // Once more: the second file is made from the restored state.
    await restart(() => records.write(REF, "items", [], ["i5"]));
    expect(await answers()).toEqual(await answersWithoutSnapshot());
  });

  test("vectors that are not finite stay in it and are never found", async () => {
    records.write(REF, "items", [item(1, { v: [Number.NaN, 0, 0] })]);
    await answers();
    await restart();
    expect(records.reads.all).toBe(0);
    expect(await answers()).toEqual(await answersWithoutSnapshot());
  });

  test("answers nothing before later changes are applied", async () => {
    await store.close();
    records.write(
      REF,
      "items",
      [],
      Array.from({ length: ROWS }, (_, i) => `i${i}`),
    );
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    records.beforeRead = () => gate;
    await open({ waitMs: 300 });
    const search = () => store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3] });
    await expect(search()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(store.status().ready).toBe(false);
    release();
    await ready();
    expect(await search()).toEqual({ totalCount: 0, results: [] });
  });

  test("a schema that changed in the meantime is adopted", async () => {
    await restart(() => {
      records.alter(REF, (tables) => {
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
      (await store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3], filter })).totalCount;
    expect(await ids({ title: 5 })).toBe(ROWS * 0.9);
    expect(await ids({ finished: true })).toBe(ROWS * 0.3);
    expect(await ids({ finished: false })).toBe(ROWS * 0.3);
  });

  test("is read again after the worker died", async () => {
    await restart();
    const before = await answers();
    await restart();
    expect(await answers()).toEqual(before);
  });

  describe("a file that cannot be trusted is not used", () => {
    const check = async (isFault: RegExp | null): Promise<void> => {
      expect(records.reads.all).toBeGreaterThan(0);
      if (isFault === null) expect(faults).toEqual([]);
      else expect(faults.map((fault) => fault.message)).toEqual([expect.stringMatching(isFault)]);
      expect(await answers()).toEqual(await answersWithoutSnapshot());
      // The next close writes a good file.
      await restart();
      expect(records.reads.all).toBe(0);
      expect(faults).toEqual([]);
    };
    const damage = (change: (bytes: Buffer) => Buffer) => () => {
      const path = snapshotFile();
      writeFileSync(path, change(readFileSync(path)));
      records.write(REF, "items", [], ["i7"]);
    };

    test("missing", async () => {
      await restart(() => rmSync(snapshotFile()));
      await check(null);
    });

    test("empty", async () => {
      await restart(damage(() => Buffer.alloc(0)));
      await check(/cannot be used: it ends at byte 0/);
    });

    test.each([0.1, 0.5, 0.9, 0.9999])("cut off after %f of it", async (part) => {
      await restart(damage((bytes) => bytes.subarray(0, Math.floor(bytes.length * part))));
      await check(/cannot be used: it ends at byte \d+, before its last message/);
    });

    test("cut off between two messages", async () => {
      await restart(
        damage((bytes) => {
          let at = 12;
          for (let message = 0; message < 3; message++) at += 8 + bytes.readUInt32LE(at);
          return bytes.subarray(0, at);
        }),
      );
      await check(/it ends at byte \d+, before its last message/);
    });

    test("with a message taken out", async () => {
      await restart(
        damage((bytes) => {
          const second = 12 + 8 + bytes.readUInt32LE(12);
          const third = second + 8 + bytes.readUInt32LE(second);
          return Buffer.concat([bytes.subarray(0, second), bytes.subarray(third)]);
        }),
      );
      await check(/the checksum of the message at byte \d+ does not match/);
    });

    test("with bytes after its end", async () => {
      await restart(damage((bytes) => Buffer.concat([bytes, Buffer.from("x")])));
      await check(/1 bytes follow its end/);
    });

    test("of another format", async () => {
      await restart(
        damage((bytes) => {
          bytes.writeUInt32LE(99, 8);
          return bytes;
        }),
      );
      await check(/it has format 99, this version reads format 1/);
    });

    test("no snapshot at all", async () => {
      await restart(damage((bytes) => bytes.fill("x", 0, 4)));
      await check(/it does not begin as one/);
    });

    test("of a branch that was dropped and created again", async () => {
      await restart(() => {
        records.dropBranch(REF);
        records.createBranch(REF);
        records.createTable(REF, "others", [{ name: "name", type: "string" }]);
        records.createTable(
          REF,
          "items",
          ["v", "title", "count", "price", "done", "at", "tags", "config", "other"].map((name, i) =>
            name === "v"
              ? { name, type: "vector", vector: { dimension: 3 } }
              : name === "other"
                ? { name, type: "link", link: { table: "others" } }
                : { name, type: (["string", "int", "float", "bool", "datetime", "multiple", "json"] as const)[i - 1]! },
          ),
        );
        records.write(
          REF,
          "items",
          Array.from({ length: 1_500 }, (_, i) => item(i)),
        );
      });
      await check(null);
    });

    test("with a position that the feed has forgotten", async () => {
      await restart(() => {
        records.write(REF, "items", [], ["i7"]);
        records.trimmedBelow = Number.MAX_SAFE_INTEGER;
      });
      records.trimmedBelow = 0;
      await check(null);
    });
  });

  test("any single flipped bit is noticed", async () => {
    await store.close();
    const path = snapshotFile();
    const good = readFileSync(path);
    // Fixed places in the whole file, including its magic, format and first frame; each start is a store of
    // its own.
    const places = [0, 7, 8, 11, 12, 15, 16, 19, 20, ...Array.from({ length: 8 }, (_, i) => Math.floor((good.length - 1) * ((i + 1) / 8)))];
    for (const place of places) {
      const bad = Buffer.from(good);
      bad[place]! ^= 1 << (place % 8);
      writeFileSync(path, bad);
      records.reads = { all: 0, since: 0 };
      await open({ snapshotDir: directory });
      await ready();
      expect(records.reads.all, `bit ${place % 8} of byte ${place}`).toBe(1);
      expect(faults).toHaveLength(1);
      expect(faults[0]).toMatchObject({ code: "CORRUPT" });
      writeFileSync(path, good);
      await store.close();
    }
    await open();
    await ready();
  });

  test("are written on schedule while records change and searches run, and are complete", async () => {
    await store.close();
    await open({ snapshotEveryMs: 20 });
    await ready();
    let n = 0;
    const until = Date.now() + 1_500;
    while (Date.now() < until) {
      n++;
      records.write(REF, "items", [item(n % ROWS, { title: `t${n}` }), item(ROWS + n)], [`i${(n * 7) % ROWS}`]);
      await store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, n], consistency: "eventual" });
    }
    const written = snapshotFile();
    // As after kill -9: the next start finds what is on disk now, whatever a close would write.
    const killed = readFileSync(written);
    await store.close();
    writeFileSync(written, killed);
    records.reads = { all: 0, since: 0 };
    records.positionsRead = [];
    await open();
    await ready();
    expect(records.reads.all).toBe(0);
    expect(faults).toEqual([]);
    expect(await answers()).toEqual(await answersWithoutSnapshot());
  });

  describe("the journal behind a snapshot", () => {
    const journalFile = (): string => join(directory, readdirSync(directory).find((file) => file.endsWith(".journal"))!);
    const changed = (round: number): void =>
      records.write(REF, "items", [item(5_000 + round), item(round, { title: `round ${round}` })], [`i${100 + round}`]);

    /** A snapshot, then changes that only the journal has, each flushed. */
    const withJournal = async (): Promise<void> => {
      // Two stores must not write into one directory.
      await store.close();
      await open({ snapshotEveryMs: 200 });
      await ready();
      await expect.poll(() => readdirSync(directory).filter((file) => file.endsWith(".snapshot")).length, { timeout: 10_000 }).toBe(1);
      for (let round = 0; round < 20; round++) {
        changed(round);
        await store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3], consistency: "strong" });
      }
    };

    test("has the changes, so that a stop writes little and a start reads next to nothing", async () => {
      await withJournal();
      const before = readFileSync(snapshotFile());
      await restart();
      expect(readFileSync(snapshotFile()).equals(before)).toBe(true);
      expect(readFileSync(journalFile()).length).toBeLessThan(before.length / 10);
      expect(records.reads.all).toBe(0);
      expect(records.positionsRead[0]).toBe(String(records.changeCount(REF)));
      expect(await answers()).toEqual(await answersWithoutSnapshot());
      expect(faults).toEqual([]);
      // And it is continued.
      changed(30);
      await answers();
      await restart();
      expect(records.positionsRead[0]).toBe(String(records.changeCount(REF)));
      expect(await answers()).toEqual(await answersWithoutSnapshot());
    });

    test("that is cut off or damaged is used as far as it goes", async () => {
      await withJournal();
      await store.close();
      const [snapshot, journal] = [snapshotFile(), journalFile()];
      const [whole, rest] = [readFileSync(snapshot), readFileSync(journal)];
      await open();
      const expected = await answersWithoutSnapshot();
      await store.close();
      for (let n = 0; n < 10; n++) {
        const at = Math.floor(((n + 0.5) / 10) * rest.length);
        const damaged = n % 2 === 0 ? rest.subarray(0, at) : Buffer.from(rest);
        if (n % 2 === 1) damaged[at]! ^= 1 << (n % 8);
        writeFileSync(snapshot, whole);
        writeFileSync(journal, damaged);
        await open();
        await ready();
        expect(await answers()).toEqual(expected);
        expect(faults).toEqual([]);
        await store.close();
        for (const file of readdirSync(directory)) rmSync(join(directory, file));
      }
      await open();
    }, 120_000);

    test("ends with a change of the schema, and a new snapshot follows", async () => {
      await withJournal();
      records.alter(REF, (tables) => tables.find(({ name }) => name === "items")!.columns.push(withId({ name: "more", type: "int" })));
      changed(40);
      await answers();
      await restart();
      expect(records.reads.all).toBe(0);
      expect(await answers()).toEqual(await answersWithoutSnapshot());
    });
  });

  test("of branches that are gone are deleted", async () => {
    await store.close();
    writeFileSync(join(directory, `${"0".repeat(32)}.snapshot`), "x");
    writeFileSync(join(directory, "somebody-else's.txt"), "x");
    await open();
    await ready();
    await expect.poll(() => readdirSync(directory)).not.toContain(`${"0".repeat(32)}.snapshot`);
    expect(readdirSync(directory)).toContain("somebody-else's.txt");
    expect(readdirSync(directory).filter((file) => !file.endsWith(".journal"))).toHaveLength(2);
  });
});
