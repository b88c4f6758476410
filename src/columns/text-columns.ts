/** Columns whose values are in a dictionary: text, links, JSON documents and arrays of text. */
import type { CodedColumn, MultipleColumn } from "../filter/mask-table.ts";
import type { ColumnValues, Omissible } from "./column-values.ts";
import { mismatch } from "./mismatch.ts";
import { grownLength } from "./number-columns.ts";
import { ValueDictionary } from "./value-dictionary.ts";

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
