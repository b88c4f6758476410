/**
 * Fair queue between callers: the one queue behind every resource that callers share in time (statements of the
 * embedded database, searches, slices of the event loop). Below every layer. One caller's items are first in,
 * first out; between callers, whoever has had least recently goes first.
 *
 * Start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996) with equal weights:
 * each caller has a virtual time that grows by the cost of its work. The caller with the least goes first. One
 * that comes back after a pause begins at the current virtual time, so that nobody can save up time. While only
 * one caller waits, it gets everything.
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

  /** How many items of this caller wait. */
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

  /** Removes an item that gives up waiting. False when it is not, or no longer, in the queue. */
  delete(caller: string, item: Item): boolean {
    if (this.#flows.get(caller)?.waiting.delete(item) !== true) return false;
    this.#size--;
    this.#forget(caller);
    return true;
  }

  /**
   * The next item, with its caller. Cost: linear in the callers that wait, or that had more than their share a moment ago,
   * and in the items that may not go.
   *
   * @param expectedCost  charged at once, for work that runs beside what is taken next; `charge` corrects it.
   * @param mayGo  which items may be taken: those that may not keep their places.
   */
  shift(
    expectedCost = 0,
    mayGo: (caller: string, item: Item) => boolean = () => true,
  ): { readonly caller: string; readonly item: Item } | undefined {
    let next: { readonly caller: string; readonly item: Item; readonly flow: Flow<Item> } | undefined;
    for (const [caller, flow] of this.#flows) {
      if (next !== undefined && next.flow.start <= flow.start) continue;
      for (const item of flow.waiting) {
        if (!mayGo(caller, item)) continue;
        next = { caller, item, flow };
        break;
      }
    }
    if (next === undefined) return undefined;
    const { caller, item, flow: first } = next;
    first.waiting.delete(item);
    this.#size--;
    this.#now = Math.max(this.#now, first.start);
    first.start += expectedCost;
    // Equals take turns: whoever was served goes to the back.
    this.#flows.delete(caller);
    this.#flows.set(caller, first);
    return { caller, item };
  }

  /** Charges the cost of the caller's work, in one unit for all callers; a negative cost corrects an estimate that was too high. */
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

  /** A caller who waits for nothing and owes nothing need not be remembered. */
  #forget(caller: string): void {
    const flow = this.#flows.get(caller);
    if (flow !== undefined && flow.waiting.size === 0 && flow.start <= this.#now) this.#flows.delete(caller);
  }
}
