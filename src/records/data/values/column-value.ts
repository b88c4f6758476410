/**
 * A value of the API on its way into a column: checked against the type of the column, and converted to what
 * PostgreSQL takes as a bound parameter. Nothing is coerced (except what JSON has no form for: times and
 * links), so what is stored is what was sent.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted } from "../../../errors/value-in-words.ts";
import { formatTimestamp, isTimestampForm, parseTimestamp } from "../../../filter/datetime.ts";
import { EMAIL } from "../../catalog/column-types.ts";
import { escapedItem } from "../../postgres-text.ts";
import type { ColumnSchema } from "../../schema.ts";
import { jsonOf } from "./json-column-text.ts";
import { LongJson } from "./long-json.ts";

/** A checked value of a column. Vectors are not encoded yet, so that a statement can send those of many records as one parameter. */
export type ColumnValue = string | number | boolean | Float32Array | null;

/** What a statement binds. A Buffer is PostgreSQL's binary form (vectors). */
export type Parameter = Exclude<ColumnValue, Float32Array> | Buffer;

/** Strings in one value of type multiple. */
const MAX_MULTIPLE_ITEMS = 100_000;

/**
 * Checks `value` (not undefined) for `column`; null is SQL's null. `name` is what messages call the column,
 * with the table where that helps.
 */
export function toColumnValue(column: ColumnSchema, value: unknown, place: string): ColumnValue {
  if (value === null) {
    if (column.notNull) throw wrong(place, column, "is null; it is notNull, so give it a value");
    return null;
  }
  switch (column.type) {
    case "string":
    case "text":
      return text(column, value, place);
    case "email": {
      const email = text(column, value, place);
      if (!EMAIL.test(email)) throw wrong(place, column, `is ${inWords(value)}; expected an address like "name@example.com"`);
      return email;
    }
    case "int":
      if (typeof value !== "number" || !Number.isInteger(value)) throw expected(place, column, value, "a whole number");
      if (!Number.isSafeInteger(value)) {
        throw wrong(
          place,
          column,
          `is ${value}; JSON numbers are exact only from -9007199254740991 to 9007199254740991, so send it as SQL or as text`,
        );
      }
      return value === 0 ? 0 : value;
    case "float":
      if (typeof value !== "number" || !Number.isFinite(value)) throw expected(place, column, value, "a finite number");
      // pg writes -0 as "0".
      return Object.is(value, -0) ? "-0" : value;
    case "bool":
      if (typeof value !== "boolean") throw expected(place, column, value, "true or false");
      return value;
    case "datetime":
      return datetime(column, value, place);
    case "multiple":
      return multiple(column, value, place);
    case "json":
      return json(column, value, place);
    case "link":
      return link(column, value, place);
    case "vector":
      return vector(column, value, place);
  }
}

/**
 * The elements, checked: as many as the column's dimension, each finite as float32. A list of numbers, or base64 of float32 in
 * little-endian order, as embedding services answer it (`encoding_format: "base64"`).
 */
function vector(column: ColumnSchema, value: unknown, place: string): Float32Array {
  const { dimension } = column.vector!;
  if (typeof value === "string") return vectorOfBytes(column, value, dimension, place);
  if (!Array.isArray(value)) throw expected(place, column, value, "an array of numbers, or base64 of float32");
  if (value.length !== dimension) {
    throw wrong(place, column, `has ${value.length} element${value.length === 1 ? "" : "s"}; the column has dimension ${dimension}`);
  }
  const elements = new Float32Array(dimension);
  for (let i = 0; i < dimension; i++) {
    const element: unknown = value[i];
    if (typeof element !== "number") throw notFinite(column, element, `${place}[${i}]`);
    elements[i] = element;
    // x − x is 0 for finite ones alone.
    if (elements[i]! - elements[i]! === 0) continue;
    if (!Number.isFinite(element)) throw notFinite(column, element, `${place}[${i}]`);
    throw new LodestoneError(
      "INVALID",
      `${place}[${i}] is ${element}; elements of vector column ${quoted(column.name)} are float32, whose largest value is about 3.4e38.`,
    );
  }
  return elements;
}

