/**
 * Which rows hold a vector, and by which write each was changed last. In typed arrays by row: a million rows
 * take 9 MB, and setting one is two stores.
 */
const FIRST_ROWS = 64;

export class RowWrites {
  #isLive = new Uint8Array(0);
  /** 0: never, or undone. */
  #writes = new Float64Array(0);
  #size = 0;

  /** Number of rows that hold a vector. */
  get size(): number {
    return this.#size;
  }

  has(row: number): boolean {
    return this.#isLive[row] === 1;
  }

  /** @returns whether the row had no vector before. */
  set(row: number, write: number): boolean {
    if (row >= this.#isLive.length) this.#grow(row + 1);
    const isNew = this.#isLive[row] === 0;
    this.#isLive[row] = 1;
    this.#writes[row] = write;
    if (isNew) this.#size++;
    return isNew;
  }

  clear(row: number, write: number): void {
    if (!this.has(row)) return;
    this.#isLive[row] = 0;
    this.#writes[row] = write;
    this.#size--;
  }

  /** Whether no later write has changed the row. */
  isLast(row: number, write: number): boolean {
    return this.#writes[row] === write;
  }

  #grow(rows: number): void {
    const length = Math.max(rows, 2 * this.#isLive.length, FIRST_ROWS);
    const isLive = new Uint8Array(length);
    isLive.set(this.#isLive);
    const writes = new Float64Array(length);
    writes.set(this.#writes);
    this.#isLive = isLive;
    this.#writes = writes;
  }
}
