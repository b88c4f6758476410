/** What each column type is in PostgreSQL: its type, its constraints, and its default. */
import { MAX_DIMENSION, MIN_COLUMN_DIMENSION } from "../../dimension.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { inWords, quoted } from "../../errors/value-in-words.ts";
import { formatTimestamp, parseTimestamp } from "../../filter/datetime.ts";
import { isUnderscored, SYSTEM_COLUMN_TYPES, type SystemColumn, systemColumnName, systemColumnNamed } from "../../filter/system-columns.ts";
import { jsonDepth } from "../../text/json-scan.ts";
import { LANGUAGES, LANGUAGES_OR_NONE, type Language, NO_LANGUAGE } from "../../text/languages.ts";
import { isWholeNumber } from "../../text/whole-number.ts";
import { COLUMN_TRAITS, COLUMN_TYPES, TEXT_TYPES } from "../column-traits.ts";
import { constraintName, physicalNameOf, qualified, quoteIdentifier, quoteLiteral, requireColumnName } from "../identifiers.ts";
import { parseTextArray, toRfc3339 } from "../postgres-text.ts";
import type { ColumnInfo, ColumnSchema, ColumnType } from "../schema.ts";
import { jsonLimitStatement, MAX_JSON_DEPTH } from "./json-limits.ts";

/**
 * One @, no white space, something on both sides. The same in the dialects of PostgreSQL and JavaScript, and
 * linear in both.
 */
export const EMAIL_PATTERN = "^[^@[:space:]]+@[^@[:space:]]+$";
export const EMAIL = /^[^@\s]+@[^@\s]+$/;

const COLUMN_KEYS = new Set(["name", "type", "link", "vector", "notNull", "unique", "defaultValue", "comment", "language", "id"]);

const MAX_COMMENT_LENGTH = 2_000;

/** Types of the retired service that columns cannot have here. */
export const TYPES_NOT_OFFERED: Readonly<Record<string, string>> = {
  file: "File columns are not part of Lodestone. Keep files in an object store, and their addresses in a string column.",
  "file[]": "File columns are not part of Lodestone. Keep files in an object store, and their addresses in a multiple column.",
};

/** Checks a column as a client gives it, and returns it with only the members that count for its type. */
export function requireColumn(table: string, given: unknown): ColumnSchema {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new LodestoneError(
      "INVALID",
      `Table "${table}": a column is an object like {"name": "title", "type": "string"}; got ${inWords(given)}.`,
    );
  }
  const column = given as ColumnSchema & Record<string, unknown>;
  requireColumnName(table, column.name);
  const name = column.name;
  const fail = (message: string): never => {
    throw new LodestoneError("INVALID", `Column "${name}" of table "${table}": ${message}`);
  };
  const system = isUnderscored(name) ? systemColumnNamed(name) : undefined;
  if (system !== undefined) return systemColumnSchema(system);
  const type = column.type;
  // First: such columns have members that others do not have.
  if (Object.hasOwn(TYPES_NOT_OFFERED, type)) fail(TYPES_NOT_OFFERED[type]!);
  for (const key of Object.keys(column)) if (!COLUMN_KEYS.has(key)) fail(`unknown property "${key.slice(0, 80)}".`);
  if (!COLUMN_TYPES.includes(type)) fail(`type is ${inWords(type)}; expected one of ${COLUMN_TYPES.join(", ")}.`);

  for (const flag of ["notNull", "unique"] as const) {
    const value: unknown = column[flag];
    if (value !== undefined && value !== null && typeof value !== "boolean") fail(`${flag} is ${inWords(value)}; expected true or false.`);
  }
  if (column.unique && !COLUMN_TRAITS[type].canBeUnique)
    fail(
      `unique is not possible for type ${type}; it is for ${COLUMN_TYPES.filter((other) => COLUMN_TRAITS[other].canBeUnique).join(", ")}.`,
    );
  return {
    name,
    type,
    ...(type === "link" ? { link: { table: requireLinkTarget(column.link, fail) } } : {}),
    ...(type === "vector" ? { vector: { dimension: requireDimension(column.vector, fail) } } : {}),
    ...(column.notNull ? { notNull: true } : {}),
    ...(column.unique ? { unique: true } : {}),
    ...requireDefault(column, fail),
    ...requireComment(column.comment, fail),
    ...requireLanguage(column, fail),
  };
}

/** A column of the service as schemas show it where it is underscored. */
export function systemColumnSchema(column: SystemColumn): ColumnSchema {
  return { name: systemColumnName(column, "underscored"), type: SYSTEM_COLUMN_TYPES[column], notNull: true };
}

