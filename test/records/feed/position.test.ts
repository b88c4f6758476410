import { describe, expect, test } from "vitest";
import { formatPosition, parsePosition, xmaxOf, xminOf } from "../../../src/records/feed/position.ts";

describe("a position of the feed", () => {
  test.each([
    { snapshot: "10:20:" },
    { snapshot: "10:20:10" },
    { snapshot: "18446744073709551615:18446744073709551615:11,12,13" },
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
});