function vectorOfBytes(column: ColumnSchema, base64: string, dimension: number, place: string): Float32Array {
  const elements = new Float32Array(dimension);
  const bytes = Buffer.from(elements.buffer);
  if (
    base64.length !== 4 * Math.ceil(bytes.length / 3) ||
    bytes.write(base64, "base64") !== bytes.length ||
    bytes.toString("base64") !== base64
  ) {
    const form = `base64 of ${bytes.length.toLocaleString("en-US")} bytes: float32, little-endian, ${dimension} of them`;
    throw expected(place, column, base64, `an array of ${dimension} numbers, or ${form}`);
  }
  for (let i = 0; i < dimension; i++) if (elements[i]! - elements[i]! !== 0) throw notFinite(column, elements[i], `${place}[${i}]`);
  return elements;
}

function notFinite({ name }: ColumnSchema, element: unknown, place: string): LodestoneError {
  return new LodestoneError(
    "INVALID",
    `${place} is ${inWords(element)}; every element of vector column ${quoted(name)} is a finite number.`,
  );
}

function text(column: ColumnSchema, value: unknown, place: string): string {
  if (typeof value !== "string") throw expected(place, column, value, "a string");
  checkText(value, place, column);
  return value;
}

/** PostgreSQL's text can hold every Unicode character but NUL; a lone surrogate is not a character. */
function checkText(value: string, place: string, column: ColumnSchema): void {
  if (value.includes("\u0000")) throw wrong(place, column, "holds the character U+0000, which text cannot; remove it");
  if (!value.isWellFormed()) throw wrong(place, column, "holds a lone surrogate (half of a UTF-16 pair); send well-formed Unicode");
}

function datetime(column: ColumnSchema, value: unknown, place: string): string {
  const remedy = 'an RFC 3339 time with its offset such as "2026-02-28T12:00:00Z"';
  if (typeof value !== "string") throw expected(place, column, value, remedy);
  const micros = parseTimestamp(value, { dateAlone: false });
  if (micros === undefined) {
    if (isTimestampForm(value)) throw wrong(place, column, `is ${inWords(value)}, which is not a date and time of the years 0001 to 9999`);
    throw expected(place, column, value, remedy);
  }
  return formatTimestamp(micros);
}

function multiple(column: ColumnSchema, value: unknown, place: string): string {
  if (!Array.isArray(value)) throw expected(place, column, value, "an array of strings");
  if (value.length > MAX_MULTIPLE_ITEMS) {
    throw wrong(
      place,
      column,
      `has ${value.length.toLocaleString("en-US")} strings; at most ${MAX_MULTIPLE_ITEMS.toLocaleString("en-US")} are allowed`,
    );
  }
  const items: string[] = [];
  for (let i = 0; i < value.length; i++) {
    const item: unknown = value[i];
    if (typeof item !== "string") throw expected(`${place}[${i}]`, column, item, "a string");
    checkText(item, `${place}[${i}]`, column);
    items.push(item);
  }
  return arrayLiteral(items);
}

/** PostgreSQL's text form of a text[]. */
function arrayLiteral(items: readonly string[]): string {
  return `{${items.map((item) => `"${escapedItem(item)}"`).join(",")}}`;
}

function json(column: ColumnSchema, value: unknown, place: string): string {
  const [sent, { text, fault }] = value instanceof LongJson ? [value.sent, value.json] : [value, jsonOf(value)];
  if (fault === undefined) return text;
  const remedy =
    typeof sent === "string" ? '; a string sent to a json column is JSON text, so the text hello is sent as "\\"hello\\""' : "";
  throw wrong(place, column, `is ${inWords(sent)}: ${fault}${remedy}`);
}

function link(column: ColumnSchema, value: unknown, place: string): string {
  if (typeof value === "string") {
    checkText(value, place, column);
    return value;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const { id, xata_id = id } = value as { id?: unknown; xata_id?: unknown };
    if (typeof xata_id === "string") return link(column, xata_id, place);
  }
  throw expected(place, column, value, `the id of a record of table ${quoted(column.link?.table ?? "")}, or an object with that id`);
}

function expected(place: string, column: ColumnSchema, value: unknown, what: string): LodestoneError {
  return wrong(place, column, `is ${inWords(value)}; expected ${what}`);
}

function wrong(place: string, column: ColumnSchema, problem: string): LodestoneError {
  return new LodestoneError("INVALID", `${place} (column ${quoted(column.name)} of type ${column.type}) ${problem}.`);
}
