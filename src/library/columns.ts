/**
 * Values beside the vectors of an index: kept by column as in the service's search store, filtered in the
 * grammar of the service's API. An index is given its Columns when it is created; an index without them carries
 * none of this code.
 */

import { growMask } from "../columns/number-columns.ts";
import { type ColumnStorage, createColumn, type StoredColumn } from "../columns/stored-column.ts";
import { checkType } from "../core/options.ts";
import type { CheckedValues, RowColumns, RowValues } from "../core/row-columns.ts";
import type { RowDirectory } from "../core/row-directory.ts";
import type { HeldVectors, TextSearch, TextSearchResult } from "../core/text-search.ts";
import type { VectorShard } from "../core/vector-shard.ts";
import { WeakList } from "../core/weak-list.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { inWords, quoted, quotedNames } from "../errors/value-in-words.ts";
import { clearBit, hasBit, setBit } from "../filter/bit-mask.ts";
import { compileToMask } from "../filter/mask.ts";
import type { MaskTable } from "../filter/mask-table.ts";
import { parseFilter } from "../filter/parse.ts";
import type { FilterTable } from "../filter/tree.ts";
import {
  type ColumnType,
  fromStored,
  isColumnType,
  type Stored,
  storedText,
  toColumnValues,
  toStored,
  unstoredText,
} from "./stored-value.ts";
import type { ColumnInput, ColumnOutput, ColumnTypes, TypedFilter } from "./typed-columns.ts";

interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly stored: StoredColumn & ColumnStorage;
}

/** In the order of the columns. */
class CheckedRow {
  readonly values: readonly Stored[];

  constructor(values: readonly Stored[]) {
    this.values = values;
  }
}

/**
 * Their names and types are known to TypeScript: of `new Columns({ year: "int" })` an index knows that a filter may say
 * `{ year: { $ge: 1980 } }`, and that a result's year is a number, a bigint or null.
 */
export class Columns<Types extends ColumnTypes = ColumnTypes> implements RowColumns {
  /** For TypeScript alone: it is never there. */
  declare readonly typing?:
    | { row: ColumnOutput<Types>; name: keyof Types & string; values: ColumnInput<Types>; filter: TypedFilter<Types> }
    | undefined;
  /** @internal */
  readonly saves: RowColumns["saves"] = new WeakList();
  readonly #columns: readonly Column[];
  readonly #table: FilterTable;
  #rows: RowDirectory | undefined;
  #live = new Uint32Array(0);
  readonly #maskTable: MaskTable;

