/**
 * A filter of a request as a condition of a statement. `filter` parses and compiles; this says what tables and
 * columns are called.
 */
import { parseFilter } from "../../../filter/parse.ts";
import { compileToSql } from "../../../filter/sql-condition.ts";
import { quoteIdentifier } from "../../identifiers.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import type { Parameters } from "./bound-parameters.ts";
import { relation } from "./sql-names.ts";

/**
 * @returns a boolean expression over the row named `alias`; TRUE without a filter.
 * @throws {LodestoneError} INVALID with the path to the error.
 */
export function compileFilter(
  branch: BranchInfo,
  table: TableInfo,
  filter: unknown,
  alias: string,
  parameters: Parameters,
  name = "filter",
): string {
  const node = parseFilter(filter ?? undefined, table, branch.tables, name);
  const compiled = compileToSql(node, {
    alias,
    firstParameter: parameters.values.length + 1,
    column: (at, tableName, column) =>
      `${at}.${quoteIdentifier(branch.tables.get(tableName)?.columns.get(column)?.physicalName ?? column)}`,
    relation: (tableName) => relation(branch, branch.tables.get(tableName)!),
  });
  for (const value of compiled.values) parameters.add(value);
  return compiled.text;
}
