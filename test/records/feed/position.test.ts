import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatPosition, isSeenBy, parsePosition, xmaxOf, xminOf } from "../../../src/records/feed/position.ts";
import { runs } from "../../support/random-runs.ts";

describe("a position of the feed", () => {
  test.each([
    { snapshot: "10:20:" },
    { snapshot: "10:20:10" },
    { snapshot: "11:18446744073709551615:11,12,13" },
    { snapshot: "18446744073709551615:18446744073709551615:" },
    { snapshot: "10:20:11,15", partial: { target: "12:25:", txid: "14", seq: "9223372036854775807" } },
  ])("is read as it was written: %j", (position) => {
    expect(parsePosition(formatPosition(position))).toEqual(position);
  });

  test("is text of one form", () => {
    expect(formatPosition({ snapshot: "10:20:11,15", partial: { target: "12:25:", txid: "14", seq: "3" } })).toBe(
      "10:20:11,15/12:25:/14,3",
    );
  });

  test.each([
    "",
    "10",
    "10:20",
    "10:20:11,",
    "10:20:,11",
    "10:20:11,,12",
    "x10:20:",
    "10:20:x",
    "a:20:",
    "10:b:",
    "10:20:\n",
    `${"1".repeat(21)}:20:`,
    `10:${"1".repeat(21)}:`,
    `10:20:${"1".repeat(21)}`,
    // What PostgreSQL refuses.
    "0:20:",
    "20:10:",
    "10:20:9",
    "10:20:20",
    "10:20:12,11",
    "10:18446744073709551616:",
    "10:20:/25:12:/14,3",
    "10:20:/12:25:/18446744073709551616,3",
    "10:20:/12:25:/14,9223372036854775808",
    "10:20:/",
    "10:20:/12:25:",
    "10:20:/12:25:/",
    "10:20:/12:25:/14",
    "10:20:/12:25:/14,",
    "10:20:/12:25:/,3",
    "10:20:/12:25:/14,3,4",
    "10:20:/12:25:/x14,3",
    "10:20:/12:25:/14,3x",
    `10:20:/12:25:/${"1".repeat(21)},3`,
    `10:20:/12:25:/14,${"1".repeat(20)}`,
    "10:20:/nonsense/14,3",
    "10:20:/x12:25:/14,3",
    "nonsense/12:25:/14,3",
    "10:20:/12:25:/14,3/",
    "10:20:/12:25:/14,3/5",
  ])("is not what nobody wrote: %j", (text) => {
    expect(parsePosition(text)).toBeUndefined();
  });

  test("tells which transactions are finished and which have not begun", () => {
    expect([xminOf("10:20:11,15"), xmaxOf("10:20:11,15")]).toEqual([10n, 20n]);
    expect(xminOf("18446744073709551615:18446744073709551616:")).toBe(18446744073709551615n);
  });

  describe("is seen by a later snapshot", () => {
    test.each([
      ["10:20:", "10:20:", true],
      ["10:20:", "10:21:", true],
      ["10:20:", "10:19:", false],
      ["10:20:12", "10:20:12", true],
      // 12 was delivered, and the later snapshot does not see it.
      ["10:20:", "10:20:12", false],
      ["10:20:12", "10:20:12,15", false],
      ["10:20:12", "10:25:12,22", true],
      ["10:20:12,15", "10:25:12,15,22", true],
      // In the middle of a read, as much may have been delivered as its target sees.
      ["10:20:/10:25:/14,3", "10:24:", false],
      ["10:20:/10:25:/14,3", "10:25:", true],
      ["10:20:", "10:25:/10:30:/14,3", true],
      ["nonsense", "10:20:", false],
      ["10:20:", "nonsense", false],
    ])("%s by %s: %s", (position, snapshot, isSeen) => {
      expect(isSeenBy(position, snapshot)).toBe(isSeen);
    });

    test("by the definition: each transaction that the one sees, the other sees too", () => {
      const snapshots = fc
        .tuple(fc.nat(12), fc.uniqueArray(fc.nat(11), { maxLength: 4 }))
        .map(([xmax, running]) => ({ xmax, running: running.filter((transaction) => transaction < xmax).sort((a, b) => a - b) }));
      // PostgreSQL's numbers begin with 1.
      const textOf = ({ xmax, running }: { xmax: number; running: number[] }) => {
        const numbers = running.map((transaction) => transaction + 1);
        return `${numbers[0] ?? xmax + 1}:${xmax + 1}:${numbers.join(",")}`;
      };
      fc.assert(
        fc.property(snapshots, snapshots, (one, other) => {
          const sees = (snapshot: typeof one, transaction: number) =>
            transaction < snapshot.xmax && !snapshot.running.includes(transaction);
          const isSeen = Array.from({ length: 13 }, (_, transaction) => transaction).every((t) => !sees(one, t) || sees(other, t));
          // Of a snapshot with a later end it is not asked whether all at its end were running.
          expect(isSeenBy(textOf(one), textOf(other))).toBe(isSeen && one.xmax <= other.xmax);
        }),
        { numRuns: runs(1_000) },
      );
    });
  });
});
