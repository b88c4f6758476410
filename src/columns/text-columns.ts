/**
 * Columns whose values are in a dictionary: text, links, JSON documents and arrays of text. The dictionary has
 * the distinct values of a column, with the number of rows that have each. A code that no row uses any more is
 * given to the next new value.
 */
import type { CodedColumn, Dictionary, MultipleColumn } from "../filter/mask-table.ts";
import { type ColumnValues, mismatch, type Omissible } from "./column-values.ts";
import { grownLength } from "./number-columns.ts";

const NULL_CODE = -1;

/** For a column whose values can have any size: the rows whose value the feed omits. */
class Omissions {
  readonly rows = new Set<number>();

  /** What the feed says of value `i`, for `row`. */
  set(row: number, from: Omissible, i: number): void {
    if (from.omitted?.has(i) === true) this.rows.add(row);
    else this.clear(row);
  }

  /** As `set` takes it. */
  get(rows: readonly number[]): Omissible {
    if (this.rows.size === 0) return {};
    return { omitted: new Set([...rows.keys()].filter((i) => this.rows.has(rows[i]!))) };
  }

  clear(row: number): void {
    if (this.rows.size > 0) this.rows.delete(row);
  }
}

export class TextColumn<Kind extends "text" | "json"> implements CodedColumn<Kind> {
  readonly kind: Kind;
  readonly dictionary = new ValueDictionary();
  codes = new Int32Array(0);
  readonly #omissions = new Omissions();

  constructor(kind: Kind) {
    this.kind = kind;
  }

  get omitted(): ReadonlySet<number> {
    return this.#omissions.rows;
  }

  reserve(rows: number): void {
    const length = grownLength(this.codes.length, rows);
    if (length === this.codes.length) return;
    const grown = new Int32Array(length).fill(NULL_CODE, this.codes.length);
    grown.set(this.codes);
    this.codes = grown;
  }

  set(row: number, from: ColumnValues, i: number): void {
    if (from.kind !== this.kind) throw mismatch(this.kind, from);
    const value = (from as Extract<ColumnValues, { kind: "text" | "json" }>).values[i]!;
    const before = this.codes[row]!;
    // Acquired before the old one is released: an unchanged value keeps its code.
    this.codes[row] = value === null ? NULL_CODE : this.dictionary.acquire(value);
    if (before !== NULL_CODE) this.dictionary.release(before);
    this.#omissions.set(row, from as Omissible, i);
  }

  get(rows: readonly number[]): ColumnValues {
    const { values } = this.dictionary;
    return { kind: this.kind, values: rows.map((row) => values[this.codes[row]!] ?? null), ...this.#omissions.get(rows) };
  }

  clear(row: number): void {
    this.#omissions.clear(row);
    const before = this.codes[row]!;
    if (before === NULL_CODE) return;
    this.codes[row] = NULL_CODE;
    this.dictionary.release(before);
  }

  get memoryBytes(): number {
    return this.codes.byteLength + this.dictionary.memoryBytes;
  }
}

export class ItemsColumn implements MultipleColumn {
  readonly kind = "multiple";
  readonly dictionary = new ValueDictionary();
  readonly items: (Int32Array | undefined)[] = [];
  #itemCount = 0;
  readonly #omissions = new Omissions();

  get omitted(): ReadonlySet<number> {
    return this.#omissions.rows;
  }

  reserve(rows: number): void {
    // A dense array, so that V8 keeps it as one.
    while (this.items.length < rows) this.items.push(undefined);
  }

  set(row: number, from: ColumnValues, i: number): void {
    if (from.kind !== "multiple") throw mismatch(this.kind, from);
    const values = from.values[i]!;
    const codes =
      values === null ? undefined : Int32Array.from(values, (value) => (value === null ? NULL_CODE : this.dictionary.acquire(value)));
    this.clear(row);
    this.items[row] = codes;
    this.#itemCount += codes?.length ?? 0;
    this.#omissions.set(row, from, i);
  }

  get(rows: readonly number[]): ColumnValues {
    const { values } = this.dictionary;
    return {
      kind: "multiple",
      values: rows.map((row) => {
        const codes = this.items[row];
        return codes === undefined ? null : Array.from(codes, (code) => values[code] ?? null);
      }),
      ...this.#omissions.get(rows),
    };
  }

  clear(row: number): void {
    this.#omissions.clear(row);
    const before = this.items[row];
    if (before === undefined) return;
    for (const code of before) if (code !== NULL_CODE) this.dictionary.release(code);
    this.#itemCount -= before.length;
    this.items[row] = undefined;
  }

  get memoryBytes(): number {
    return 100 * this.items.length + 4 * this.#itemCount + this.dictionary.memoryBytes;
  }
}

/** A Map holds 2²⁴ entries at most; beyond that there is a second one, and so on. */
const ENTRIES_PER_MAP = 2 ** 23;

export class ValueDictionary implements Dictionary {
  readonly values: (string | undefined)[] = [];
  /** Each value is in one of them. */
  readonly #maps = [new Map<string, number>()];
  readonly #entriesPerMap: number;
  readonly #uses: number[] = [];
  readonly #free: number[] = [];
  #characters = 0;

  /** @param entriesPerMap  for tests. */
  constructor(entriesPerMap = ENTRIES_PER_MAP) {
    this.#entriesPerMap = entriesPerMap;
  }

  codeOf(value: string): number | undefined {
    for (const codes of this.#maps) {
      const code = codes.get(value);
      if (code !== undefined) return code;
    }
    return undefined;
  }

  /** Counts one more row with the value, and returns its code. */
  acquire(value: string): number {
    const known = this.codeOf(value);
    if (known !== undefined) {
      this.#uses[known]!++;
      return known;
    }
    const code = this.#free.pop() ?? this.values.length;
    this.values[code] = value;
    this.#uses[code] = 1;
    this.#roomyMap().set(value, code);
    this.#characters += value.length;
    return code;
  }

  /** Counts one row less. */
  release(code: number): void {
    if (--this.#uses[code]! > 0) return;
    const value = this.values[code]!;
    for (const codes of this.#maps) if (codes.delete(value)) break;
    this.values[code] = undefined;
    this.#free.push(code);
    this.#characters -= value.length;
  }

  #roomyMap(): Map<string, number> {
    let map = this.#maps.find(({ size }) => size < this.#entriesPerMap);
    if (map === undefined) {
      map = new Map();
      this.#maps.push(map);
    }
    return map;
  }

  /** An estimate: at most two bytes a character, plus what the map and the arrays take for each value. */
  get memoryBytes(): number {
    return 2 * this.#characters + 80 * this.values.length;
  }
}
