/** What `lodestone check` says about a search snapshot: nothing about one that is right, and each value that is not. */
import { describe, expect, test } from "vitest";
import { checkSnapshot } from "../../src/search/check-snapshot.ts";
import type { MemoryRecord } from "./memory-records.ts";
import { item, REF, ROWS, snapshotStore } from "./snapshot-store.ts";

/** In the order in which they alternate, V8 holds these as whole numbers or as doubles. */
const FLOATS = [0, 1, 2, 0.5, -0, 3, Number.NaN, -7, 1e300, Number.POSITIVE_INFINITY, null, 2 ** 31, 5e-324, Number.NEGATIVE_INFINITY];
const TEXTS = ["", "ascii", "é", "日本", "\u{1f600}", "latin1 ÿ", null];

describe("the check of a snapshot", () => {
  const at = snapshotStore();
  const check = async () => {
    await at.store.close();
    return checkSnapshot(at.records, REF, at.directory);
  };
  const rewrite = (): MemoryRecord[] => {
    const records = Array.from({ length: ROWS }, (_, i) =>
      item(i, {
        price: FLOATS[i % FLOATS.length],
        title: TEXTS[i % TEXTS.length],
        tags: [TEXTS[(i + 1) % TEXTS.length], TEXTS[(i + 2) % TEXTS.length]],
        v: i % 3 === 0 ? null : [-0, i % 2, 0.1],
      }),
    );
    at.records.write(REF, "items", records);
    return records;
  };

  test("finds nothing in one that is right, whatever the types and however often it is asked", async () => {
    rewrite();
    await at.answers();
    for (let run = 0; run < 3; run++) expect(await check()).toEqual({ snapshot: "sound", differences: [] });
  });

  const CHANGES: readonly (readonly [what: string, change: object])[] = [
    ["a float by its last bit", { price: 0.1 + 0.2 }],
    ["a float by the sign of zero", { price: 0 }],
    ["a float that is no number", { price: Number.NaN }],
    ["a text by a character", { title: "ascij" }],
    ["a text that is missing", { title: null }],
    ["an int", { count: 2n ** 62n + 1n }],
    ["a bool", { done: false }],
    ["a time", { at: 7n }],
    ["a list's borders", { tags: ["ab", ""] }],
    ["a list's null", { tags: ["a", null] }],
    ["a list's text null", { tags: ["n"] }],
    ["json", { config: '{"k": 2}' }],
    ["a link", { other: "o9" }],
    ["a vector's last element", { v: [-0, 1, 0.2] }],
    ["a vector's sign of zero", { v: [0, 1, 0.1] }],
    ["a vector that is missing", { v: null }],
  ];

  test(`names each record in which it differs: by ${CHANGES.map(([what]) => what).join(", ")}`, async () => {
    const before = { price: -0, title: "ascii", count: 2n ** 62n, done: true, at: 6n, tags: ["a", "b"], config: '{"k": 1}', other: "o1" };
    const changed = CHANGES.map(([what, change]) => {
      const record = item(17, { ...before, v: [-0, 1, 0.1], id: what.replaceAll(" ", "-") });
      return { record, change };
    });
    at.records.write(
      REF,
      "items",
      changed.map(({ record }) => record),
    );
    await at.answers();
    // Behind the back of the feed.
    for (const { record, change } of changed) Object.assign(record, change);
    const { snapshot, differences } = await check();
    expect(snapshot).toBe("sound");
    expect([...differences].sort()).toEqual(
      changed.map(({ record }) => `record "${record.id}" of table "items" has other values in the snapshot`).sort(),
    );
  });
});
