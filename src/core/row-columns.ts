/**
 * What an index needs from the values stored beside its vectors, by row. The core knows neither types nor a
 * filter language. `Columns` (src/columns) does. The caller passes it to an index, so an index without values
 * does not include its code.
 */
import type { RowDirectory } from "./row-directory.ts";
import type { HeldVectors, TextSearch, TextSearchResult } from "./text-search.ts";
import type { VectorShard } from "./vector-shard.ts";
import type { WeakList } from "./weak-list.ts";

/** Values of one record by column name; null or absent: none. */
export type RowValues = Readonly<Record<string, unknown>>;

/** Uses the grammar of the service's `filter`. */
export type ColumnFilter = { readonly [name: string]: unknown };

/**
 * What TypeScript knows of columns: their names, the values of a record as they are stored and as they are read, and
 * filters. The names stand beside the row, because with `keyof` no index of known columns were a `VectorIndex`.
 */
export interface ColumnTyping {
  name: string;
  values: RowValues;
  row: Record<string, unknown>;
  filter: ColumnFilter;
}

export type ValuesOf<Columns extends RowColumns> = NonNullable<Columns["typing"]>["values"];
export type FilterOf<Columns extends RowColumns> = NonNullable<Columns["typing"]>["filter"];
export type ColumnName<Columns extends RowColumns> = NonNullable<Columns["typing"]>["name"];

/** What a result has of the columns that were asked for. */
export type RowOf<Columns extends RowColumns> = Partial<NonNullable<Columns["typing"]>["row"]>;

/** Checked values that can be stored. Their form is private to the columns. */
export type CheckedValues = object;

export interface RowColumns {
  /** For TypeScript alone: it is never there. */
  readonly typing?: ColumnTyping | undefined;
  /**
   * Uses the rows of this directory from now on. @throws {TypeError} if bound to another directory already.
   */
  bind(rows: RowDirectory): void;
  /** Only checks; stores nothing. @throws {LodestoneError} INVALID, naming the column. */
  check(values: RowValues): CheckedValues;
  /**
   * Replaces all values of a row; undefined keeps the existing ones. Filters can select the row from now on.
   */
  set(row: number, values: CheckedValues | undefined): void;
  /** @param names  of columns; undefined: all. @throws {LodestoneError} INVALID for an unknown column. */
  get(row: number, names?: readonly string[]): Record<string, unknown>;
  /** The values that `set` needs to restore the row's current state; undefined when it has no values. */
  keep(row: number): CheckedValues | undefined;
  clear(row: number): void;
  /** Who is to be told before the values of a row change. @internal */
  readonly saves: WeakList<{ beforeValues(row: number): void }>;
  /** Rows for which the filter is true. @throws {LodestoneError} INVALID, with the path to the fault. */
  toMask(filter: object): Uint32Array;
  /** @throws {LodestoneError} INVALID for an unknown column. */
  checkNames(names: readonly string[]): void;
  /** Names and types as text. Equal columns have equal text in snapshots. */
  readonly schema: string;
  /** Values of rows, or kept ones, as text. `decode` reads it. */
  encode(rows: readonly (number | CheckedValues)[]): string;
  /** @throws {LodestoneError} INVALID for text that `encode` cannot have written. */
  decode(text: string): CheckedValues[];
  /** @throws {TypeError} if they have no words; as the search of the index. @internal */
  searchText(request: TextSearch, shard: VectorShard): TextSearchResult;
  /** Takes everything that depends on the state of the records before it returns its promise. @internal */
  searchTextHeld(request: TextSearch, vectors: HeldVectors): Promise<TextSearchResult>;
}
