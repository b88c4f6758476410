/**
 * Converts PostgreSQL's text to JSON values, by type name. What JSON cannot represent exactly stays a string.
 */
import type { Slices } from "../../threads/event-loop.ts";
import { readArray, readArrayInSteps } from "../array-literal.ts";
import { readJson } from "../exact-json.ts";
import { toRfc3339 } from "../postgres-text.ts";
import type { JsonValue, SqlValue } from "../requests.ts";

type ValueReader = (text: string) => SqlValue;

const asText: ValueReader = (text) => text;

const readers: ReadonlyMap<string, ValueReader> = new Map<string, ValueReader>([
  ["bool", (text) => text === "t"],
  ["int2", Number],
  ["int4", Number],
  ["oid", Number],
  ["int8", exactInteger],
  ["float4", finiteNumber],
  ["float8", finiteNumber],
  ["numeric", exactDecimal],
  ["json", json],
  ["jsonb", json],
  ["timestamptz", timestamp],
  ["bytea", (text) => Buffer.from(text.slice(2), "hex").toString("base64")],
]);

/** @param type  PostgreSQL's name: `int8`, `_text`, … */
export function readerOf(type: string): ValueReader {
  if (!isArray(type)) return readers.get(type) ?? asText;
  const element = elementOf(type);
  return (text) => readArray(text, element) ?? text;
}

/**
 * Like `readerOf`, for a long text, in slices. Anything that is not an array takes little time per character.
 */
export async function readLong(type: string, text: string, slices: Slices): Promise<SqlValue> {
  if (!isArray(type)) return readerOf(type)(text);
  const reading = readArrayInSteps(text, elementOf(type));
  for (;;) {
    const { done, value } = reading.next();
    if (done === true) return value ?? text;
    if (slices.spend(value)) await slices.rest();
  }
}

const isArray = (type: string): boolean => type.startsWith("_") && !readers.has(type);
const elementOf = (type: string): ValueReader => readers.get(type.slice(1)) ?? asText;

/** The JSON text as it is, with every digit of its numbers. */
function json(text: string): SqlValue {
  return readJson(text) as SqlValue;
}

function exactInteger(text: string): JsonValue {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : text;
}

/** float4 and float8 print their shortest decimal, so nothing is lost. JSON has no NaN and no infinities. */
function finiteNumber(text: string): JsonValue {
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
}

function exactDecimal(text: string): JsonValue {
  const number = Number(text);
  const canonical = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return Number.isFinite(number) && String(number) === (canonical === "-0" ? "0" : canonical) ? number : text;
}

/**
 * Turns `2026-01-02 03:04:05.5+00` (the session is in UTC) into `2026-01-02T03:04:05.5Z`. Infinities, years
 * BC and years beyond 9999 stay as they are.
 */
function timestamp(text: string): JsonValue {
  return toRfc3339(text)?.replace("+00:00", "Z") ?? text;
}
