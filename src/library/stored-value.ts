/** The types that a library's column may have: what is taken, how it is kept, and what is given back. */
import type { ColumnValues } from "../columns/column-values.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { inWords } from "../errors/value-in-words.ts";
import { formatTimestamp, parseTimestamp } from "../filter/datetime.ts";

export type ColumnType = "string" | "int" | "float" | "bool" | "datetime" | "multiple" | "json";

export function isColumnType(type: unknown): type is ColumnType {
  return typeof type === "string" && Object.hasOwn(EXPECTED, type);
}

/** A value as columns keep it: int and datetime (microseconds since 1970 UTC) as bigint, json as its text. */
export type Stored = string | bigint | number | boolean | readonly string[] | null;

const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;

/** @throws {LodestoneError} INVALID, naming the column, what was expected and what was got. */
export function toStored(name: string, type: ColumnType, value: unknown): Stored {
  if (value === null || value === undefined) return null;
  const stored = STORE[type](value);
  if (stored === undefined) throw new LodestoneError("INVALID", `${name}: expected ${EXPECTED[type]}, got ${inWords(value)}.`);
  return stored;
}

const EXPECTED: Readonly<Record<ColumnType, string>> = {
  string: "a well-formed string",
  int: "a whole number of 64 bits (a safe integer, or a bigint)",
  float: "a finite number",
  bool: "true or false",
  datetime: "a Date, or a time of RFC 3339",
  multiple: "an array of well-formed strings",
  json: "a value that is JSON",
};

const STORE: Readonly<Record<ColumnType, (value: unknown) => Stored | undefined>> = {
  string: (value) => (isText(value) ? value : undefined),
  int: (value) => {
    const whole = typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
    return typeof whole === "bigint" && whole >= MIN_INT && whole <= MAX_INT ? whole : undefined;
  },
  float: (value) => (typeof value === "number" && Number.isFinite(value) ? value : undefined),
  bool: (value) => (typeof value === "boolean" ? value : undefined),
  datetime: (value) => {
    if (typeof value === "string") return parseTimestamp(value);
    const isDate = Object.prototype.toString.call(value) === "[object Date]" && Number.isFinite((value as Date).getTime());
    return isDate ? parseTimestamp((value as Date).toISOString()) : undefined;
  },
  multiple: (value) => (Array.isArray(value) && value.every(isText) ? [...(value as string[])] : undefined),
  json: (value) => {
    try {
      const text = JSON.stringify(value) as string | undefined;
      return text !== undefined && isText(text) ? text : undefined;
    } catch {
      return undefined;
    }
  },
};

/** What users get: an int as a number if that is exact, a datetime as RFC 3339 in UTC. */
export function fromStored(type: ColumnType, value: Stored): unknown {
  if (value === null) return null;
  if (type === "int") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (type === "datetime") return formatTimestamp(value as bigint);
  return type === "json" ? (JSON.parse(value as string) as unknown) : value;
}

export function toColumnValues(kind: ColumnValues["kind"], value: Stored): ColumnValues {
  return { kind, values: [value] } as unknown as ColumnValues;
}

/** For snapshots: what JSON can hold. */
export function storedText(value: Stored): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/** @throws for what storedText cannot have given. */
export function unstoredText(name: string, type: ColumnType, value: unknown): Stored {
  if (value === null) return null;
  if (value === undefined) throw new TypeError(`${name} is missing`);
  if (type === "json") {
    JSON.parse(value as string);
    return value as string;
  }
  if (type === "int" || type === "datetime") return toStored(name, "int", BigInt(value as string));
  return toStored(name, type, value);
}

/** A value as the service gives it: int, datetime and json as text. What a column cannot hold (NaN) is no value. */
export function toStoredText(type: ColumnType, value: unknown): Stored {
  if (value === null || value === undefined) return null;
  if (type === "int" || type === "datetime") return BigInt(value as string);
  if (type === "float") return typeof value === "number" ? value : null;
  return type === "multiple" ? (value as (string | null)[]).filter((item) => item !== null) : (value as Stored);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && !/\p{Surrogate}|\0/u.test(value);
}
