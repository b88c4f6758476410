/**
 * Which row belongs to which id. Several indexes (the vector columns of one table) may share one directory, so that one row mask
 * serves them all. Rows are small integers; a released row is given to the next new id.
 *
 * Invariant: `rows` and `ids` are inverse to each other, and no attached index holds a vector at a row that has no id.
 */
import { compareText } from "../code-point-order.ts";

/** What an index gives to the directory that it shares. */
export interface RowHolder {
  /** Forgets whatever it holds at `row`. */
  clearRow(row: number): void;
}

export class RowDirectory {
  readonly #rows = new Map<string, number>();
  readonly #ids: (string | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #holders = new Set<RowHolder>();

  /** How many ids there are. */
  get size(): number {
    return this.#rows.size;
  }

  /** Every row is below this: a row mask has Math.ceil(capacity / 32) words. It grows and never shrinks. */
  get capacity(): number {
    return this.#ids.length;
  }

  rowOf(id: string): number | undefined {
    return this.#rows.get(id);
  }

  idOf(row: number): string | undefined {
    return this.#ids[row];
  }

  /**
   * The row of `id`; an unknown id is given one: the row released last, else a new one.
   *
   * @throws {TypeError} when id is not a string, {RangeError} when it has a lone surrogate (it has no place in code point order).
   */
  add(id: string): number {
    const known = this.#rows.get(id);
    if (known !== undefined) return known;
    checkId(id);
    const row = this.#free.pop() ?? this.#ids.length;
    this.#ids[row] = id;
    this.#rows.set(id, row);
    return row;
  }

  /** Forgets `id`, frees its row, and clears that row in every attached index. @returns whether the id was there. */
  release(id: string): boolean {
    const row = this.#rows.get(id);
    if (row === undefined) return false;
    for (const holder of this.#holders) holder.clearRow(row);
    this.#rows.delete(id);
    this.#ids[row] = undefined;
    this.#free.push(row);
    return true;
  }

  /** Whether the id at `rowA` sorts before the id at `rowB`, by code points. */
  isBefore(rowA: number, rowB: number): boolean {
    return compareText(this.#ids[rowA] ?? "", this.#ids[rowB] ?? "") < 0;
  }

  /** Pairs [id, row], in order of insertion. */
  entries(): IterableIterator<[string, number]> {
    return this.#rows.entries();
  }

  /** @internal An index that shares the directory is told of released rows. */
  attach(holder: RowHolder): void {
    this.#holders.add(holder);
  }

  /** @internal */
  detach(holder: RowHolder): void {
    this.#holders.delete(holder);
  }
}

/** @throws {TypeError | RangeError} for what cannot be an id. */
export function checkId(id: string): void {
  if (typeof id !== "string") throw new TypeError(`id is of type ${typeof id}; expected a string.`);
  if (LONE_SURROGATE.test(id)) {
    throw new RangeError(`id ${JSON.stringify(id)} has a lone surrogate; ids are well-formed Unicode (see String.prototype.toWellFormed).`);
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;
