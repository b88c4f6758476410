/**
 * Compares JSON numbers exactly, by their text, as PostgreSQL's numeric does: as float64, 9007199254740993
 * would equal its neighbour.
 */

/**
 * A plain JSON number of up to this many characters has at most 15 significant digits, which float64 keeps
 * apart.
 */
const EXACT_LENGTH = 15;

/** @returns negative, 0 or positive for a < b, a = b, a > b; both are JSON numbers. */
export function compareDecimals(a: string, b: string): number {
  if (a.length <= EXACT_LENGTH && b.length <= EXACT_LENGTH && isPlain(a) && isPlain(b)) return Number(a) - Number(b);
  const x = parseDecimal(a);
  const y = parseDecimal(b);
  if (x.sign !== y.sign) return x.sign - y.sign;
  if (x.exponent !== y.exponent) return x.exponent < y.exponent ? -x.sign : x.sign;
  if (x.digits === y.digits) return 0;
  // Digit strings without trailing zeros: a prefix of another is the smaller one, as in 0.12 and 0.123.
  return x.digits < y.digits ? -x.sign : x.sign;
}

/** sign × 0.digits × 10^exponent; digits neither begin nor end with 0. */
interface Decimal {
  readonly sign: -1 | 0 | 1;
  readonly digits: string;
  readonly exponent: number;
}

const JSON_NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

function parseDecimal(text: string): Decimal {
  const [, minus, whole = "", fraction = "", power = "0"] = JSON_NUMBER.exec(text) ?? [];
  const all = whole + fraction;
  let start = 0;
  while (all[start] === "0") start++;
  let end = all.length;
  while (end > start && all[end - 1] === "0") end--;
  if (start === end) return { sign: 0, digits: "", exponent: 0 };
  return { sign: minus === "-" ? -1 : 1, digits: all.slice(start, end), exponent: whole.length - start + Number(power) };
}

/** One text for each value, itself a JSON number: equal numbers have equal keys. */
export function decimalKey(text: string): string {
  const { sign, digits, exponent } = parseDecimal(text);
  return sign === 0 ? "0" : `${sign < 0 ? "-" : ""}0.${digits}e${exponent}`;
}

function isPlain(text: string): boolean {
  return !text.includes("e") && !text.includes("E");
}
