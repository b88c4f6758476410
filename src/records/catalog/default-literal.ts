/**
 * Defaults as PostgreSQL prints them, which is how schemas of databases with direct access to PostgreSQL have
 * them: `'5'::bigint`, `'user'::text`, `now()`, `'{a,b}'::text[]`. What has a meaning here is read as the
 * default that the API would write. An expression without one is reported, never taken for a text.
 */
import { COLUMN_TRAITS } from "../column-traits.ts";
import { parseTextArray, toRfc3339 } from "../postgres-text.ts";
import type { ColumnType } from "../schema.ts";

export type DefaultReading =
  /** As the API writes it. */
  | { readonly kind: "value"; readonly value: string }
  /** `NULL::text`. */
  | { readonly kind: "none" }
  /** SQL that computes a value. */
  | { readonly kind: "expression" };

const CAST = '(?:::(?:[a-z_][\\w ]*|"[^"]+")(?:\\.\\w+)?(?:\\([\\d, ]+\\))?(?:\\[\\])*)';
const QUOTED = new RegExp(`^'((?:[^']|'')*)'(${CAST}*)$`, "i");
const NULL = new RegExp(`^null${CAST}*$`, "i");
/** A number, perhaps in parentheses, as negative ones are, perhaps cast. */
const NUMBER = new RegExp(`^\\(?([+-]?[\\d.]+(?:e[+-]?\\d+)?)\\)?(${CAST}*)$`, "i");
const NOW =
  /^\(?(?:now\(\)|current_timestamp(?:\(\d\))?|statement_timestamp\(\)|transaction_timestamp\(\)|clock_timestamp\(\))\)?(?:::[a-z ]+)?$/i;
/**
 * A call without arguments or with a sequence, anything with a text literal that is cast, and what is cast from
 * parentheses.
 */
const EXPRESSION =
  /^(?:[a-z_]\w*\.)?[a-z_]\w*\((?:'[^']*'::regclass)?\)(?:::[a-z ]+)?$|'::(?:text|character varying|regclass)\b|\)::[a-z]/i;

/** @returns undefined for text that PostgreSQL would not print: a default as the API writes it. */
export function readPostgresDefault(text: string, type: ColumnType): DefaultReading | undefined {
  const trimmed = text.trim();
  if (NULL.test(trimmed)) return isText(type) && !trimmed.includes("::") ? undefined : { kind: "none" };
  const quoted = QUOTED.exec(trimmed);
  // In a text column, quotes without a cast may be part of the value.
  if (quoted !== null && (quoted[2] !== "" || !isText(type))) return literal((quoted[1] as string).replaceAll("''", "'"), type);
  if (isText(type)) return EXPRESSION.test(trimmed) ? { kind: "expression" } : undefined;
  if (type === "datetime" && NOW.test(trimmed)) return value("now");
  const number = NUMBER.exec(trimmed);
  if (number !== null && (type === "int" || type === "float")) return value(number[1] as string);
  return EXPRESSION.test(trimmed) ? { kind: "expression" } : undefined;
}

const isText = (type: ColumnType): boolean => COLUMN_TRAITS[type].typeName === "text";

const value = (text: string): DefaultReading => ({ kind: "value", value: text });

/** The inside of a quoted literal, which PostgreSQL casts to the column's type. */
function literal(inner: string, type: ColumnType): DefaultReading {
  switch (type) {
    case "bool":
      return value(/^(?:t|true|yes|on|1)$/i.test(inner) ? "true" : /^(?:f|false|no|off|0)$/i.test(inner) ? "false" : inner);
    case "datetime":
      return value(toRfc3339(inner) ?? inner);
    case "multiple": {
      const items = parseTextArray(inner);
      return value(items === undefined ? inner : JSON.stringify(items));
    }
    case "vector": {
      const elements = parseTextArray(inner.replace(/^\[(.*)\]$/s, "{$1}"))?.map(Number);
      return value(elements === undefined ? inner : JSON.stringify(elements));
    }
    default:
      return value(inner);
  }
}
