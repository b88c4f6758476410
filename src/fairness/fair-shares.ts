/**
 * How much of a capacity one caller may hold at once (requests, bytes of bodies, waiting searches, connections
 * to the database). Below every layer.
 *
 * Three quarters are for whoever comes first. The last quarter is kept for callers who hold less than their
 * share, which is an equal part for each caller who holds anything: so one caller can never take everything,
 * and the others find room whatever it does.
 */
export class FairShares {
  readonly #capacity: number;
  readonly #common: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  /** @param kept  of the capacity, for callers who hold less than their share. */
  constructor(capacity: number, kept = Math.floor(capacity / 4)) {
    this.#capacity = capacity;
    this.#common = capacity - kept;
  }

  get total(): number {
    return this.#total;
  }

  /** What a caller can hold while there are no others. */
  get mostAlone(): number {
    return this.#common;
  }

  heldBy(caller: string): number {
    return this.#held.get(caller) ?? 0;
  }

  /** False when that would be too much. */
  take(caller: string, amount = 1): boolean {
    if (!this.hasRoom(caller, amount)) return false;
    this.hold(caller, amount);
    return true;
  }

  /** Like `take`, whether there is room or not. */
  hold(caller: string, amount: number): void {
    this.#held.set(caller, this.heldBy(caller) + amount);
    this.#total += amount;
  }

  hasRoom(caller: string, amount = 1): boolean {
    const total = this.#total + amount;
    if (total <= this.#common) return true;
    if (total > this.#capacity) return false;
    const callers = this.#held.size + (this.#held.has(caller) ? 0 : 1);
    return callers > 1 && this.heldBy(caller) + amount <= this.#capacity / callers;
  }

  give(caller: string, amount = 1): void {
    const left = this.heldBy(caller) - amount;
    if (left > 0) this.#held.set(caller, left);
    else this.#held.delete(caller);
    this.#total -= amount;
  }
}
