/** Tables and columns by their names in SQL. The record store never relies on search_path. */
import { qualified, quoteIdentifier } from "../../identifiers.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../../schema.ts";

/** `"db:branch"."table"`. */
export function relation(branch: BranchInfo, table: TableInfo): string {
  return qualified(branch.schemaName, table.physicalName);
}

export function quotedColumn(column: ColumnInfo): string {
  return quoteIdentifier(column.physicalName);
}