  /**
   * @param types  by name: "string", "int" (64 bits), "float", "bool", "datetime" (microseconds), "multiple" (a
   *   list of strings) or "json".
   * @throws {TypeError} for an unknown type or a name that filters could not use.
   */
  constructor(types: Types) {
    checkType(typeof types === "object" && types !== null && !Array.isArray(types), "types", types, 'an object such as { year: "int" }');
    this.#columns = Object.entries(types).map(([name, type]) => {
      if (!isColumnType(type)) throw new TypeError(`Column ${quoted(name)} has the unknown type ${inWords(type)}.`);
      if (name === "" || name === "id" || name.startsWith("$") || name.startsWith("xata") || name.includes("->") || !isText(name)) {
        throw new TypeError(
          `${quoted(name)} cannot be the name of a column: "id", "$…", "xata…" and "…->…" mean something else in filters.`,
        );
      }
      return { name, type, stored: createColumn(type) };
    });
    this.#table = { name: "index", columns: new Map(this.#columns.map(({ name, type }) => [name, { name, type }])) };
    const columns = this;
    this.#maskTable = {
      get capacity() {
        return columns.#directory.capacity;
      },
      get live() {
        return columns.#live;
      },
      rowOf: (id) => columns.#directory.rowOf(id),
      idOf: (row) => columns.#directory.idOf(row),
      column: (name) => columns.#column(name).stored,
    };
  }

  /** @internal */
  bind(rows: RowDirectory): void {
    if (this.#rows === rows) return;
    if (this.#rows !== undefined) throw new TypeError("These columns belong to another index; share its `rows` too, or make new ones.");
    this.#rows = rows;
    rows.attach({ clearRow: (row) => this.clear(row) });
  }

  /** @internal */
  check(values: RowValues): CheckedValues {
    if (values === null || typeof values !== "object" || Array.isArray(values)) {
      throw new LodestoneError("INVALID", "values: expected an object with a member for each column.");
    }
    this.checkNames(Object.keys(values));
    return new CheckedRow(this.#columns.map(({ name, type }) => toStored(name, type, Object.hasOwn(values, name) ? values[name] : null)));
  }

  /** Values in the order of the columns, as they are stored; nothing is checked. @internal */
  take(values: readonly Stored[]): CheckedValues {
    return new CheckedRow(values);
  }

  /** Of rows, in the order of the columns: what JSON can hold. @internal */
  texts(rows: readonly number[]): unknown[][] {
    this.#reserve();
    return rows.map((row) => this.#textsAt(row));
  }

  /** @internal */
  set(row: number, values: CheckedValues | undefined): void {
    this.#reserve();
    setBit(this.#live, row);
    if (!(values instanceof CheckedRow)) return;
    for (const save of this.saves) save.beforeValues(row);
    this.#columns.forEach(({ stored }, i) => {
      stored.set(row, toColumnValues(stored.kind, values.values[i]!), 0);
    });
  }

  /** @internal */
  get(row: number, names: readonly string[] = this.#columns.map(({ name }) => name)): Record<string, unknown> {
    this.#reserve();
    return Object.fromEntries(
      names.map((name) => {
        const { type, stored } = this.#column(name);
        return [name, fromStored(type, storedAt(stored, row))];
      }),
    );
  }

  /** @internal */
  keep(row: number): CheckedValues | undefined {
    this.#reserve();
    return hasBit(this.#live, row) ? new CheckedRow(this.#columns.map(({ stored }) => storedAt(stored, row))) : undefined;
  }

  /** @internal */
  clear(row: number): void {
    this.#reserve();
    for (const save of this.saves) save.beforeValues(row);
    clearBit(this.#live, row);
    for (const { stored } of this.#columns) stored.clear(row);
  }

  /** @internal */
  toMask(filter: object): Uint32Array {
    this.#reserve();
    return compileToMask(parseFilter(filter, this.#table, new Map([[this.#table.name, this.#table]])), this.#table.name, {
      table: () => this.#maskTable,
    });
  }

  /** @internal */
  checkNames(names: readonly string[]): void {
    checkType(Array.isArray(names), "columns", names, "an array of names");
    for (const name of names) this.#column(name);
  }

  /** Names and types, as JSON. */
  get schema(): string {
    return JSON.stringify(this.#columns.map(({ name, type }) => [name, type]));
  }

  /** @internal */
  encode(rows: readonly (number | CheckedValues)[]): string {
    this.#reserve();
    return JSON.stringify(rows.map((row) => (typeof row === "number" ? this.#textsAt(row) : (row as CheckedRow).values.map(storedText))));
  }

  #textsAt(row: number): unknown[] {
    return this.#columns.map(({ stored }) => storedText(storedAt(stored, row)));
  }

  /** @internal */
  decode(text: string): CheckedValues[] {
    try {
      const rows = JSON.parse(text) as unknown[][];
      return rows.map((row) => new CheckedRow(this.#columns.map(({ name, type }, i) => unstoredText(name, type, row[i]))));
    } catch (error) {
      throw new LodestoneError("CORRUPT", "The values in the snapshot cannot be read. Build the index again.", { cause: error });
    }
  }

  /** @internal TextColumns does. */
  searchText(_request: TextSearch, _shard: VectorShard): TextSearchResult {
    throw withoutWords();
  }

  /** @internal */
  async searchTextHeld(_request: TextSearch, _vectors: HeldVectors): Promise<TextSearchResult> {
    throw withoutWords();
  }

  /** Bytes that the values take, an estimate. */
  get memoryBytes(): number {
    return this.#live.byteLength + this.#columns.reduce((bytes, { stored }) => bytes + stored.memoryBytes, 0);
  }

  get #directory(): RowDirectory {
    if (this.#rows === undefined) throw new TypeError("These columns belong to no index yet; give them to VectorIndex.create.");
    return this.#rows;
  }

  #column(name: string): Column {
    const column = this.#columns.find((own) => own.name === name);
    if (column === undefined) {
      const names = this.#columns.map((own) => own.name);
      throw new LodestoneError("INVALID", `There is no column ${quoted(name)}; the index has ${quotedNames(names, "none")}.`);
    }
    return column;
  }

  /** The directory grows when it has to. */
  #reserve(): void {
    const { capacity } = this.#directory;
    if (this.#live.length * 32 >= capacity && this.#live.length > 0) return;
    this.#live = growMask(this.#live, Math.max(capacity, 1));
    for (const { stored } of this.#columns) stored.reserve(this.#live.length * 32);
  }
}

function storedAt(column: StoredColumn, row: number): Stored {
  const values = column.get([row]);
  return values.kind === "vector" ? null : (values.values[0] as Stored);
}

function withoutWords(): TypeError {
  return new TypeError("A search for words needs TextColumns in place of Columns.");
}

function isText(name: string): boolean {
  return !/\p{Surrogate}|\0/u.test(name);
}
