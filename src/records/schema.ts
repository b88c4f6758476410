/** The schema of a branch, as the HTTP API has it (`TableSchema`) and as the catalog holds it (`TableInfo`). */

import type { SystemNaming } from "../filter/system-columns.ts";
import type { Language } from "../text/languages.ts";

/** Addresses a branch; on the wire `{database}:{branch}`. Names match `[a-zA-Z0-9_\-~]{1,255}`. */
export interface BranchRef {
  readonly database: string;
  readonly branch: string;
}

/**
 * PostgreSQL: text, text, text (checked), int8, float8, bool, timestamptz, text[], jsonb, text (foreign key,
 * set null on delete), real[] (checked).
 */
export type ColumnType = "string" | "text" | "email" | "int" | "float" | "bool" | "datetime" | "multiple" | "json" | "link" | "vector";

export interface ColumnSchema {
  readonly name: string;
  readonly type: ColumnType;
  readonly link?: { readonly table: string };
  /** 2 to 10,000. */
  readonly vector?: { readonly dimension: number };
  readonly notNull?: boolean;
  readonly unique?: boolean;
  /** As the API takes it: a string, also for numbers and booleans; `"now"` for datetime. */
  readonly defaultValue?: string;
  /** Kept for those who wrote it, and of no effect. */
  readonly comment?: string;
  /** Of its texts, for columns of words: a search finds words of the same stem. */
  readonly language?: Language;
}

export interface TableSchema {
  readonly name: string;
  readonly columns: readonly ColumnSchema[];
}

export interface BranchSchema {
  readonly tables: readonly TableSchema[];
}

/** A schema change as `schema/apply`, `schema/compare` and the history of a branch have it: an object with one key. */
export type SchemaOperation =
  | { readonly addTable: { readonly table: string } }
  | { readonly removeTable: { readonly table: string } }
  | { readonly renameTable: { readonly oldName: string; readonly newName: string } }
  | { readonly addColumn: { readonly table: string; readonly column: ColumnSchema } }
  | { readonly removeColumn: { readonly table: string; readonly column: string } }
  | { readonly renameColumn: { readonly table: string; readonly oldName: string; readonly newName: string } };

/**
 * A branch resolved by the catalog. `version` grows by one with each schema change, so that a cache can tell
 * that it is old.
 */
export interface BranchInfo {
  readonly ref: BranchRef;
  /**
   * The PostgreSQL schema that holds the branch: `database:branch`, or a hashed form of it over 63 bytes. Never
   * typed by users.
   */
  readonly schemaName: string;
  /**
   * Where users' SQL finds the tables: the same, or a schema of views that call the system's columns by the
   * branch's names for them.
   */
  readonly sqlSchemaName: string;
  readonly systemNaming: SystemNaming;
  /** The role that user SQL runs as in this branch. */
  readonly roleName: string;
  /** Fresh at creation, copy and restore: positions and snapshots of another incarnation mean nothing. */
  readonly incarnation: string;
  readonly version: number;
  readonly createdAt: string;
  readonly tables: ReadonlyMap<string, TableInfo>;
}

/**
 * A table's name in PostgreSQL is its name here, cut to 63 bytes as PostgreSQL itself cuts it; creating two
 * that collide is refused. The same holds for columns.
 */
export interface TableInfo {
  /**
   * Unique in the branch and never given again, shared with columns: the same id is the same data, whatever its
   * name; a new id has to be read.
   */
  readonly id: number;
  readonly name: string;
  /** Cut to 63 bytes, unquoted. */
  readonly physicalName: string;
  readonly columns: ReadonlyMap<string, ColumnInfo>;
}

export interface ColumnInfo extends ColumnSchema {
  readonly id: number;
  readonly physicalName: string;
}
