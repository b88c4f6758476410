/**
 * Units of work of the embedded engine: a statement or a transaction that waits for the session and then runs
 * on it.
 *
 * A unit cut short with PREEMPTED was rolled back. It waits again, and its caller's budget gets back what it
 * had charged.
 */
import type { AnswerBudget } from "../../../budget/memory-budget.ts";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import type { EmbeddedSession } from "./embedded-session.ts";
import { TURN_MS, type Turn } from "./time-limit.ts";
import type { UnitQueue, Waiting } from "./unit-queue.ts";

export type Work<Result> = (session: EmbeddedSession, turn: Turn) => Promise<Result>;

export interface Unit extends Waiting {
  /** It is refused while the disk has too little room for what writes. */
  readonly writes: boolean;
  /** It is over soon, whatever the data: those before it may be answered after it. */
  readonly isShort: boolean;
  /** undefined: there is nobody to answer, or it will run again. */
  readonly run: (session: EmbeddedSession, turn: Turn) => Promise<Settlement | undefined>;
  readonly refuse: (reason: Error) => void;
}

/** How a unit that has run to its end is answered: as it ended, or, if nobody knows whether it is on disk, with the reason. */
export interface Settlement {
  answer(): void;
  fail(reason: unknown): void;
}

export interface UnitOptions {
  readonly isUrgent?: boolean | undefined;
  readonly writes?: boolean | undefined;
  readonly isShort?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The caller's budget, which gets its charges back when the unit is run again. */
  readonly budget?: AnswerBudget | undefined;
}

/** Nobody waits longer than this for a long turn. */
const LONG_TURN_WAIT_MS = 30_000;
/** The reason with which a unit is rolled back that is to run again. */
export const PREEMPTED = new Error("It was preempted by another caller.");

/**
 * Puts a unit into the queue.
 *
 * @returns what the work returns, once the unit has run to its end. Rejects with the signal's reason when the
 *   caller leaves first, and with OVERLOADED when the unit has to wait too long for a second turn.
 */
export function queueUnit<Result>(
  queue: UnitQueue<Unit>,
  work: Work<Result>,
  { isUrgent = false, writes = false, isShort = false, signal, budget }: UnitOptions = {},
): Promise<Result> {
  return new Promise<Result>((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    let waitTimer: NodeJS.Timeout | undefined;
    const giveUp = (reason: unknown): void => {
      stopWaiting();
      queue.delete(unit);
      reject(reason);
    };
    const onAbort = (): void => giveUp(signal!.reason);
    const hasGone = (): boolean => signal?.aborted === true;
    const stopWaiting = (): void => {
      clearTimeout(waitTimer);
      signal?.removeEventListener("abort", onAbort);
    };
    const wait = (): void => signal?.addEventListener("abort", onAbort, { once: true });
    const putBack = (): void => {
      waitTimer = setTimeout(() => giveUp(tooLong(queue.longRestMs(unit.caller))), LONG_TURN_WAIT_MS);
      wait();
      queue.putBack(unit);
    };
    const unit: Unit = {
      caller: budget?.caller ?? "",
      isUrgent,
      writes,
      isShort,
      run: async (session, turn) => {
        // When its caller left, the unit may already have left the queue and been waiting for a session to be
        // opened.
        if (hasGone()) return undefined;
        stopWaiting();
        const giveBack = budget?.mark();
        try {
          const result = await work(session, turn);
          return { answer: () => resolve(result), fail: reject };
        } catch (error) {
          // What it says of a session that it has lost itself is the reason.
          const fail = session.failure === null ? reject : () => reject(error);
          if (error !== PREEMPTED) return { answer: () => reject(error), fail };
          giveBack?.();
          if (hasGone()) reject(signal!.reason);
          else putBack();
          return undefined;
        }
      },
      refuse: (reason) => {
        stopWaiting();
        reject(reason);
      },
    };
    wait();
    queue.push(unit);
  });
}

const tooLong = (restMs: number): LodestoneError =>
  new LodestoneError(
    "OVERLOADED",
    `The embedded database is in use by others, and this request needs it for longer than ${TURN_MS} ms. Such work of one caller gets a tenth of the time ` +
      "while others are active. Nothing was changed. Ask for less at once, or try again later.",
    { retryAfterSeconds: Math.max(1, Math.ceil(restMs / 1_000)) },
  );
