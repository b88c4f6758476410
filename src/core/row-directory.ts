/**
 * Maps ids to rows. Several indexes (the vector columns of one table) may share one directory, so that one
 * row mask serves them all. Rows are small integers; a released row is assigned to the next new id.
 *
 * Invariant: no attached index holds a vector at a row that has no id. Room for 4 billion rows and 16 GiB of
 * ids; see id-table.ts.
 */
import { IdTable, LONE_SURROGATE } from "./id-table.ts";

/** What an index provides to the directory that it shares. */
export interface RowHolder {
  /** Discards whatever it holds at `row`. */
  clearRow(row: number): void;
}

export class RowDirectory {
  readonly #ids = new IdTable();
  /** Rows below the capacity that have no id, most recently released last. */
  readonly #free: number[] = [];
  readonly #holders = new Set<RowHolder>();

  /** Number of ids. */
  get size(): number {
    return this.#ids.size;
  }

  /** All rows are below this: a row mask has Math.ceil(capacity / 32) words. It grows and never shrinks. */
  get capacity(): number {
    return this.#ids.capacity;
  }

  /** Bytes held for ids and rows. */
  get memoryBytes(): number {
    return this.#ids.memoryBytes;
  }

  /** @throws {TypeError} when id is not a string. */
  rowOf(id: string): number | undefined {
    if (typeof id !== "string") throw notText(id);
    return this.#ids.rowOf(id);
  }

  idOf(row: number): string | undefined {
    return this.#ids.idOf(row);
  }

  /**
   * The row of `id`. An unknown id is assigned one: the row released last, otherwise a new one.
   *
   * @throws {TypeError} when id is not a string, {RangeError} when it has a lone surrogate (which has no
   *   place in code point order).
   */
  add(id: string): number {
    const known = this.rowOf(id);
    if (known !== undefined) return known;
    checkId(id);
    const row = this.#free.at(-1) ?? this.#ids.capacity;
    this.#ids.set(row, id);
    this.#free.pop();
    return row;
  }

  /**
   * Assigns rows to ids as they were when an image was written: rows in ascending order, all above those that were assigned
   * before. Rows between them are free. An id that comes twice has the later row. @internal
   */
  restore(ids: readonly string[], rows: ArrayLike<number>): void {
    for (const [i, id] of ids.entries()) {
      this.release(id);
      for (let row = this.#ids.capacity; row < rows[i]!; row++) this.#free.push(row);
      this.#ids.set(rows[i]!, id);
    }
  }

  /** Makes room at once, so that each of the next ids takes as long as the others. @param ids  how many there will be. @internal */
  reserve(ids: number): void {
    this.#ids.reserve(ids);
  }

  /**
   * Removes `id`, frees its row, and clears that row in every attached index. @returns whether the id
   * existed.
   */
  release(id: string): boolean {
    const row = this.rowOf(id);
    if (row === undefined) return false;
    for (const holder of this.#holders) holder.clearRow(row);
    this.#ids.delete(id);
    this.#free.push(row);
    return true;
  }

  /** Whether the id at `rowA` sorts before the id at `rowB`, by code points. */
  isBefore(rowA: number, rowB: number): boolean {
    return this.#ids.isBefore(rowA, rowB);
  }

  /** Pairs [id, row], in row order. */
  *entries(): IterableIterator<[string, number]> {
    for (let row = 0; row < this.#ids.capacity; row++) {
      const id = this.#ids.idOf(row);
      if (id !== undefined) yield [id, row];
    }
  }

  /** The last id first, as rows that are released last are assigned first. @internal */
  *idsFromLast(): IterableIterator<[string, number]> {
    for (let row = this.#ids.capacity - 1; row >= 0; row--) {
      const id = this.#ids.idOf(row);
      if (id !== undefined) yield [id, row];
    }
  }

  /** @internal Registers an index that shares the directory, to be told of released rows. */
  attach(holder: RowHolder): void {
    this.#holders.add(holder);
  }

  /** @internal */
  detach(holder: RowHolder): void {
    this.#holders.delete(holder);
  }
}

/** @throws {TypeError | RangeError} for a value that cannot be an id. */
export function checkId(id: string): void {
  if (typeof id !== "string") throw notText(id);
  if (LONE_SURROGATE.test(id)) {
    throw new RangeError(`id ${JSON.stringify(id)} has a lone surrogate; ids are well-formed Unicode (see String.prototype.toWellFormed).`);
  }
}

function notText(id: unknown): TypeError {
  return new TypeError(`id is of type ${typeof id}; expected a string.`);
}
