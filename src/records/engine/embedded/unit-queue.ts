/**
 * Units of work that wait for the embedded session. Short reads that others wait for (the change feed's) go first; the rest goes by start-time fair queueing
 * between callers, charged with the time that each unit had the session: a caller with a thousand units, or with long ones, does not hold up the others' next.
 */
import { FairQueue } from "../../../fairness/fair-queue.ts";

export interface Waiting {
  /** The request's caller; "" is the service itself. */
  readonly caller: string;
  readonly isUrgent: boolean;
}

export class UnitQueue<Unit extends Waiting> {
  readonly #urgent: Unit[] = [];
  readonly #fair = new FairQueue<Unit>();

  get size(): number {
    return this.#urgent.length + this.#fair.size;
  }

  push(unit: Unit): void {
    if (unit.isUrgent) this.#urgent.unshift(unit);
    else this.#fair.push(unit.caller, unit);
  }

  /** One that does not want to wait any longer. */
  delete(unit: Unit): void {
    const index = this.#urgent.indexOf(unit);
    if (index >= 0) this.#urgent.splice(index, 1);
    else this.#fair.delete(unit.caller, unit);
  }

  shift(): Unit | undefined {
    return this.#urgent.shift() ?? this.#fair.shift()?.item;
  }

  /** What the unit had of the session. Urgent ones serve everybody. */
  charge(unit: Unit, elapsedMs: number): void {
    if (!unit.isUrgent) this.#fair.charge(unit.caller, elapsedMs);
  }
}
