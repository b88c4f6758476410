import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareDecimals, decimalKey } from "../../src/filter/decimal.ts";
import { runs } from "../support/random-runs.ts";

interface Parts {
  readonly minus: boolean;
  readonly whole: string;
  readonly fraction: string;
  readonly power: number | undefined;
}

const digits = (most: number) => fc.string({ unit: fc.constantFrom(..."0001259"), maxLength: most });
const numbers: fc.Arbitrary<Parts> = fc.record({
  minus: fc.boolean(),
  whole: digits(20).map((text) => text.replace(/^0+(?=.)/, "") || "0"),
  fraction: digits(20),
  power: fc.option(fc.integer({ min: -25, max: 25 }), { nil: undefined }),
});
/** A number and another way to write it, so that equal ones come up. */
const moved = fc.tuple(numbers, fc.integer({ min: 0, max: 6 })).map(([number, by]): [Parts, Parts] => {
  const zeros = "0".repeat(by);
  return [
    number,
    { ...number, whole: number.whole + number.fraction + zeros, fraction: "0", power: (number.power ?? 0) - number.fraction.length - by },
  ];
});

const textOf = ({ minus, whole, fraction, power }: Parts): string =>
  `${minus ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}${power === undefined ? "" : `e${power}`}`;

/** The value times 10^100, exactly. */
const scaledValueOf = ({ minus, whole, fraction, power = 0 }: Parts): bigint =>
  BigInt(whole + fraction) * 10n ** BigInt(100 + power - fraction.length) * (minus ? -1n : 1n);

const signOf = (value: bigint | number): number => (value > 0 ? 1 : value < 0 ? -1 : 0);

describe("numbers in JSON", () => {
  test("are compared by value, however large or exact", () => {
    fc.assert(
      fc.property(fc.oneof(fc.tuple(numbers, numbers), moved), ([a, b]) => {
        const [one, other] = [textOf(a), textOf(b)];
        const expected = signOf(scaledValueOf(a) - scaledValueOf(b));
        expect(signOf(compareDecimals(one, other)), `${one} and ${other}`).toBe(expected);
        expect(decimalKey(one) === decimalKey(other), `keys of ${one} and ${other}`).toBe(expected === 0);
      }),
      { numRuns: runs(1_000) },
    );
  });

  test.each([
    ["9007199254740992", "9007199254740993", -1],
    ["0.1", "0.10000000000000000000001", -1],
    ["-0.1", "-0.10000000000000000000001", 1],
    ["1E2", "100", 0],
    ["1e+2", "99.9999", 1],
    ["123456789012345", "123456789012344", 1],
    ["1234567890.12345", "1234567890.12346", -1],
    ["-0", "0", 0],
    ["0e5", "-0.000", 0],
    ["1e400", "2e399", 1],
    ["-1", "1e-400", -1],
  ])("%s and %s: %i", (a, b, sign) => {
    expect(signOf(compareDecimals(a, b))).toBe(sign);
    expect(signOf(compareDecimals(b, a))).toBe(-sign || 0);
  });

  test("have keys that are JSON numbers of the same value", () => {
    expect(["0", "-0.0", "12.50", "-0.00120", "3e-7"].map(decimalKey)).toEqual(["0", "0", "0.125e2", "-0.12e-2", "0.3e-6"]);
  });
});
