/**
 * Checks the values in a filter against the type of the column that they are compared with, and converts them
 * to the form that both compilers use.
 */

import { inWords, quoted } from "../errors/value-in-words.ts";
import { checkText } from "./check-text.ts";
import { parseTimestamp } from "./datetime.ts";
import { fault, type Place } from "./fault.ts";
import { parseJsonDocument } from "./json-document.ts";
import type { ColumnPath, FilterLeaf, Operand, RangeOperator } from "./tree.ts";

const INT8_MIN = -(2n ** 63n);
const INT8_MAX = 2n ** 63n - 1n;
const INTEGER_TEXT = /^[+-]?[0-9]{1,400}$/;

/** A value to be equal to. undefined: no value of the column can equal it (1.5 or 1e300 for an int). */
export function parseOperand(column: ColumnPath, value: unknown, place: Place): Operand | undefined {
  if (value === null) throw fault(place, 'null never equals anything; ask for records without a value by {"$notExists": column}');
  switch (column.kind) {
    case "text":
    case "multiple":
      return checkText(value, place);
    case "bool":
      if (typeof value !== "boolean") throw fault(place, `expected true or false, got ${inWords(value)}`);
      return value;
    case "float":
      return finite(value, place);
    case "int": {
      const exact = integer(value, place);
      return typeof exact === "bigint" && exact >= INT8_MIN && exact <= INT8_MAX ? exact : undefined;
    }
    case "datetime":
      return timestamp(value, place);
    case "json":
      if (typeof value === "string") return parseJsonDocument(checkText(value, place), place) ?? value;
      if (typeof value === "boolean") return value;
      if (typeof value === "number") return finite(value, place);
      throw fault(place, `expected a string, a number, true or false, got ${inWords(value)}`);
    case "vector":
      throw fault(
        place,
        `column ${quoted(column.text)} is a vector; a filter can only ask whether it has a value, with $exists and $notExists`,
      );
  }
}

/**
 * `column < value` and the like. A bound that an int column cannot have is replaced by one that it can, or by a
 * constant.
 */
export function parseRange(column: ColumnPath, operator: RangeOperator, value: unknown, place: Place): FilterLeaf {
  switch (column.kind) {
    case "text":
      return { kind: "range", column, operator, value: checkText(value, place) };
    case "float":
      return { kind: "range", column, operator, value: finite(value, place) };
    case "datetime":
      return { kind: "range", column, operator, value: timestamp(value, place) };
    case "json":
      if (typeof value === "string") return { kind: "range", column, operator, value: checkText(value, place) };
      if (typeof value === "number") return { kind: "range", column, operator, value: finite(value, place) };
      throw fault(place, `expected a number or a string, got ${inWords(value)}`);
    case "int":
      return intRange(column, operator, integer(value, place));
    case "bool":
    case "multiple":
    case "vector":
      throw fault(place, `column ${quoted(column.text)} is of type ${column.kind}, which has no order`);
  }
}

function intRange(column: ColumnPath, operator: RangeOperator, bound: bigint | number): FilterLeaf {
  const upper = operator === "lt" || operator === "le";
  if (typeof bound === "number") {
    // Between two integers: x < 1.5 and x <= 1.5 are both x <= 1.
    const value = BigInt(upper ? Math.floor(bound) : Math.ceil(bound));
    return intRange(column, upper ? "le" : "ge", value);
  }
  if (bound > INT8_MAX) return { kind: "constant", column, value: upper };
  if (bound < INT8_MIN) return { kind: "constant", column, value: !upper };
  return { kind: "range", column, operator, value: bound };
}

function finite(value: unknown, place: Place): number {
  if (typeof value !== "number") throw fault(place, `expected a number, got ${inWords(value)}`);
  if (!Number.isFinite(value)) throw fault(place, `expected a finite number, got ${value}`);
  return value;
}

/** A bigint, or a number that is not an integer. Text is accepted too: a JSON number above 2^53 is not exact. */
function integer(value: unknown, place: Place): bigint | number {
  if (typeof value === "string" && INTEGER_TEXT.test(value)) return BigInt(value);
  if (typeof value === "bigint") return value;
  const number = finite(value, place);
  return Number.isInteger(number) ? BigInt(number) : number;
}

function timestamp(value: unknown, place: Place): bigint {
  const text = value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString() : value;
  const micros = typeof text === "string" ? parseTimestamp(text) : undefined;
  if (micros === undefined) {
    throw fault(place, `expected a date and time in RFC 3339 form, like "2026-02-28T12:00:00Z", got ${inWords(value)}`);
  }
  return micros;
}
