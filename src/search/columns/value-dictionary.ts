/** Distinct values of a column with the number of rows that have each; a code that nobody has is given to the next new value. */
import type { Dictionary } from "../../filter/mask-table.ts";

export class ValueDictionary implements Dictionary {
  readonly values: (string | undefined)[] = [];
  readonly #codes = new Map<string, number>();
  readonly #uses: number[] = [];
  readonly #free: number[] = [];
  #characters = 0;

  codeOf(value: string): number | undefined {
    return this.#codes.get(value);
  }

  /** The code of the value for one more row. */
  acquire(value: string): number {
    const known = this.#codes.get(value);
    if (known !== undefined) {
      this.#uses[known]!++;
      return known;
    }
    const code = this.#free.pop() ?? this.values.length;
    this.values[code] = value;
    this.#uses[code] = 1;
    this.#codes.set(value, code);
    this.#characters += value.length;
    return code;
  }

  /** One row less has it. */
  release(code: number): void {
    if (--this.#uses[code]! > 0) return;
    const value = this.values[code]!;
    this.#codes.delete(value);
    this.values[code] = undefined;
    this.#free.push(code);
    this.#characters -= value.length;
  }

  /** An estimate: two bytes a character at most, and what the map and the arrays take per value. */
  get memoryBytes(): number {
    return 2 * this.#characters + 80 * this.values.length;
  }
}
