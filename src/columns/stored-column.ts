/**
 * A column as the filter reads it: the search store fills it from the change feed, the library from its
 * caller's values.
 */

import type { MaskColumn } from "../filter/mask-table.ts";
import type { FilterColumnType } from "../filter/tree.ts";
import type { ColumnValues } from "./column-values.ts";
import { FlagColumn, NumberColumn, PresenceColumn, WideNumberColumn } from "./number-columns.ts";
import { ItemsColumn, TextColumn } from "./text-columns.ts";

export type StoredColumn = MaskColumn & ColumnStorage;

export interface ColumnStorage {
  /** Room for rows 0..rows − 1; called before any of them is set. */
  reserve(rows: number): void;
  /** Takes value `i` of the values for `row`. */
  set(row: number, from: ColumnValues, i: number): void;
  /** The values of `rows`, as `set` takes them; a vector column has none of its own. */
  get(rows: readonly number[]): ColumnValues;
  /** Removes the row's value. */
  clear(row: number): void;
  readonly memoryBytes: number;
}

export function createColumn(type: FilterColumnType): StoredColumn {
  switch (type) {
    case "string":
    case "text":
    case "email":
    case "link":
      return new TextColumn("text");
    case "json":
      return new TextColumn("json");
    case "int":
      return new WideNumberColumn("int");
    case "datetime":
      return new WideNumberColumn("datetime");
    case "float":
      return new NumberColumn();
    case "bool":
      return new FlagColumn();
    case "multiple":
      return new ItemsColumn();
    case "vector":
      return new PresenceColumn();
  }
}
