/**
 * Units of work that wait for the embedded session. Reads that others wait for (the change feed's) go first; after one
 * that took a while, and after a long turn, those who wait go first for as long as it took. The rest is scheduled by start-time fair queueing
 * between callers, charged with the time that each unit had the session. So a caller with a thousand units does not delay
 * the next unit of others.
 *
 * Long units. A running unit cannot be suspended, only rolled back and run again. A unit that has had the
 * session for TURN_MS makes way for the first other caller who comes (`mustBePreempted`) and is put back
 * (`putBack`). Later it gets a long turn, in which it runs to its end; time-limit.ts ends it when it is too long for
 * those who wait. After a long turn of length t the same caller's next one is at least 9 t and at least
 * LEAST_LONG_REST_MS away, and anybody else's at least t. So one caller's long units delay few requests of others
 * and still complete. The caller's short units continue as before. A caller who is alone is never cut short and
 * never rests.
 *
 * After every unit that took a while its caller rests for as long as the unit took, if any other caller was
 * there recently. So others find the session free for as long as they found it taken, even if they come a
 * moment later.
 */
import { FairQueue } from "../../../fairness/fair-queue.ts";
import { TURN_MS } from "./time-limit.ts";

export interface Waiting {
  /** The caller of the request; "" is the service itself, which never rests and never makes way. */
  readonly caller: string;
  readonly isUrgent: boolean;
  /** It has made way before. */
  isLong?: boolean;
}

/** A unit shorter than this is not noticed. */
const NOTICED_MS = 50;
const LONGEST_REST_MS = 10_000;
/** After a unit that cost the session. */
const LONGEST_LOST_REST_MS = 30_000;
const LEAST_LONG_REST_MS = 6_000;
const LONG_REST_FACTOR = 9;
/** A long unit lets others go first for this long, if they keep coming. */
const PATIENCE_MS = 1_000;
/** A caller seen within this time counts as recent. */
const LATE_MS = 2_000;
/** While long units wait, how often to check whether their caller is alone. */
const LOOK_MS = 1_000;

export class UnitQueue<Unit extends Waiting> {
  readonly #urgent: Unit[] = [];
  readonly #fair = new FairQueue<Unit>();
  readonly #long = new FairQueue<Unit>();
  readonly #seenAt = new Map<string, number>();
  readonly #restsUntil = new Map<string, number>();
  readonly #longRestsUntil = new Map<string, number>();
  /** Until then an urgent unit lets go first who waits. */
  #urgentRestsUntil = 0;
  /** No long turn begins before this time. */
  #pauseUntil = 0;
  /** From this time on long units go first. */
  #longFirstAt = 0;
  #running: { readonly unit: Unit; readonly startedAt: number; readonly isLongTurn: boolean } | null = null;
  readonly #now: () => number;
  #isDraining = false;

