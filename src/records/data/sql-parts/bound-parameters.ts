/**
 * The bound parameters of a statement. Values are cast to their column's type; none of them is ever part of the
 * SQL text.
 */
import { COLUMN_TRAITS } from "../../column-traits.ts";
import type { ColumnInfo } from "../../schema.ts";
import type { Parameter } from "../values/column-value.ts";

/** The name of the written row in every statement of this folder. */
export const ROW = "t";

/** Bound parameters of one statement, in the order in which their `$n` were given out. */
export class Parameters {
  readonly values: (Parameter | readonly string[])[] = [];

  add(value: Parameter | readonly string[]): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  /** `$3::int8` */
  column(column: ColumnInfo, value: Parameter): string {
    return `${this.add(value)}::${COLUMN_TRAITS[column.type].parameterType}`;
  }
}
