/** PostgreSQL's text as JSON values, by type name. What JSON cannot say exactly stays a string. */
import { readJson } from "../exact-json.ts";
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
  ["timestamptz", rfc3339],
  ["bytea", (text) => Buffer.from(text.slice(2), "hex").toString("base64")],
]);

/** @param type  PostgreSQL's name: `int8`, `_text`, … */
export function readerOf(type: string): ValueReader {
  const reader = readers.get(type);
  if (reader !== undefined) return reader;
  if (!type.startsWith("_")) return asText;
  const element = readers.get(type.slice(1)) ?? asText;
  return (text) => readArray(text, element);
}

/** As it is, with every digit of its numbers. */
function json(text: string): SqlValue {
  return readJson(text) as SqlValue;
}

function exactInteger(text: string): JsonValue {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : text;
}

/** float4 and float8 print their shortest decimal, so nothing is lost; JSON has no NaN and no infinities. */
function finiteNumber(text: string): JsonValue {
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
}

function exactDecimal(text: string): JsonValue {
  const number = Number(text);
  const canonical = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return Number.isFinite(number) && String(number) === (canonical === "-0" ? "0" : canonical) ? number : text;
}

/** `2026-01-02 03:04:05.5+00` (the session is in UTC) as `2026-01-02T03:04:05.5Z`; infinities and years before Christ or beyond 9999 stay as they are. */
function rfc3339(text: string): JsonValue {
  return /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00$/.test(text) ? `${text.slice(0, 10)}T${text.slice(11, -3)}Z` : text;
}

/** PostgreSQL's array literal: `{1,NULL,"a\"b",{…}}`, with bounds before it (`[0:1]=`) when they are not the usual ones. */
function readArray(text: string, element: ValueReader): SqlValue {
  let at = text.startsWith("[") ? text.indexOf("=") + 1 : 0;
  const list = (): SqlValue[] => {
    const values: SqlValue[] = [];
    at++; // {
    while (text[at] !== "}") {
      if (text[at] === ",") at++;
      if (text[at] === "{") values.push(list());
      else if (text[at] === '"') values.push(element(quoted()));
      else {
        const start = at;
        while (text[at] !== "," && text[at] !== "}") at++;
        const plain = text.slice(start, at);
        values.push(plain === "NULL" ? null : element(plain));
      }
    }
    at++; // }
    return values;
  };
  const quoted = (): string => {
    let value = "";
    let start = ++at;
    for (; text[at] !== '"'; at++) {
      if (text[at] !== "\\") continue;
      value += text.slice(start, at);
      start = ++at;
    }
    value += text.slice(start, at);
    at++;
    return value;
  };
  return list();
}
