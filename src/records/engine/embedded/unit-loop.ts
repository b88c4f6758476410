/**
 * Runs units of work on the embedded session, one at a time, in the order that the queue decides.
 *
 *   idle ── push ──> running ── nothing waits ──> idle
 *                    ^     └── all who wait rest ──> resting
 *                    └────────── push, or rested ────────┘
 */
import type { LodestoneError } from "../../../errors/lodestone-error.ts";
import type { EmbeddedSession } from "./embedded-session.ts";
import { TURN_MS, type Turn } from "./time-limit.ts";
import { PREEMPTED, queueUnit, type Unit, type UnitOptions, type Work } from "./unit.ts";
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

export class UnitLoop {
  readonly #host: UnitHost;
  readonly #queue = new UnitQueue<Unit>();
  readonly #turn: Turn;
  #state: State = { is: "idle" };

  /** @param longestMs  a unit that has run for this long is ended for good when others wait, whether it computes or not. */
  constructor(host: UnitHost, longestMs: number) {
    this.#host = host;
    this.#turn = { cut: null, isWaitedFor: () => this.#queue.isWaitedFor, othersWait: () => this.#queue.othersWait, longestMs };
  }

  /** Units that have not begun. */
  get waiting(): number {
    return this.#queue.size;
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
    for (let unit = this.#queue.shift(); unit !== undefined; unit = this.#queue.shift()) await this.#runUnit(unit);
    // Every unit that still waits belongs to a caller who rests.
    this.#state = this.#queue.size === 0 ? { is: "idle" } : { is: "resting", timer: setTimeout(() => this.#run(), this.#queue.restMs) };
  }

  async #runUnit(unit: Unit): Promise<void> {
    const refusal = unit.writes ? this.#host.writeRefusal() : null;
    if (refusal !== null) return unit.refuse(refusal);
    let session: EmbeddedSession;
    try {
      session = await this.#host.session();
    } catch (error) {
      return unit.refuse(error as Error);
    }
    const startedAt = performance.now();
    const turnTimer = setTimeout(() => this.#preempt(), TURN_MS + 1);
    await unit.run(session, this.#turn);
    clearTimeout(turnTimer);
    const lostSession = session.failure !== null;
    await this.#host.lookAfter(session);
    // What the unit has made of the session is its caller's to pay for, the next one's opening included.
    if (lostSession) await this.#host.session().catch(() => {});
    this.#queue.charge(unit, performance.now() - startedAt, lostSession);
  }

  /** Preempts the unit that runs when it is another caller's turn; it waits for another turn. */
  #preempt(): void {
    if (this.#queue.mustBePreempted) this.#turn.cut?.(PREEMPTED);
  }
}
