/** Columns held in typed arrays. Rows beyond what was set are null. */
import { clearBit, hasBit, maskWords, setBit } from "../filter/bit-mask.ts";
import type { BoolColumn, FloatColumn, VectorColumn, WideColumn } from "../filter/mask-table.ts";
import { type ColumnValues, mismatch } from "./column-values.ts";

/** Arrays grow by doubling, so that adding rows one by one stays linear. */
export function grownLength(length: number, needed: number): number {
  return needed <= length ? length : Math.max(needed, 2 * length, 64);
}

export function growMask(mask: Uint32Array<ArrayBuffer>, rows: number): Uint32Array<ArrayBuffer> {
  const words = grownLength(mask.length, maskWords(rows));
  if (words === mask.length) return mask;
  const grown = new Uint32Array(words);
  grown.set(mask);
  return grown;
}

export class WideNumberColumn<Kind extends "int" | "datetime"> implements WideColumn<Kind> {
  readonly kind: Kind;
  present = new Uint32Array(0);
  #values = new BigInt64Array(0);
  words = new Int32Array(0);

  constructor(kind: Kind) {
    this.kind = kind;
  }

  reserve(rows: number): void {
    this.present = growMask(this.present, rows);
    const length = grownLength(this.#values.length, rows);
    if (length === this.#values.length) return;
    const grown = new BigInt64Array(length);
    grown.set(this.#values);
    this.#values = grown;
    this.words = new Int32Array(grown.buffer);
  }

  set(row: number, from: ColumnValues, i: number): void {
    if (from.kind !== this.kind) throw mismatch(this.kind, from);
    const value = (from as Extract<ColumnValues, { kind: "int" | "datetime" }>).values[i]!;
    if (value === null) clearBit(this.present, row);
    else {
      this.#values[row] = value;
      setBit(this.present, row);
    }
  }

  get(rows: readonly number[]): ColumnValues {
    return { kind: this.kind, values: rows.map((row) => (hasBit(this.present, row) ? this.#values[row]! : null)) };
  }

  clear(row: number): void {
    clearBit(this.present, row);
  }

  get memoryBytes(): number {
    return this.#values.byteLength + this.present.byteLength;
  }
}

export class NumberColumn implements FloatColumn {
  readonly kind = "float";
  present = new Uint32Array(0);
  values = new Float64Array(0);

  reserve(rows: number): void {
    this.present = growMask(this.present, rows);
    const length = grownLength(this.values.length, rows);
    if (length === this.values.length) return;
    const grown = new Float64Array(length);
    grown.set(this.values);
    this.values = grown;
  }

  set(row: number, from: ColumnValues, i: number): void {
    if (from.kind !== "float") throw mismatch(this.kind, from);
    const value = from.values[i]!;
    if (value === null) clearBit(this.present, row);
    else {
      this.values[row] = value;
      setBit(this.present, row);
    }
  }

  get(rows: readonly number[]): ColumnValues {
    return { kind: "float", values: rows.map((row) => (hasBit(this.present, row) ? this.values[row]! : null)) };
  }

  clear(row: number): void {
    clearBit(this.present, row);
  }

  get memoryBytes(): number {
    return this.values.byteLength + this.present.byteLength;
  }
}

export class FlagColumn implements BoolColumn {
  readonly kind = "bool";
  present = new Uint32Array(0);
  values = new Uint32Array(0);

  reserve(rows: number): void {
    this.present = growMask(this.present, rows);
    this.values = growMask(this.values, rows);
  }

  set(row: number, from: ColumnValues, i: number): void {
    if (from.kind !== "bool") throw mismatch(this.kind, from);
    const value = from.values[i]!;
    if (value === null) clearBit(this.present, row);
    else {
      setBit(this.present, row);
      if (value) setBit(this.values, row);
      else clearBit(this.values, row);
    }
  }

  get(rows: readonly number[]): ColumnValues {
    return { kind: "bool", values: rows.map((row) => (hasBit(this.present, row) ? hasBit(this.values, row) : null)) };
  }

  clear(row: number): void {
    clearBit(this.present, row);
  }

  get memoryBytes(): number {
    return this.values.byteLength + this.present.byteLength;
  }
}

/** Whether a row has a vector; the vectors themselves are the index's. */
export class PresenceColumn implements VectorColumn {
  readonly kind = "vector";
  present = new Uint32Array(0);

  reserve(rows: number): void {
    this.present = growMask(this.present, rows);
  }

  /** Vectors are set apart from the other columns (`mark`). */
  set(): void {}

  mark(row: number): void {
    setBit(this.present, row);
  }

  get(): ColumnValues {
    throw new TypeError("Vectors are read from their index.");
  }

  clear(row: number): void {
    clearBit(this.present, row);
  }

  get memoryBytes(): number {
    return this.present.byteLength;
  }
}
