/**
 * Whose turn it is: the one queue behind everything that callers have to share in time (statements of the
 * embedded database, searches, slices of the event loop). Below every layer. Within a caller first in, first
 * out; between callers, whoever has had least recently.
 *
 * Start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996) with equal weights:
 * each caller has a virtual time that grows by what its work cost; the caller with the least goes first, and
 * one that comes back after a pause begins at the virtual time of now, so that nobody saves up. While only one
 * caller waits it has everything.
 */

interface Flow<Item> {
  /** Virtual time at which its next item begins. */
  start: number;
  readonly waiting: Set<Item>;
}

export class FairQueue<Item extends object> {
  readonly #flows = new Map<string, Flow<Item>>();
  #now = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** How many of this caller wait. */
  sizeOf(caller: string): number {
    return this.#flows.get(caller)?.waiting.size ?? 0;
  }

  /** Of which something waits. */
  callers(): string[] {
    if (this.#size === 0) return [];
    return [...this.#flows].filter(([, flow]) => flow.waiting.size > 0).map(([caller]) => caller);
  }

  /** Virtual time at which the caller's next item begins. */
  startOf(caller: string): number {
    return Math.max(this.#flows.get(caller)?.start ?? 0, this.#now);
  }

  push(caller: string, item: Item): void {
    const flow = this.#flow(caller);
    if (flow.waiting.size === 0) flow.start = Math.max(flow.start, this.#now);
    flow.waiting.add(item);
    this.#size++;
  }

  /** Takes out one that does not want to wait any longer. False when it is not (any more) in the queue. */
  delete(caller: string, item: Item): boolean {
    if (this.#flows.get(caller)?.waiting.delete(item) !== true) return false;
    this.#size--;
    this.#forget(caller);
    return true;
  }

  /**
   * The next item, with its caller. Cost: linear in the callers that wait, or that had more than their share a moment ago.
   *
   * @param expectedCost  charged at once, for work that runs beside what is taken next; `charge` corrects it.
   * @param mayGo  of which callers something may be taken.
   */
  shift(expectedCost = 0, mayGo: (caller: string) => boolean = () => true): { readonly caller: string; readonly item: Item } | undefined {
    let caller: string | undefined;
    let first: Flow<Item> | undefined;
    for (const [name, flow] of this.#flows) {
      if (flow.waiting.size === 0 || (first !== undefined && first.start <= flow.start) || !mayGo(name)) continue;
      [caller, first] = [name, flow];
    }
    if (caller === undefined || first === undefined) return undefined;
    const item = first.waiting.values().next().value as Item;
    first.waiting.delete(item);
    this.#size--;
    this.#now = Math.max(this.#now, first.start);
    first.start += expectedCost;
    // Equals take turns: who was served stands behind the others.
    this.#flows.delete(caller);
    this.#flows.set(caller, first);
    return { caller, item };
  }

  /** What the caller's work has cost, in any one measure for all; less than nothing gives back what was expected too high. */
  charge(caller: string, cost: number): void {
    const flow = this.#flow(caller);
    flow.start = Math.max(flow.start, this.#now) + cost;
    this.#forget(caller);
  }

  /** Empties the queue. */
  *drain(): Generator<Item, void, undefined> {
    for (let next = this.shift(); next !== undefined; next = this.shift()) yield next.item;
  }

  #flow(caller: string): Flow<Item> {
    let flow = this.#flows.get(caller);
    if (flow === undefined) {
      flow = { start: this.#now, waiting: new Set() };
      this.#flows.set(caller, flow);
      if (this.#flows.size % 64 === 0) for (const other of [...this.#flows.keys()]) if (other !== caller) this.#forget(other);
    }
    return flow;
  }

  /** A caller who waits for nothing and owes nothing is one like any other. */
  #forget(caller: string): void {
    const flow = this.#flows.get(caller);
    if (flow !== undefined && flow.waiting.size === 0 && flow.start <= this.#now) this.#flows.delete(caller);
  }
}
