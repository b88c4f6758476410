/** One value of an answer: how SQL gives it as JSON, and where it goes in the record. */
import { type SystemNaming, systemColumnName } from "../../../filter/system-columns.ts";
import { readJson } from "../../exact-json.ts";
import type { JsonObject, JsonValue } from "../../requests.ts";
import type { ColumnType } from "../../schema.ts";

export interface Field {
  readonly sql: string;
  /** `value` is not null: nulls are left out. */
  put(record: JsonObject, value: JsonValue): void;
}

export interface ValueOptions {
  readonly jsonText: boolean;
  readonly naming: SystemNaming;
}

/** @param value The SQL expression of a column of `type`. @param name Where it goes; dots are steps into objects. */
export function valueField(type: ColumnType, value: string, name: string, { jsonText, naming }: ValueOptions): Field {
  switch (type) {
    case "datetime":
      return { sql: instant(value), put: (record, text) => setPath(record, name, formatTimestamp(text as string)) };
    case "int":
      return intField(value, (record, number) => setPath(record, name, number));
    case "link":
      return { sql: value, put: (record, id) => setPath(record, name, { [systemColumnName("id", naming)]: id }) };
    case "json":
      if (jsonText) return { sql: `${value}::text`, put: (record, text) => setPath(record, name, text) };
      return jsonField(value, (record, json) => setPath(record, name, json));
    default:
      return { sql: value, put: (record, plain) => setPath(record, name, plain) };
  }
}

/**
 * A jsonb value, read as text so that its numbers keep every digit: ExactJson is only ever written as JSON
 * (json-pieces.ts). A JSON null is left out, like every null.
 */
export function jsonField(value: string, put: Field["put"]): Field {
  return {
    sql: `(${value})::text`,
    put: (record, text) => {
      const json = readJson(text as string) as JsonValue;
      if (json !== null) put(record, json);
    },
  };
}

/** A whole number, read as text for the same reason: an int8, or a sum of them, may have more digits than JavaScript's numbers. */
export function intField(value: string, put: Field["put"]): Field {
  return { sql: `(${value})::text`, put: (record, digits) => put(record, readJson(digits as string) as JsonValue) };
}

/** Microseconds since 1970 as text: independent of the session's time zone and date style. */
export function instant(value: string): string {
  return `CASE WHEN isfinite(${value}) THEN (extract(epoch FROM ${value}) * 1000000)::int8::text ELSE ${value}::text END`;
}

/** `address.city` goes to `record.address.city`. */
export function setPath(record: JsonObject, name: string, value: JsonValue): void {
  const steps = name.split(".");
  const last = steps.pop()!;
  let object = record;
  for (const step of steps) {
    const inner = Object.hasOwn(object, step) ? object[step] : undefined;
    if (typeof inner === "object" && inner !== null && !Array.isArray(inner)) object = inner;
    else {
      const created: JsonObject = {};
      setOwn(object, step, created);
      object = created;
    }
  }
  setOwn(object, last, value);
}

/** An own property, whatever its name: assignment would treat `__proto__` as the prototype. */
export function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}

/**
 * A point in time: from microseconds since 1970, as text (`instant`), to RFC 3339 in UTC.
 * Always with milliseconds, as in `Date.toISOString`, and with microseconds if there are any. What is not a
 * number (`infinity`, by SQL) stays as it is.
 */
export function formatTimestamp(micros: string): string {
  if (!/^-?\d+$/.test(micros)) return micros;
  const all = BigInt(micros);
  const within = Number(((all % 1000n) + 1000n) % 1000n);
  const date = new Date(Number((all - BigInt(within)) / 1000n));
  // Beyond what a Date can be (the year 275760): PostgreSQL goes further.
  if (Number.isNaN(date.getTime())) return `${micros} µs since 1970`;
  const text = date.toISOString();
  return within === 0 ? text : `${text.slice(0, -1)}${String(within).padStart(3, "0")}Z`;
}
