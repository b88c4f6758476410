import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatTimestamp, isTimestampForm, parseTimestamp } from "../../src/filter/datetime.ts";

const FIRST = BigInt(Date.parse("0001-01-01T00:00:00Z")) * 1000n;
const LAST = BigInt(Date.parse("+010000-01-01T00:00:00Z")) * 1000n - 1n;
const micros = (iso: string): bigint => BigInt(Date.parse(iso)) * 1000n;

describe("a point in time", () => {
  test.each([
    ["2026-02-28", micros("2026-02-28T00:00:00Z")],
    ["2024-02-29T12:34:56Z", micros("2024-02-29T12:34:56Z")],
    ["2024-02-29t12:34:56z", micros("2024-02-29T12:34:56Z")],
    ["2024-02-29 12:34:56Z", micros("2024-02-29T12:34:56Z")],
    ["2000-02-29T23:59:59Z", micros("2000-02-29T23:59:59Z")],
    ["2026-01-01T00:00:00+23:59", micros("2025-12-31T00:01:00Z")],
    ["2026-01-01T00:00:00-23:59", micros("2026-01-01T23:59:00Z")],
    ["2026-01-01T00:00:00-00:00", micros("2026-01-01T00:00:00Z")],
    ["2026-01-01T00:00:00.5Z", micros("2026-01-01T00:00:00Z") + 500_000n],
    ["2026-01-01T00:00:00.000001Z", micros("2026-01-01T00:00:00Z") + 1n],
    ["2026-01-01T00:00:00.0000014Z", micros("2026-01-01T00:00:00Z") + 1n],
    ["2026-01-01T00:00:00.0000015Z", micros("2026-01-01T00:00:00Z") + 2n],
    ["2026-01-01T00:00:00.9999999Z", micros("2026-01-01T00:00:01Z")],
    [`2026-01-01T00:00:00.${"1".repeat(30)}Z`, micros("2026-01-01T00:00:00Z") + 111_111n],
    // The leap second is the next second.
    ["2016-12-31T23:59:60Z", micros("2017-01-01T00:00:00Z")],
    ["0001-01-01T00:00:00Z", FIRST],
    ["0001-01-01T00:00:01+00:00", FIRST + 1_000_000n],
    ["9999-12-31T23:59:59.999999Z", LAST],
  ])("%s", (text, value) => {
    expect(parseTimestamp(text)).toBe(value);
    expect(parseTimestamp(text, { dateAlone: false })).toBe(text.length === 10 ? undefined : value);
  });

  test.each([
    "",
    "2026",
    "2026-02",
    "2026-02-30T12:00:00Z",
    "2023-02-29",
    "1900-02-29",
    "2026-00-10",
    "2026-13-10",
    "2026-01-00",
    "2026-01-32",
    "2026-01-01T24:00:00Z",
    "2026-01-01T12:60:00Z",
    "2026-01-01T12:00:61Z",
    "2026-01-01T12:00:00+24:00",
    "2026-01-01T12:00:00+00:60",
    "2026-01-01T12:00:00",
    "2026-01-01T12:00Z",
    "2026-01-01T12:00:00.Z",
    `2026-01-01T12:00:00.${"1".repeat(31)}Z`,
    "2026-01-01_12:00:00Z",
    "2026-01-01T12:00:00+0000",
    "2026-01-01T12:00:00Z ",
    " 2026-01-01T12:00:00Z",
    "12026-01-01T12:00:00Z",
    "0000-12-31T23:59:59Z",
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59.9999996Z",
    "9999-12-31T23:59:59-00:01",
  ])("%j is none", (text) => {
    expect(parseTimestamp(text)).toBeUndefined();
  });

  test("has a form, even if there is no such time", () => {
    for (const text of ["2026-02-30T12:00:00Z", "2026-01-01 99:99:99.5+99:99"]) expect(isTimestampForm(text), text).toBe(true);
    for (const text of ["2026-01-01", "2026-01-01T12:00:00", "yesterday", ""]) expect(isTimestampForm(text), text).toBe(false);
  });

  test("is written as it is read, and as Date has it", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: FIRST, max: LAST }), (value) => {
        const text = formatTimestamp(value);
        expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        expect(parseTimestamp(text)).toBe(value);
        expect(BigInt(Date.parse(`${text.slice(0, 23)}Z`)) * 1000n + BigInt(text.slice(23, 26))).toBe(value);
      }),
    );
  });

  test("means the same at every offset", () => {
    const times = fc.date({ min: new Date("1000-01-01"), max: new Date("9000-01-01"), noInvalidDate: true });
    fc.assert(
      fc.property(times, fc.integer({ min: -1439, max: 1439 }), (time, minutes) => {
        const local = new Date(time.getTime() + minutes * 60_000).toISOString().slice(0, -1);
        const clock = [Math.abs(minutes) / 60, Math.abs(minutes) % 60].map((n) => String(Math.floor(n)).padStart(2, "0")).join(":");
        expect(parseTimestamp(`${local}${minutes < 0 ? "-" : "+"}${clock}`)).toBe(BigInt(time.getTime()) * 1000n);
      }),
    );
  });
});
