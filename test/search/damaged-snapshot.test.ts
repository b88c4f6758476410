/** Snapshots that are damaged, cut off, or of something else. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { item, REF, snapshotStore } from "./snapshot-store.ts";

describe("a snapshot that cannot be trusted is not used", () => {
  const at = snapshotStore();

  const check = async (isFault: RegExp | null): Promise<void> => {
    expect(at.records.reads.all).toBeGreaterThan(0);
    if (isFault === null) expect(at.faults).toEqual([]);
    else expect(at.faults.map((fault) => fault.message)).toEqual([expect.stringMatching(isFault)]);
    expect(await at.answers()).toEqual(await at.answersWithoutSnapshot());
    // The next close writes a good file.
    await at.restart();
    expect(at.records.reads.all).toBe(0);
    expect(at.faults).toEqual([]);
  };
  const damage = (change: (bytes: Buffer) => Buffer) => () => {
    const path = at.snapshotFile();
    writeFileSync(path, change(readFileSync(path)));
    at.records.write(REF, "items", [], ["i7"]);
  };

  test("missing", async () => {
    await at.restart(() => rmSync(at.snapshotFile()));
    await check(null);
  });

  test("empty", async () => {
    await at.restart(damage(() => Buffer.alloc(0)));
    await check(/cannot be used: it ends at byte 0/);
  });

  test.each([0.1, 0.5, 0.9, 0.9999])("cut off after %f of it", async (part) => {
    await at.restart(damage((bytes) => bytes.subarray(0, Math.floor(bytes.length * part))));
    await check(/cannot be used: it ends at byte \d+, before its last message/);
  });

  test("cut off between two messages", async () => {
    await at.restart(
      damage((bytes) => {
        let at = 24;
        for (let message = 0; message < 3; message++) at += 8 + bytes.readUInt32LE(at);
        return bytes.subarray(0, at);
      }),
    );
    await check(/it ends at byte \d+, before its last message/);
  });

  test("with a message taken out", async () => {
    await at.restart(
      damage((bytes) => {
        const second = 24 + 8 + bytes.readUInt32LE(24);
        const third = second + 8 + bytes.readUInt32LE(second);
        return Buffer.concat([bytes.subarray(0, second), bytes.subarray(third)]);
      }),
    );
    await check(/the checksum of the message at byte \d+ does not match/);
  });

  test("with bytes after its end", async () => {
    await at.restart(damage((bytes) => Buffer.concat([bytes, Buffer.from("x")])));
    await check(/1 bytes follow its end/);
  });

  test("of another format", async () => {
    await at.restart(
      damage((bytes) => {
        bytes.writeUInt32LE(99, 8);
        return bytes;
      }),
    );
    await check(/it has format 99, this version reads formats 1, 2 and 4/);
  });

  test("no snapshot at all", async () => {
    await at.restart(damage((bytes) => bytes.fill("x", 0, 4)));
    await check(/it does not begin as one/);
  });

  test("of a branch that was dropped and created again", async () => {
    await at.restart(() => {
      at.records.dropBranch(REF);
      at.records.createBranch(REF);
      at.records.createTable(REF, "others", [{ name: "name", type: "string" }]);
      at.records.createTable(
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
      at.records.write(
        REF,
        "items",
        Array.from({ length: 1_500 }, (_, i) => item(i)),
      );
    });
    await check(null);
  });

  test("with a position that the feed has forgotten", async () => {
    await at.restart(() => {
      at.records.write(REF, "items", [], ["i7"]);
      at.records.trimmedBelow = Number.MAX_SAFE_INTEGER;
    });
    at.records.trimmedBelow = 0;
    await check(null);
  });

  test("any single flipped bit is noticed", async () => {
    await at.store.close();
    const path = at.snapshotFile();
    const good = readFileSync(path);
    // Fixed places in the whole file, including its magic, format, size and first frame; each start is a store of
    // its own.
    const places = [
      0,
      7,
      8,
      11,
      12,
      16,
      19,
      20,
      23,
      24,
      27,
      31,
      32,
      ...Array.from({ length: 8 }, (_, i) => Math.floor((good.length - 1) * ((i + 1) / 8))),
    ];
    for (const place of places) {
      const bad = Buffer.from(good);
      bad[place]! ^= 1 << (place % 8);
      writeFileSync(path, bad);
      at.records.reads = { all: 0, since: 0 };
      await at.open({ snapshotDir: at.directory });
      await at.ready();
      expect(at.records.reads.all, `bit ${place % 8} of byte ${place}`).toBe(1);
      expect(at.faults).toHaveLength(1);
      expect(at.faults[0]).toMatchObject({ code: "CORRUPT" });
      writeFileSync(path, good);
      await at.store.close();
    }
    await at.open();
    await at.ready();
  });
});
