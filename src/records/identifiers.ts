/**
 * Names: which ones users may give, what they are called in PostgreSQL, and how to quote them.
 *
 * Invariant: a physical name is a pure function of the user's name, so nothing has to be looked up to address a
 * table. Text that a user typed becomes SQL only through `quoteIdentifier` or `quoteLiteral`.
 */
import { createHash, randomBytes } from "node:crypto";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { inWords } from "../errors/value-in-words.ts";
import type { BranchRef } from "./schema.ts";

/** PostgreSQL's NAMEDATALEN - 1. Names are ASCII, so bytes are characters. */
const MAX_IDENTIFIER_BYTES = 63;

/** For databases, branches and tables, as a JSON Schema pattern. Names of columns may also contain dots. */
export const NAME_PATTERN = "^[a-zA-Z0-9_~-]{1,255}$";
export const COLUMN_NAME_PATTERN = "^[a-zA-Z0-9_~.-]{1,255}$";

export const NAME = new RegExp(NAME_PATTERN);
export const COLUMN_NAME = new RegExp(COLUMN_NAME_PATTERN);
/** Columns that PostgreSQL gives every table by itself. */
const POSTGRES_COLUMNS = new Set(["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"]);

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Correct whatever standard_conforming_strings is. */
export function quoteLiteral(value: string): string {
  if (value.includes("\0"))
    throw new LodestoneError("INVALID", "A text must not contain the character U+0000: PostgreSQL cannot store it.");
  const quoted = `'${value.replaceAll("'", "''")}'`;
  return value.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

/** `"schema"."table"`. */
export function qualified(schemaName: string, relation: string): string {
  return `${quoteIdentifier(schemaName)}.${quoteIdentifier(relation)}`;
}

function requireName(kind: string, name: unknown): void {
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new LodestoneError("INVALID", `${kind} name: got ${inWords(name)}, expected 1 to 255 of the characters a-z A-Z 0-9 _ - ~.`);
  }
}

export function requireDatabaseName(name: unknown): asserts name is string {
  requireName("Database", name);
}

export function requireBranchRef(ref: BranchRef): void {
  requireName("Database", ref.database);
  requireName("Branch", ref.branch);
}

export function requireTableName(name: unknown): asserts name is string {
  requireName("Table", name);
}

export function requireColumnName(table: string, name: unknown): asserts name is string {
  const prefix = `Column name in table "${table}"`;
  if (typeof name !== "string" || !COLUMN_NAME.test(name)) {
    throw new LodestoneError(
      "INVALID",
      `${prefix}: got ${inWords(name)}, expected 1 to 255 of the characters a-z A-Z 0-9 _ - ~, and dots for columns of an object.`,
    );
  }
  if (name.split(".").includes("")) {
    throw new LodestoneError("INVALID", `${prefix}: got "${name}", expected a name between the dots ("address.city").`);
  }
  if (name === "id" || name === "xata" || name.startsWith("xata.") || POSTGRES_COLUMNS.has(name)) {
    throw new LodestoneError("INVALID", `${prefix}: "${name}" is reserved for the service. Choose another name.`);
  }
}

/** A table's or column's name in PostgreSQL: cut as PostgreSQL itself cuts it. */
export function physicalNameOf(name: string): string {
  return name.slice(0, MAX_IDENTIFIER_BYTES);
}

/** The schema of a branch. "#" is not in the names' alphabet, so a hashed or escaped name never meets a plain one. */
export function schemaNameOf(ref: BranchRef): string {
  return asSchemaName(`${ref.database}:${ref.branch}`);
}

/**
 * The schema of the views that users' SQL sees instead, where system columns have other names than in the
 * tables.
 */
export function viewSchemaNameOf(ref: BranchRef): string {
  return asSchemaName(`${ref.database}:${ref.branch}#views`);
}

function asSchemaName(plain: string): string {
  const name = plain.startsWith("pg_") ? `#${plain}` : plain; // PostgreSQL keeps schemas that begin with pg_ for itself
  if (name.length <= MAX_IDENTIFIER_BYTES) return name;
  const digest = createHash("sha256").update(plain).digest("hex").slice(0, 24);
  return `${name.slice(0, MAX_IDENTIFIER_BYTES - 1 - digest.length)}#${digest}`;
}

/** `database:branch`, as on the wire. */
export function formatBranchRef(ref: BranchRef): string {
  return `${ref.database}:${ref.branch}`;
}

/** undefined for anything that is not `database:branch`. */
export function parseBranchRef(text: string): BranchRef | undefined {
  const [database, branch, ...rest] = text.split(":");
  return database !== undefined && branch !== undefined && rest.length === 0 && NAME.test(database) && NAME.test(branch)
    ? { database, branch }
    : undefined;
}

/**
 * Roles belong to the whole cluster. So the name is random rather than the branch's name, which another
 * database may have too.
 */
export function newRoleName(): string {
  return `lodestone:${randomBytes(12).toString("hex")}`;
}

export type ConstraintKind = "unique" | "email" | "vector" | "link" | "json";

/** `table.column.kind`; indexes share one namespace with tables, whose names have no dots. */
export function constraintName(physicalTable: string, physicalColumn: string, kind: ConstraintKind | "key"): string {
  const plain = `${physicalTable}.${physicalColumn}.${kind}`;
  if (plain.length <= MAX_IDENTIFIER_BYTES) return plain;
  const digest = createHash("sha256").update(plain).digest("hex").slice(0, 16);
  return `${plain.slice(0, MAX_IDENTIFIER_BYTES - 1 - digest.length)}#${digest}`;
}
