export interface Omissible {
  /** Rows (by place) whose value is too large to be delivered: it comes as null. */
  readonly omitted?: ReadonlySet<number>;
}

/** Values of one column for several rows, in their order; null: no value. */
export type ColumnValues =
  | (Omissible & { readonly kind: "text"; readonly values: (string | null)[] }) // string, text, email, link
  | { readonly kind: "int"; readonly values: (bigint | null)[] }
  | { readonly kind: "float"; readonly values: (number | null)[] } // NaN and infinities possible through SQL
  | { readonly kind: "bool"; readonly values: (boolean | null)[] }
  | { readonly kind: "datetime"; readonly values: (bigint | null)[] } // microseconds since 1970 UTC
  | (Omissible & { readonly kind: "multiple"; readonly values: ((string | null)[] | null)[] })
  | (Omissible & { readonly kind: "json"; readonly values: (string | null)[] }) // JSON text
  /** Rows that have a vector, as places in that order, and their elements, row-major. */
  | { readonly kind: "vector"; readonly dimension: number; readonly rows: Uint32Array; readonly elements: Float32Array };

/** Values of another kind than the column's: a bug in the program, not a bad request. */
export function mismatch(expected: string, from: ColumnValues): TypeError {
  return new TypeError(`Values of kind ${from.kind} were given to a column of ${expected}.`);
}
