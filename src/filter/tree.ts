/**
 * The filter language after parsing: one tree, checked against the schema, from which the bit mask and the SQL
 * are both made.
 *
 * Three-valued logic, as in SQL. A leaf over a null value is unknown (except `exists`, which is never unknown);
 * AND, OR and NOT are those of SQL; a record is selected when the whole is true. So:
 *
 * - A null is never equal to, different from, below or above anything: `$is`, `$isNot`, `$lt` … select no record
 *   whose value is null, and neither do their negations by `$not` and `$none` (`NOT unknown` is unknown). Only
 *   `$notExists` finds records without a value.
 * - A link that points nowhere, or any link on the way of a path that is null, makes the value null.
 * - `multiple`: an item matches when its predicate is true. `$includes`/`$includesAny`: some item matches;
 *   `$includesAll`: for each predicate of the list some item matches, as the retired service had it (its
 *   documentation said: every item); `$includesNone`: no item matches (true of an empty array). All are unknown
 *   over a null column.
 * - `json`: an absent path and a JSON null are null. Equality compares type and value: "1" is not 1; a text
 *   that is a JSON object or list stands for that object or list, as the SDK sends it. Ranges and text
 *   operators are unknown when the value is of another type than the operand. Numbers are compared exactly, as
 *   decimals.
 * - Text is ordered by code point; a NaN equals itself and is above every other number, as PostgreSQL has it.
 */

import type { JsonDocument } from "./json-document.ts";

/** The column types, as far as the filter tells them apart. */
export type FilterColumnType =
  | "string"
  | "text"
  | "email"
  | "int"
  | "float"
  | "bool"
  | "datetime"
  | "multiple"
  | "json"
  | "link"
  | "vector";

/** What the parser needs of a schema; `TableInfo` of the records has it. */
export interface FilterTable {
  readonly name: string;
  readonly columns: ReadonlyMap<string, FilterTableColumn>;
}

export interface FilterTableColumn {
  readonly name: string;
  readonly type: FilterColumnType;
  readonly link?: { readonly table: string };
}

/** How the values of a column are compared. */
export type ValueKind = "text" | "int" | "float" | "bool" | "datetime" | "multiple" | "json" | "vector";

export interface LinkStep {
  /** The table that has the link column, the column, and the table that it points into. */
  readonly table: string;
  readonly column: string;
  readonly target: string;
}

/**
 * A value that a leaf looks at: a column of the table, one behind links, a path into a json column, or the item
 * of an array.
 */
export interface ColumnPath {
  /** As the user wrote it, for messages. */
  readonly text: string;
  readonly links: readonly LinkStep[];
  /** The table that has the column: the last link's target, or the filtered table. */
  readonly table: string;
  /** Its name in that table; `id`, `xata.version`, `xata.createdAt` and `xata.updatedAt` included. */
  readonly column: string;
  readonly kind: ValueKind;
  /** Steps into json; empty: the value itself. */
  readonly json: readonly string[];
  /** Inside `includes`: the item at hand, of kind text. */
  readonly item: boolean;
}

/**
 * text: string, well-formed and without NUL · int: bigint in the range of int8 · float: finite number · bool: boolean
 * datetime: bigint, microseconds since 1970 UTC · json: string, finite number, boolean, or a whole object or list.
 */
export type Operand = string | bigint | number | boolean | JsonDocument;

export type RangeOperator = "lt" | "le" | "gt" | "ge";
export type TextOperator = "contains" | "startsWith" | "endsWith";

/** One piece of a `$pattern`: literal text, `?` (exactly one code point), or `*` (any number). */
export type PatternPart = string | typeof ANY_CHARACTER | typeof ANY_TEXT;
export const ANY_CHARACTER = 1;
export const ANY_TEXT = 2;

export type FilterNode =
  /** True of an empty list. */
  | { readonly kind: "and"; readonly nodes: readonly FilterNode[] }
  /** False of an empty list. */
  | { readonly kind: "or"; readonly nodes: readonly FilterNode[] }
  | { readonly kind: "not"; readonly node: FilterNode }
  | FilterLeaf;

export type FilterLeaf =
  | { readonly kind: "exists"; readonly column: ColumnPath }
  /** Equals one of them. */
  | { readonly kind: "in"; readonly column: ColumnPath; readonly values: readonly Operand[] }
  | { readonly kind: "range"; readonly column: ColumnPath; readonly operator: RangeOperator; readonly value: Operand }
  /** The same for every value that is there: what a comparison of an int column with 1.5 or 1e300 comes to. */
  | { readonly kind: "constant"; readonly column: ColumnPath; readonly value: boolean }
  /** `operand` is folded already when `fold` is set. */
  | {
      readonly kind: "text";
      readonly column: ColumnPath;
      readonly operator: TextOperator;
      readonly fold: boolean;
      readonly operand: string;
    }
  | { readonly kind: "pattern"; readonly column: ColumnPath; readonly fold: boolean; readonly parts: readonly PatternPart[] }
  | {
      readonly kind: "includes";
      readonly column: ColumnPath;
      readonly quantifier: "any" | "none";
      /** Over the item. */
      readonly predicate: FilterNode;
    };

export const TRUE: FilterNode = { kind: "and", nodes: [] };
export const FALSE: FilterNode = { kind: "or", nodes: [] };