function requireComment(comment: unknown, fail: Fail): { comment?: string } {
  if (comment === undefined || comment === null || comment === "") return {};
  if (typeof comment !== "string") return fail(`comment is ${inWords(comment)}; expected a text.`);
  if (comment.length > MAX_COMMENT_LENGTH)
    return fail(`comment has ${comment.length} characters; at most ${MAX_COMMENT_LENGTH} are allowed.`);
  return { comment };
}

const LANGUAGE_TYPES: readonly ColumnType[] = [...TEXT_TYPES, "multiple"];

/** What the column says of its language: "none" and nothing at all leave it without one. */
export function requireLanguage(
  { type, language }: Pick<ColumnSchema, "type"> & { language?: unknown },
  fail: Fail,
): { language?: Language } {
  if (language === undefined || language === null || language === NO_LANGUAGE) return {};
  if (!LANGUAGE_TYPES.includes(type)) return fail(`language is for columns of type ${LANGUAGE_TYPES.join(", ")}; this one is ${type}.`);
  const known = LANGUAGES.find((name) => name === language);
  return known === undefined
    ? fail(`language is ${inWords(language)}; expected one of ${LANGUAGES_OR_NONE.join(", ")}.`)
    : { language: known };
}

export type Fail = (message: string) => never;

function requireLinkTarget(link: unknown, fail: Fail): string {
  const table = (link as { table?: unknown } | null | undefined)?.table;
  if (typeof table !== "string") return fail('a link needs the table it links to: "link": {"table": "teams"}.');
  return table;
}

function requireDimension(vector: unknown, fail: Fail): number {
  const dimension = (vector as { dimension?: unknown } | null | undefined)?.dimension;
  if (isWholeNumber(dimension, MIN_COLUMN_DIMENSION, MAX_DIMENSION)) return dimension;
  return fail(
    `vector.dimension is ${inWords(dimension)}; expected a whole number from ${MIN_COLUMN_DIMENSION} to ${MAX_DIMENSION}, as in "vector": {"dimension": 768}.`,
  );
}

function requireDefault(column: ColumnSchema & Record<string, unknown>, fail: Fail): { defaultValue?: string } {
  const value: unknown = column.defaultValue;
  if (value === undefined || value === null) return {};
  if (typeof value !== "string") return fail(`defaultValue is ${inWords(value)}; expected a string, also for numbers and booleans.`);
  const read = readPostgresDefault(value, column.type);
  if (read?.kind === "none") return {};
  if (read?.kind === "expression") {
    return fail(`defaultValue is ${quoted(value)}, an SQL expression; expected a value (as in 'new'::text or 5), or now() for datetime.`);
  }
  const defaultValue = read?.value ?? value;
  defaultExpression({ ...column, defaultValue }, fail);
  return { defaultValue };
}

