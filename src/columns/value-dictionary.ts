/**
 * The distinct values of a column, with the number of rows that have each. A code that no row uses any more is
 * given to the next new value.
 */
import type { Dictionary } from "../filter/mask-table.ts";

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
