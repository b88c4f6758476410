/** The changes that came after a snapshot, in a file beside it. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { withId } from "./memory-records.ts";
import { item, REF, snapshotStore } from "./snapshot-store.ts";

describe("the journal behind a snapshot", () => {
  const at = snapshotStore();

  const journalFile = (): string => join(at.directory, readdirSync(at.directory).find((file) => file.endsWith(".journal"))!);
  const changed = (round: number): void =>
    at.records.write(REF, "items", [item(5_000 + round), item(round, { title: `round ${round}` })], [`i${100 + round}`]);

  /** A snapshot, then changes that only the journal has, each flushed. */
  const withJournal = async (): Promise<void> => {
    // Two stores must not write into one directory.
    await at.store.close();
    await at.open({ snapshotEveryMs: 200 });
    await at.ready();
    await expect.poll(() => readdirSync(at.directory).filter((file) => file.endsWith(".snapshot")).length).toBe(1);
    for (let round = 0; round < 20; round++) {
      changed(round);
      await at.store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3], consistency: "strong" });
    }
  };

  test("has the changes, so that a stop writes little and a start reads next to nothing", async () => {
    await withJournal();
    const before = readFileSync(at.snapshotFile());
    await at.restart();
    expect(readFileSync(at.snapshotFile()).equals(before)).toBe(true);
    expect(readFileSync(journalFile()).length).toBeLessThan(before.length / 10);
    expect(at.records.reads.all).toBe(0);
    expect(at.records.positionsRead[0]).toBe(String(at.records.changeCount(REF)));
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
    expect(at.faults).toEqual([]);
    // And it is continued.
    changed(30);
    await at.answers();
    await at.restart();
    expect(at.records.positionsRead[0]).toBe(String(at.records.changeCount(REF)));
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
  });

  test("is replaced by a snapshot before its time when it is twice as long as it should be", async () => {
    await at.store.close();
    // An hour between two snapshots; what is due is looked at every five seconds.
    await at.open({ snapshotEveryMs: 3_600_000, journalBytes: 1_000 });
    await at.ready();
    await expect.poll(() => readdirSync(at.directory).some((file) => file.endsWith(".journal"))).toBe(true);
    // The first one waits for nothing.
    for (const times of [1, 2]) {
      const before = journalFile();
      for (let round = 0; round < 20; round++) changed(20 * times + round);
      await at.answers();
      await expect.poll(journalFile).not.toBe(before);
    }
    await at.restart();
    expect(at.records.reads.all).toBe(0);
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
  });

  test("is replaced by a snapshot when nothing changes any more and it is an eighth as long as it may be; also after a start", async () => {
    await at.store.close();
    await at.open({ snapshotEveryMs: 3_600_000, journalBytes: 1_000_000 });
    await at.ready();
    await expect.poll(() => readdirSync(at.directory).some((file) => file.endsWith(".journal"))).toBe(true);
    const before = journalFile();
    const note = "what makes a journal long ".repeat(2_000);
    for (let round = 0; round < 5; round++) at.records.write(REF, "items", [item(7_000 + round, { title: note })], []);
    await at.answers();
    await at.store.close();
    expect(readFileSync(before).length).toBeGreaterThan(125_000);
    await at.open({ snapshotEveryMs: 200, journalBytes: 1_000_000 });
    await expect.poll(journalFile).not.toBe(before);
    await at.restart();
    expect(at.records.reads.all).toBe(0);
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
  });

  test("is continued, and a draft and an earlier journal that a kill has left beside it are removed", async () => {
    await withJournal();
    let own = "";
    await at.restart(() => {
      own = journalFile();
      for (const name of ["0123abcd.draft", "0123abcd.journal"]) writeFileSync(own.replace(/[0-9a-f]{8}\.journal$/, name), "left behind");
    });
    expect(at.records.reads.all).toBe(0);
    expect(readdirSync(at.directory).filter((file) => /\.(draft|journal)$/.test(file))).toEqual([basename(own)]);
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
  });

  test("that is cut off or damaged is used as far as it goes", async () => {
    await withJournal();
    await at.store.close();
    const [snapshot, journal] = [at.snapshotFile(), journalFile()];
    const [whole, rest] = [readFileSync(snapshot), readFileSync(journal)];
    await at.open();
    const expected = await at.answersWithoutSnapshot();
    await at.store.close();
    for (let n = 0; n < 10; n++) {
      const place = Math.floor(((n + 0.5) / 10) * rest.length);
      const damaged = n % 2 === 0 ? rest.subarray(0, place) : Buffer.from(rest);
      if (n % 2 === 1) damaged[place]! ^= 1 << (n % 8);
      writeFileSync(snapshot, whole);
      writeFileSync(journal, damaged);
      await at.open();
      await at.ready();
      expect(await at.answers()).toEqual(expected);
      expect(at.faults).toEqual([]);
      await at.store.close();
      for (const file of readdirSync(at.directory)) rmSync(join(at.directory, file));
    }
    await at.open();
  });

  test.each([
    ["renamed", 0],
    ["added", 1],
  ] as const)(
    "stays when a column is %s, and with it the snapshot: a kill right after it costs no full read",
    async (change, reads) => {
      // The first snapshot is due in seconds, the second in an hour.
      await expect.poll(() => at.records.acknowledged).toBeGreaterThan(0);
      for (let round = 0; round < 3; round++) changed(round);
      await expect.poll(() => at.records.acknowledged).toBe(at.records.changeCount(REF));
      const before = at.records.changeCount(REF);
      at.records.alter(REF, (tables) => {
        const items = tables.find(({ name }) => name === "items")!;
        if (change === "added") items.columns.push(withId({ name: "more", type: "int" }));
        else {
          items.columns = items.columns.map((column) => (column.name === "done" ? { ...column, name: "finished" } : column));
          for (const record of items.records.values()) record.finished = record.done;
        }
      });
      changed(10);
      const answers = () => at.store.vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3], size: 1000, consistency: "strong" });
      await answers();
      const expected = await answers();
      const killed = readdirSync(at.directory).map((file) => [file, readFileSync(join(at.directory, file))] as const);
      await at.restart(() => {
        for (const file of readdirSync(at.directory)) rmSync(join(at.directory, file));
        for (const [file, bytes] of killed) writeFileSync(join(at.directory, file), bytes);
        at.records.trimmedBelow = before;
      });
      expect(at.records.positionsRead[0]).toBe(String(before));
      expect(at.records.reads.all).toBe(reads);
      expect(await answers()).toEqual(expected);
      expect(at.faults).toEqual([]);
    },
    120_000,
  );

  test("ends with a change of the schema, and a new snapshot follows", async () => {
    await withJournal();
    at.records.alter(REF, (tables) => tables.find(({ name }) => name === "items")!.columns.push(withId({ name: "more", type: "int" })));
    changed(40);
    await at.answers();
    await at.restart();
    expect(at.records.reads.all).toBe(0);
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
  });
});