/** The SQL expression of a default, checked here so that no insert fails because of it later. */
function defaultExpression(column: ColumnSchema, fail: Fail): string {
  const value = column.defaultValue!;
  const bad = (expected: string): never => fail(`defaultValue is ${quoted(value)}; expected ${expected}.`);
  switch (column.type) {
    case "string":
    case "text":
    case "link":
      return quoteLiteral(value);
    case "email":
      return EMAIL.test(value) ? quoteLiteral(value) : bad("an email address");
    case "int": {
      if (!/^[+-]?[0-9]{1,19}$/.test(value) || BigInt.asIntN(64, BigInt(value)) !== BigInt(value)) return bad("a whole number of 64 bits");
      return `${quoteLiteral(value)}::int8`;
    }
    case "float": {
      if (!/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(value) || !Number.isFinite(Number(value)))
        return bad("a finite number");
      return `${quoteLiteral(String(Number(value)))}::float8`;
    }
    case "bool":
      return value === "true" || value === "false" ? value : bad('"true" or "false"');
    case "datetime": {
      if (value === "now") return "now()";
      const micros = parseTimestamp(value);
      if (micros === undefined) return bad('"now" or an RFC 3339 time such as "2026-01-31T12:00:00Z"');
      return `${quoteLiteral(formatTimestamp(micros))}::timestamptz`;
    }
    case "multiple": {
      const items = parsed(value);
      if (!Array.isArray(items) || !items.every((item) => typeof item === "string"))
        return bad('a JSON array of strings such as "[\\"a\\", \\"b\\"]"');
      return items.length === 0 ? "'{}'::text[]" : `ARRAY[${items.map(quoteLiteral).join(", ")}]::text[]`;
    }
    case "json": {
      if (parsed(value) === undefined) return bad("JSON text");
      if (jsonDepth(value) > MAX_JSON_DEPTH) return bad(`JSON of at most ${MAX_JSON_DEPTH} levels`);
      if (value.includes("\\u0000")) return bad("JSON text without the character U+0000");
      return `${quoteLiteral(value)}::jsonb`;
    }
    case "vector": {
      const elements = parsed(value);
      const dimension = column.vector?.dimension;
      if (!Array.isArray(elements) || !elements.every((x) => typeof x === "number" && Number.isFinite(Math.fround(x)))) {
        return bad("a JSON array of finite numbers");
      }
      if (elements.length !== dimension) return bad(`${dimension} elements, got ${elements.length}`);
      return `'{${elements.map((x) => Math.fround(x as number)).join(",")}}'::real[]`;
    }
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

export function toColumnInfo(column: ColumnSchema & { readonly id: number }): ColumnInfo {
  return { ...column, physicalName: physicalNameOf(column.name) };
}

/** `"name" type [NOT NULL] [DEFAULT …]`, as in CREATE TABLE and ADD COLUMN. Constraints follow on their own. */
export function columnDefinition(column: ColumnSchema): string {
  const parts = [quoteIdentifier(physicalNameOf(column.name)), COLUMN_TRAITS[column.type].definition];
  if (column.notNull) parts.push("NOT NULL");
  if (column.defaultValue !== undefined) {
    parts.push(
      `DEFAULT ${defaultExpression(column, (message) => {
        throw new LodestoneError("CORRUPT", `Column "${column.name}": ${message}`);
      })}`,
    );
  }
  return parts.join(" ");
}

/** The statements that give an existing column what its type and flags promise. */
export function columnConstraints(schemaName: string, physicalTable: string, column: ColumnSchema): string[] {
  const table = qualified(schemaName, physicalTable);
  const physicalColumn = physicalNameOf(column.name);
  const quoted = quoteIdentifier(physicalColumn);
  const named = (kind: Parameters<typeof constraintName>[2]) => quoteIdentifier(constraintName(physicalTable, physicalColumn, kind));
  const statements: string[] = [];
  if (column.unique) statements.push(`ALTER TABLE ${table} ADD CONSTRAINT ${named("unique")} UNIQUE (${quoted})`);
  if (column.type === "email") {
    statements.push(`ALTER TABLE ${table} ADD CONSTRAINT ${named("email")} CHECK (${quoted} ~ ${quoteLiteral(EMAIL_PATTERN)})`);
  }
  if (column.type === "json") statements.push(jsonLimitStatement(schemaName, physicalTable, physicalColumn));
  if (column.type === "vector") {
    // EXTERNAL: float32 noise does not compress, and trying costs more than the row's insert.
    statements.push(`ALTER TABLE ${table} ALTER COLUMN ${quoted} SET STORAGE EXTERNAL`);
    // NaN is above Infinity in PostgreSQL's order, a null element makes ALL null, an empty array has no
    // dimensions at all: IS TRUE refuses them.
    statements.push(
      `ALTER TABLE ${table} ADD CONSTRAINT ${named("vector")} CHECK (${quoted} IS NULL OR (array_ndims(${quoted}) = 1 AND array_lower(${quoted}, 1) = 1 ` +
        `AND array_length(${quoted}, 1) = ${column.vector!.dimension} AND 'Infinity'::real > ALL (${quoted}) AND '-Infinity'::real < ALL (${quoted})) IS TRUE)`,
    );
  }
  if (column.type === "link") {
    statements.push(
      `ALTER TABLE ${table} ADD CONSTRAINT ${named("link")} FOREIGN KEY (${quoted}) ` +
        `REFERENCES ${qualified(schemaName, physicalNameOf(column.link!.table))} ("id") ON DELETE SET NULL DEFERRABLE INITIALLY IMMEDIATE`,
    );
    // Deleting a record looks for the records that link to it, and so do reverse links.
    if (!column.unique)
      statements.push(
        `CREATE INDEX ${quoteIdentifier(constraintName(physicalTable, `${physicalColumn}.link`, "key"))} ON ${table} (${quoted})`,
      );
  }
  return statements;
}

/** Whether two columns of one name hold the same: all but the name. */
export function sameDefinition(one: ColumnSchema, other: ColumnSchema): boolean {
  return (
    one.type === other.type &&
    one.link?.table === other.link?.table &&
    one.vector?.dimension === other.vector?.dimension &&
    (one.notNull ?? false) === (other.notNull ?? false) &&
    (one.unique ?? false) === (other.unique ?? false) &&
    one.defaultValue === other.defaultValue
  );
}

/**
 * Defaults as PostgreSQL prints them, which is how schemas of databases with direct access to PostgreSQL have
 * them: `'5'::bigint`, `'user'::text`, `now()`, `'{a,b}'::text[]`. What has a meaning here is read as the
 * default that the API would write. An expression without one is reported, never taken for a text.
 */
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
function readPostgresDefault(text: string, type: ColumnType): DefaultReading | undefined {
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
