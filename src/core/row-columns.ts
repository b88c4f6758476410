/**
 * Values beside the vectors, by row: what an index asks of them. The core knows no types and no filter language; `Columns` (src/columns) does, and is given
 * to an index by whoever wants it, so that an index without values does not carry it.
 */
import type { RowDirectory } from "./row-directory.ts";

/** Values of one record by column name; null or absent: none. */
export type RowValues = Readonly<Record<string, unknown>>;

/** Values that were checked and can be stored; what is in them is the columns' own affair. */
export type CheckedValues = object;

export interface RowColumns {
  /** From now on the rows are those of this directory. @throws {TypeError} when they are another's already. */
  bind(rows: RowDirectory): void;
  /** Nothing is stored. @throws {LodestoneError} INVALID, naming the column. */
  check(values: RowValues): CheckedValues;
  /** The values of a row, all of them replaced; undefined: it keeps those it has. The row is among those that filters select from. */
  set(row: number, values: CheckedValues | undefined): void;
  /** @param names  of columns; undefined: all. @throws {LodestoneError} INVALID for a name that is no column's. */
  get(row: number, names?: readonly string[]): Record<string, unknown>;
  /** What `set` takes to bring the row back to what it is now; undefined when it has no values. */
  keep(row: number): CheckedValues | undefined;
  clear(row: number): void;
  /** Rows for which the filter is true. @throws {LodestoneError} INVALID, with the path to the fault. */
  toMask(filter: object): Uint32Array;
  /** @throws {LodestoneError} INVALID for a name that is no column's. */
  checkNames(names: readonly string[]): void;
  /** Names and types, as text; snapshots of the same columns have the same. */
  readonly schema: string;
  /** Values of rows as text, and back. */
  encode(rows: readonly number[]): string;
  /** @throws {LodestoneError} INVALID for what `encode` cannot have written. */
  decode(text: string): CheckedValues[];
}