  /** @param now  milliseconds of a clock that is never set back; replaced in tests. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get size(): number {
    return this.#urgent.length + this.#fair.size + this.#long.size;
  }

  push(unit: Unit): void {
    if (unit.isUrgent) this.#urgent.unshift(unit);
    else {
      this.#fair.push(unit.caller, unit);
      if (unit.caller !== "") this.#seenAt.set(unit.caller, this.#now());
    }
  }

  /** Queues a unit again that has made way and was rolled back. */
  putBack(unit: Unit): void {
    unit.isLong = true;
    if (this.#long.size === 0) this.#longFirstAt = this.#now() + PATIENCE_MS;
    this.#long.push(unit.caller, unit);
  }

  /** Removes a unit that does not want to wait any longer. */
  delete(unit: Unit): void {
    const index = this.#urgent.indexOf(unit);
    if (index >= 0) this.#urgent.splice(index, 1);
    else (unit.isLong ? this.#long : this.#fair).delete(unit.caller, unit);
  }

  /**
   * The next unit, which counts as running from now on. undefined when nothing waits, or only units of
   * callers who rest: see `restMs`.
   */
  shift(): Unit | undefined {
    const now = this.#now();
    const unit =
      (now >= this.#urgentRestsUntil ? this.#urgent.shift() : undefined) ??
      (now >= this.#longFirstAt && this.#urgent.length === 0 ? this.#longUnit(now) : undefined) ??
      this.#fair.shift(0, (caller) => this.#isRested(caller, now))?.item ??
      this.#urgent.shift() ??
      this.#longUnit(now) ??
      this.#loneUnit();
    if (unit === undefined) return undefined;
    if (unit.isLong === true) this.#longFirstAt = now + PATIENCE_MS;
    this.#running = { unit, startedAt: now, isLongTurn: unit.isLong === true && this.#mayHaveLongTurn(unit.caller, now) };
    return unit;
  }

  /** How many callers were there recently, besides the service itself. */
  get callers(): number {
    this.#forget(this.#now(), 0);
    return this.#seenAt.size;
  }

  /** Whether the running unit has had its turn, and another caller waits. */
  get mustBePreempted(): boolean {
    if (this.#running === null || this.#isDraining) return false;
    const { startedAt, isLongTurn } = this.#running;
    return !isLongTurn && this.#now() - startedAt >= TURN_MS && this.othersWait;
  }

  /**
   * Whether, while a caller's unit runs, another caller waits who may go now and has had less of the session
   * recently.
   */
  get othersWait(): boolean {
    if (this.#running === null) return false;
    const { unit, startedAt } = this.#running;
    if (unit.caller === "" || unit.isUrgent) return false;
    const now = this.#now();
    const had = this.#fair.startOf(unit.caller) + now - startedAt;
    const isOther = (caller: string): boolean => caller !== "" && caller !== unit.caller && this.#fair.startOf(caller) < had;
    return (
      this.#fair.callers().some((caller) => isOther(caller) && this.#isRested(caller, now)) ||
      this.#long.callers().some((caller) => isOther(caller) && this.#mayHaveLongTurn(caller, now))
    );
  }

  /**
   * Whether somebody else is kept waiting by the running unit: another caller, or a read that may be for another
   * caller who was there recently.
   */
  get isWaitedFor(): boolean {
    const caller = this.#running?.unit.caller;
    return this.othersWait || (this.#urgent.length > 0 && [...this.#seenAt.keys()].some((seen) => seen !== caller));
  }

  /** Time until some waiting unit may go, if all of them rest now. */
  get restMs(): number {
    const now = this.#now();
    let until = now + (this.#long.size > 0 ? LOOK_MS : LONGEST_REST_MS);
    for (const [caller, rest] of this.#restsUntil) if (this.#fair.sizeOf(caller) > 0) until = Math.min(until, rest);
    for (const caller of this.#long.callers()) until = Math.min(until, this.#longTurnAt(caller));
    return Math.max(0, until - now);
  }

  /** How long from now a unit of this caller must wait for a long turn. */
  longRestMs(caller: string): number {
    return Math.max(0, this.#longTurnAt(caller) - this.#now());
  }

  /**
   * Charges the time that a unit had the session; it has ended or was rolled back. Urgent units are free:
   * they serve everybody.
   *
   * @param elapsedMs  with the time that the session took to be as it was before.
   * @param lostSession  the unit could only be ended together with the session: everything of its caller rests,
   *   as after a long turn.
   */
  charge({ caller, isUrgent }: Unit, elapsedMs: number, lostSession = false): void {
    const isLongTurn = lostSession || this.#running?.isLongTurn === true;
    this.#running = null;
    if (!isUrgent) this.#fair.charge(caller, elapsedMs);
    if (elapsedMs < NOTICED_MS) return;
    const now = this.#now();
    this.#forget(now, elapsedMs);
    if ((isUrgent || isLongTurn) && this.#seenAt.size > 1) this.#urgentRestsUntil = now + elapsedMs;
    if (isUrgent || caller === "") return;
    this.#seenAt.set(caller, now);
    if (this.#seenAt.size === 1) return;
    this.#restsUntil.set(
      caller,
      now + (lostSession ? Math.min(LONG_REST_FACTOR * elapsedMs, LONGEST_LOST_REST_MS) : Math.min(elapsedMs, LONGEST_REST_MS)),
    );
    if (!isLongTurn) return;
    this.#longRestsUntil.set(caller, now + Math.max(LEAST_LONG_REST_MS, LONG_REST_FACTOR * elapsedMs));
    this.#pauseUntil = now + elapsedMs;
  }

  /** Nobody rests any more: the database is being closed. */
  drain(): void {
    this.#isDraining = true;
  }

  #longUnit(now: number): Unit | undefined {
    return this.#long.shift(0, (caller) => this.#mayHaveLongTurn(caller, now))?.item;
  }

  /**
   * When nobody else is there, a long unit need not wait for its turn. It makes way again for whoever comes.
   */
  #loneUnit(): Unit | undefined {
    if (this.#long.size === 0) return undefined;
    this.#forget(this.#now(), 0);
    const [caller, ...others] = this.#long.callers();
    const isAlone = others.length === 0 && [...this.#seenAt.keys()].every((seen) => seen === caller);
    return isAlone ? this.#long.shift()?.item : undefined;
  }

  #isRested(caller: string, now: number): boolean {
    return this.#isDraining || (this.#restsUntil.get(caller) ?? 0) <= now;
  }

  #mayHaveLongTurn(caller: string, now: number): boolean {
    return this.#isDraining || this.#longTurnAt(caller) <= now;
  }

  #longTurnAt(caller: string): number {
    return Math.max(this.#pauseUntil, this.#longRestsUntil.get(caller) ?? 0);
  }

  /** Forgets callers who were not there recently, leaving out the time in which nobody could be. */
  #forget(now: number, elapsedMs: number): void {
    for (const [caller, seenAt] of this.#seenAt) {
      if (seenAt + elapsedMs + LATE_MS < now && this.#fair.sizeOf(caller) + this.#long.sizeOf(caller) === 0) this.#seenAt.delete(caller);
    }
    for (const rests of [this.#restsUntil, this.#longRestsUntil])
      for (const [caller, until] of rests) if (until <= now) rests.delete(caller);
  }
}
