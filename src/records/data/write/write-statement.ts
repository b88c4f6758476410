/**
 * The parts that INSERT and UPDATE statements are put together from. Names are quoted, values are bound and
 * cast to their column's type.
 */
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { type Parameters, ROW } from "../sql-parts/bound-parameters.ts";
import { quotedColumn, relation } from "../sql-parts/sql-names.ts";
import type { EncodedRecord } from "../values/encode-record.ts";

/** `INSERT INTO "s"."table" AS t ("id", "name") VALUES ($1, $2::text)` */
export function insertStatement(branch: BranchInfo, table: TableInfo, record: EncodedRecord, parameters: Parameters): string {
  const names = ['"id"'];
  const values = [parameters.add(record.id)];
  for (const [column, value] of record.values) {
    names.push(quotedColumn(column));
    values.push(parameters.column(column, value));
  }
  return `INSERT INTO ${relation(branch, table)} AS ${ROW} (${names.join(", ")}) VALUES (${values.join(", ")})`;
}

/** A replace sets every column: to what was given, or back to its default. */
export function replaceAssignments(table: TableInfo, record: EncodedRecord, parameters: Parameters): string {
  const assignments = [...table.columns.values()].map((column) => {
    const value = record.values.get(column);
    return `${quotedColumn(column)} = ${value === undefined ? "DEFAULT" : parameters.column(column, value)}`;
  });
  return assignments.length === 0 ? UNCHANGED : assignments.join(", ");
}

/** ON CONFLICT DO UPDATE: every column becomes what the INSERT gave it, or its default. */
export function excludedAssignments(table: TableInfo): string {
  const assignments = [...table.columns.values()].map((column) => `${quotedColumn(column)} = EXCLUDED.${quotedColumn(column)}`);
  return assignments.length === 0 ? UNCHANGED : assignments.join(", ");
}

/** An update without columns is an update too: the trigger makes a new version of the row. */
export const UNCHANGED = '"xata.version" = DEFAULT';

export function updateStatement(
  branch: BranchInfo,
  table: TableInfo,
  assignments: string,
  id: string,
  ifVersion: number | undefined,
  parameters: Parameters,
): string {
  const version = ifVersion === undefined ? "" : ` AND ${ROW}."xata.version" = ${parameters.add(ifVersion)}::int4`;
  return `UPDATE ${relation(branch, table)} AS ${ROW} SET ${assignments} WHERE ${ROW}."id" = ${parameters.add(id)}${version}`;
}
