import type { ColumnValues } from "./column-values.ts";

/** Values of another kind than the column's: a fault of the program, not of a request. */
export function mismatch(expected: string, from: ColumnValues): TypeError {
  return new TypeError(`Values of kind ${from.kind} were given to a column of ${expected}.`);
}
