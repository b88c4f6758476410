/**
 * What every statement is put together from: bound parameters, the names of tables and columns, and filters. Values
 * are cast to their column's type; none of them is ever part of the SQL text. No name relies on search_path.
 */
import { parseFilter } from "../../../filter/parse.ts";
import { compileToSql } from "../../../filter/sql-condition.ts";
import type { FilterTable } from "../../../filter/tree.ts";
import type { VectorForm } from "../../binary-arrays.ts";
import { COLUMN_TRAITS } from "../../column-traits.ts";
import { qualified, quoteIdentifier } from "../../identifiers.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../../schema.ts";
import type { ColumnValue, Parameter } from "../values/column-value.ts";

/** The name of the written row in every statement of this folder. */
export const ROW = "t";

/** Of statements that name records by their ids: their text says the columns and their types, and they have one plan. */
export const REPEATED = { isRepeated: true } as const;

/** Bound parameters of one statement, in the order in which their `$n` were given out. */
export class Parameters {
  readonly values: (Parameter | readonly string[])[] = [];

  add(value: Parameter | readonly string[]): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}

/** Those of a statement that writes. */
export class WriteParameters extends Parameters {
  readonly vectors: VectorForm;

  /** @param session  where the statement will run. */
  constructor(session: { readonly vectors: VectorForm }) {
    super();
    this.vectors = session.vectors;
  }

  /** `$3::int8` */
  column({ type }: Pick<ColumnInfo, "type">, value: ColumnValue): string {
    if (value instanceof Float32Array) return this.vectors.oneSql(this.add(this.vectors.encode([value])));
    return `${this.add(value)}::${COLUMN_TRAITS[type].parameterType}`;
  }
}

/** `"db:branch"."table"`. */
export function relation(branch: BranchInfo, table: TableInfo): string {
  return qualified(branch.schemaName, table.physicalName);
}

export function quotedColumn(column: ColumnInfo): string {
  return quoteIdentifier(column.physicalName);
}

/**
 * A filter as a condition: `filter/` parses and compiles, this says what tables and columns are called.
 * @param ownColumn  the SQL of the table's own columns, if it is not a table of the branch.
 * @returns a boolean expression over the row named `alias`; TRUE without a filter.
 * @throws {LodestoneError} INVALID with the path to the error.
 */
export function compileFilter(
  branch: BranchInfo,
  table: FilterTable,
  filter: unknown,
  alias: string,
  parameters: Parameters,
  name = "filter",
  ownColumn?: (column: string) => string,
): string {
  const node = parseFilter(filter ?? undefined, table, branch.tables, name);
  const compiled = compileToSql(node, {
    alias,
    firstParameter: parameters.values.length + 1,
    column: (at, tableName, column) =>
      ownColumn !== undefined && tableName === table.name
        ? ownColumn(column)
        : `${at}.${quoteIdentifier(branch.tables.get(tableName)?.columns.get(column)?.physicalName ?? column)}`,
    relation: (tableName) => relation(branch, branch.tables.get(tableName)!),
  });
  for (const value of compiled.values) parameters.add(value);
  return compiled.text;
}
