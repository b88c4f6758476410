import type { ColumnValues } from "./column-values.ts";

/** Values of another kind than the column's: a bug in the program, not a bad request. */
export function mismatch(expected: string, from: ColumnValues): TypeError {
  return new TypeError(`Values of kind ${from.kind} were given to a column of ${expected}.`);
}
