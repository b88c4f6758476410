/**
 * Runs units of work on the embedded session, one at a time, in the order that the queue decides.
 *
 *   idle ── push ──> running ── nothing waits ──> idle
 *                    ^     └── all who wait rest ──> resting
 *                    └────────── push, or rested ────────┘
 *
 * Group commit. While more units wait, a short one that writes may leave its commit unsynced; it and all that run after it are
 * answered, in their order, once a later commit or a sync of its own has brought it to the disk. That is before anything runs that
 * may take long, when nothing waits, and after MOST_HELD units or LONGEST_HOLD_MS.
 */
import type { LodestoneError } from "../../../errors/lodestone-error.ts";
import type { EmbeddedSession } from "./embedded-session.ts";
import { COMMIT_LIMIT_MS, TURN_MS, type Turn, withTimeLimit } from "./time-limit.ts";
import { PREEMPTED, queueUnit, type Settlement, type Unit, type UnitOptions, type Work } from "./unit.ts";
import { UnitQueue } from "./unit-queue.ts";

export interface UnitHost {
  /** Rejects when there is none at the moment. */
  session(): Promise<EmbeddedSession>;
  /** Why a unit that writes may not run now; null when it may. */
  writeRefusal(): LodestoneError | null;
  /** Between two units; the next one waits for it. */
  lookAfter(session: EmbeddedSession): Promise<void>;
}

type State =
  | { readonly is: "idle" }
  | { readonly is: "running"; readonly done: Promise<void> }
  | { readonly is: "resting"; readonly timer: NodeJS.Timeout };

/** Units whose answers wait for one sync. */
const MOST_HELD = 64;
const LONGEST_HOLD_MS = 10;

/** Units that have run, of one session; their answers wait. */
interface Held {
  readonly session: EmbeddedSession;
  readonly settlements: Settlement[];
  readonly sinceMs: number;
}

export class UnitLoop {
  readonly #host: UnitHost;
  readonly #queue = new UnitQueue<Unit>();
  readonly #turn: Turn;
  #state: State = { is: "idle" };
  #held: Held | undefined;

  /** @param longestMs  a unit that has run for this long is ended for good when others wait, whether it computes or not. */
  constructor(host: UnitHost, longestMs: number) {
    this.#host = host;
    this.#turn = { cut: null, isWaitedFor: () => this.#queue.isWaitedFor, othersWait: () => this.#queue.othersWait, longestMs };
  }

  /** Units that have not begun. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** How many callers were there recently, besides the service itself. */
  get callers(): number {
    return this.#queue.callers;
  }

  push<Result>(work: Work<Result>, options?: UnitOptions): Promise<Result> {
    const result = queueUnit(this.#queue, work, options);
    this.#run();
    this.#preempt();
    return result;
  }

  /** Resolves when nothing waits any more; from now on nobody rests and nobody makes way. */
  async finish(): Promise<void> {
    this.#queue.drain();
    this.#run();
    if (this.#state.is === "running") await this.#state.done;
  }

  #run(): void {
    if (this.#state.is === "running") return;
    if (this.#state.is === "resting") clearTimeout(this.#state.timer);
    this.#state = { is: "running", done: this.#drain() };
  }

  async #drain(): Promise<void> {
    await null; // so that the state is set before the first unit may finish
    for (;;) {
      const unit = this.#queue.shift();
      if (unit !== undefined) await this.#runUnit(unit);
      else if (this.#held !== undefined) await this.#syncHeld();
      else break;
    }
    // Every unit that still waits belongs to a caller who rests.
    this.#state = this.#queue.size === 0 ? { is: "idle" } : { is: "resting", timer: setTimeout(() => this.#run(), this.#queue.restMs) };
  }

  async #runUnit(unit: Unit): Promise<void> {
    if (!unit.isShort) await this.#syncHeld();
    const refusal = unit.writes ? this.#host.writeRefusal() : null;
    if (refusal !== null) return unit.refuse(refusal);
    let session: EmbeddedSession;
    try {
      session = await this.#host.session();
    } catch (error) {
      return unit.refuse(error as Error);
    }
    // Those before were of a session that is gone: this one's commits say nothing about theirs.
    if (this.#held !== undefined && this.#held.session !== session) await this.#syncHeld();
    const startedAt = performance.now();
    const turnTimer = setTimeout(() => this.#preempt(), TURN_MS + 1);
    const mayDefer = unit.isShort && unit.writes && this.#mayHold;
    if (mayDefer) session.mayDeferSync = true;
    const settlement = await unit.run(session, this.#turn);
    if (mayDefer) session.mayDeferSync = false;
    clearTimeout(turnTimer);
    const lostSession = session.failure !== null;
    if (settlement !== undefined) this.#settle(session, settlement);
    if (!this.#mayHold || lostSession || session.isInDoubt) await this.#syncHeld();
    // It may open the session again.
    if (this.#held === undefined) await this.#host.lookAfter(session);
    // What the unit has made of the session is its caller's to pay for, the next one's opening included.
    if (lostSession) await this.#host.session().catch(() => {});
    this.#queue.charge(unit, performance.now() - startedAt, lostSession);
  }

  /** Whether an answer may wait for the units behind it. */
  get #mayHold(): boolean {
    if (this.#queue.size === 0) return false;
    if (this.#held === undefined) return true;
    return this.#held.settlements.length < MOST_HELD && performance.now() - this.#held.sinceMs < LONGEST_HOLD_MS;
  }

  /** Answers now, or once all that the answer may rest on is on disk. */
  #settle(session: EmbeddedSession, settlement: Settlement): void {
    if (session.isUnsynced) {
      this.#held ??= { session, settlements: [], sinceMs: performance.now() };
      this.#held.settlements.push(settlement);
      return;
    }
    // Its own commit has synced the log for all.
    this.#answerHeld();
    settlement.answer();
  }

  #answerHeld(): void {
    const held = this.#held;
    this.#held = undefined;
    for (const settlement of held?.settlements ?? []) settlement.answer();
  }

  async #syncHeld(): Promise<void> {
    if (this.#held === undefined) return;
    const { session, settlements } = this.#held;
    try {
      await withTimeLimit(session, { limitMs: COMMIT_LIMIT_MS }, () => session.sync());
      this.#answerHeld();
    } catch (error) {
      this.#held = undefined;
      for (const settlement of settlements) settlement.fail(session.failure ?? error);
    }
  }

  /** Preempts the unit that runs when it is another caller's turn; it waits for another turn. */
  #preempt(): void {
    if (this.#queue.mustBePreempted) this.#turn.cut?.(PREEMPTED);
  }
}
