/**
 * Units of work that wait for the embedded session. Short reads that others wait for (the change feed's) go first; the rest goes by start-time fair queueing
 * between callers, charged with the time that each unit had the session: a caller with a thousand units, or with long ones, does not hold up the others' next.
 *
 * Nothing that runs can be set aside, so after a long unit its caller rests for as long as that took, if anybody else was there of late: the others find the
 * session free for as long as they found it taken, also when they come a moment later. Who is alone never rests.
 */
import { FairQueue } from "../../../fairness/fair-queue.ts";

export interface Waiting {
  /** The request's caller; "" is the service itself, which never rests. */
  readonly caller: string;
  readonly isUrgent: boolean;
}

/** Of a unit that nobody notices. */
const LONG_MS = 50;
const LONGEST_REST_MS = 10_000;
/** A caller was there of late. */
const LATE_MS = 2_000;

export class UnitQueue<Unit extends Waiting> {
  readonly #urgent: Unit[] = [];
  readonly #fair = new FairQueue<Unit>();
  readonly #seenAt = new Map<string, number>();
  readonly #restsUntil = new Map<string, number>();
  readonly #now: () => number;
  #isHurried = false;

  /** @param now  milliseconds of a clock that is never set; for tests. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get size(): number {
    return this.#urgent.length + this.#fair.size;
  }

  push(unit: Unit): void {
    if (unit.isUrgent) this.#urgent.unshift(unit);
    else {
      this.#fair.push(unit.caller, unit);
      if (unit.caller !== "") this.#seenAt.set(unit.caller, this.#now());
    }
  }

  /** One that does not want to wait any longer. */
  delete(unit: Unit): void {
    const index = this.#urgent.indexOf(unit);
    if (index >= 0) this.#urgent.splice(index, 1);
    else this.#fair.delete(unit.caller, unit);
  }

  /** undefined when nothing waits, or only of callers who rest: see `restMs`. */
  shift(): Unit | undefined {
    const now = this.#now();
    return this.#urgent.shift() ?? this.#fair.shift(0, (caller) => this.#isHurried || (this.#restsUntil.get(caller) ?? 0) <= now)?.item;
  }

  /** When something that waits may go, if all of it rests now. */
  get restMs(): number {
    let least = LONGEST_REST_MS;
    for (const [caller, until] of this.#restsUntil) if (this.#fair.sizeOf(caller) > 0) least = Math.min(least, until - this.#now());
    return Math.max(0, least);
  }

  /** What the unit had of the session. Urgent ones serve everybody. */
  charge({ caller, isUrgent }: Unit, elapsedMs: number): void {
    if (isUrgent) return;
    this.#fair.charge(caller, elapsedMs);
    if (caller === "" || elapsedMs < LONG_MS) return;
    const now = this.#now();
    for (const [other, seenAt] of this.#seenAt)
      if (seenAt + elapsedMs + LATE_MS < now && this.#fair.sizeOf(other) === 0) this.#seenAt.delete(other);
    for (const [other, until] of this.#restsUntil) if (until <= now) this.#restsUntil.delete(other);
    this.#seenAt.set(caller, now);
    if (this.#seenAt.size > 1) this.#restsUntil.set(caller, now + Math.min(elapsedMs, LONGEST_REST_MS));
  }

  /** Nobody rests any more: the database is being closed. */
  hurry(): void {
    this.#isHurried = true;
  }
}
