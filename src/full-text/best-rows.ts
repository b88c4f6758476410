/** The best rows so far: a list that is sorted and cut when it has grown to several times the size that is wanted. */

/** Of the records that rows hold. */
export interface RowOrder {
  /** By id, ascending. */
  isBefore(a: number, b: number): boolean;
  /** Whether its record has been deleted since the search began. Absent: nothing changes meanwhile. */
  isGone?(row: number): boolean;
}

export interface BestRow {
  readonly row: number;
  readonly score: number;
  /** Its place in the list that it comes from; NOWHERE where that does not matter. */
  readonly place: number;
}

const NOWHERE = -1;

export class BestRows {
  readonly #size: number;
  readonly #order: RowOrder;
  #rows: BestRow[] = [];
  #least = Number.NEGATIVE_INFINITY;

  constructor(size: number, order: RowOrder) {
    this.#size = size;
    this.#order = order;
  }

  /** Once there are enough: a lower score is not among the best. */
  get least(): number {
    if (this.#rows.length > this.#size) this.#cut();
    return this.#least;
  }

  add(row: number, score: number, place = NOWHERE): void {
    if (score < this.#least) return;
    this.#rows.push({ row, score, place });
    if (this.#rows.length >= 4 * this.#size + 64) this.#cut();
  }

  /** Best first, equal scores by id. Those whose record has been deleted meanwhile are left out. */
  inOrder(): BestRow[] {
    this.#cut();
    return this.#rows.filter(({ row }) => !this.#isGone(row));
  }

  #cut(): void {
    this.#rows.sort((a, b) => b.score - a.score || this.#byId(a.row, b.row));
    this.#rows = this.#rows.slice(0, this.#size);
    if (this.#rows.length === this.#size && this.#size > 0) this.#least = this.#rows.at(-1)!.score;
  }

  #isGone(row: number): boolean {
    return this.#order.isGone?.(row) === true;
  }

  #byId(a: number, b: number): number {
    if (a === b || this.#isGone(a) || this.#isGone(b)) return a - b;
    return this.#order.isBefore(a, b) ? -1 : 1;
  }
}
