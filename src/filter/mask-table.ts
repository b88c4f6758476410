/**
 * What the mask compiler reads: columns of values by row. Arrays may be longer than the table's capacity (they
 * grow ahead), never shorter, and are read only while `compileToMask` runs.
 */

export interface MaskTable {
  /** Every row is below this. */
  readonly capacity: number;
  /** Rows that hold a record. */
  readonly live: Uint32Array;
  rowOf(id: string): number | undefined;
  idOf(row: number): string | undefined;
  /** By name, `xata.version`, `xata.createdAt` and `xata.updatedAt` included; `id` is not a column here. */
  column(name: string): MaskColumn;
}

/** Values are in a dictionary; a row has the code of its value, or -1 for null. */
export interface Dictionary {
  /** By code; undefined for codes that no row has. */
  readonly values: readonly (string | undefined)[];
  codeOf(value: string): number | undefined;
}

/** Rows whose value is too large to be kept: neither null nor known. */
export interface Omitting {
  readonly omitted?: ReadonlySet<number>;
}

export interface CodedColumn<Kind extends "text" | "json"> extends Omitting {
  readonly kind: Kind;
  readonly codes: Int32Array;
  readonly dictionary: Dictionary;
}

/**
 * int8 as two words, low (unsigned) and high (signed): words 2r and 2r + 1 of row r. For datetime microseconds
 * since 1970 UTC.
 */
export interface WideColumn<Kind extends "int" | "datetime"> {
  readonly kind: Kind;
  readonly words: Int32Array;
  readonly present: Uint32Array;
}

export interface FloatColumn {
  readonly kind: "float";
  readonly values: Float64Array;
  readonly present: Uint32Array;
}

export interface BoolColumn {
  readonly kind: "bool";
  readonly values: Uint32Array;
  readonly present: Uint32Array;
}

export interface MultipleColumn extends Omitting {
  readonly kind: "multiple";
  /** By row; undefined for null, -1 for a null item. */
  readonly items: readonly (Int32Array | undefined)[];
  readonly dictionary: Dictionary;
}

/** Only says whether a row has a vector. */
export interface VectorColumn {
  readonly kind: "vector";
  readonly present: Uint32Array;
}

export type MaskColumn =
  | CodedColumn<"text">
  | CodedColumn<"json">
  | WideColumn<"int">
  | WideColumn<"datetime">
  | FloatColumn
  | BoolColumn
  | MultipleColumn
  | VectorColumn;
