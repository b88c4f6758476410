/**
 * Ends work on the embedded session that runs too long, that nobody waits for, or that must make way for
 * others. Its statement is interrupted, and further statements are refused with the reason.
 *
 * A turn that others wait for is ended for good when it has computed for LONGEST_TURN_MS: the time of PostgreSQL's
 * thread on a processor, so that a slow machine changes what others wait, and not what can be done. One that does not
 * compute (its disk is slow) ends at `Turn.longestMs`.
 *
 * A statement that could not be interrupted (PostgreSQL checks between rows and pages, not inside one long
 * expression or text) is ended together with its thread: when it does not notice its interruption, and also
 * when it was not interrupted yet but others wait for it.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { timedOut } from "../database-errors.ts";
import type { EmbeddedSession } from "./embedded-session.ts";

/**
 * Wait this long before ending the thread, since then everybody waits for a new session: longer than it takes to store the
 * longest value.
 */
const DEAF_LIMIT_MS = 750;
/** The same for a turn that others have waited for longest. */
const LATE_DEAF_LIMIT_MS = 300;
/** An interrupted thread that is not even computing (its disk does not answer) is ended after this time. */
const UNHEARD_LIMIT_MS = 10_000;
/** Then others go first. Below this a turn is not watched. */
export const TURN_MS = 150;
/** Nobody waits longer for somebody else's turn, but for the time that ending it takes. */
const LONGEST_TURN_MS = 1_500;
const LOOK_EVERY_MS = 100;
/**
 * A commit is not cancelled by the time limit of its work, since its outcome would be unknown, but it may not hang for ever either.
 */
export const COMMIT_LIMIT_MS = 60_000;

/** One run of a unit of work. While `cut` is set it may be cut short; its work is then rolled back. */
export interface Turn {
  /** null when nothing is running, or when a commit is. */
  cut: ((reason: Error) => void) | null;
  /** Whether anybody waits for the turn to end. */
  readonly isWaitedFor: () => boolean;
  /** Whether another caller does who may go now and has had less. */
  readonly othersWait: () => boolean;
  /** Milliseconds of the clock that it may take while others wait. */
  readonly longestMs: number;
}

export interface TimeLimits {
  readonly limitMs: number;
  /** When it aborts, the work is ended. For work that leaves nothing behind. */
  readonly abandoned?: AbortSignal | undefined;
  readonly turn?: Turn | undefined;
}

/**
 * @throws {LodestoneError} TIMEOUT, the signal's reason, the reason with which the turn was cut, or what
 *   `run` rejects with. A turn that was cut and did not notice is a TIMEOUT too: it is not run again.
 */
export async function withTimeLimit<Result>(
  session: EmbeddedSession,
  { limitMs, abandoned, turn }: TimeLimits,
  run: () => Promise<Result>,
): Promise<Result> {
  let reason: Error | undefined;
  let watching: NodeJS.Timeout | undefined;
  let unheardTimer: NodeJS.Timeout | undefined;
  let killed: Promise<void> | undefined;
  let onKilled: () => void = () => {};
  const cutShort = new Promise<never>((_resolve, reject) => {
    onKilled = () => reject(reason);
  });
  const end = (why: Error): void => {
    if (reason !== undefined) return;
    reason = why;
    session.interrupt(why);
    watch();
    unheardTimer = setTimeout(kill, UNHEARD_LIMIT_MS);
  };
  const kill = (): void => {
    if (killed !== undefined) return;
    // Its time limit, or a caller who left, says more than that others waited.
    if (!(reason instanceof LodestoneError) && abandoned?.aborted !== true) reason = uninterruptible();
    killed = session.kill(reason!).finally(onKilled);
  };
  const startedAt = performance.now();
  let isTooLong = false;
  const look = (): void => {
    const deafLimit = isTooLong ? LATE_DEAF_LIMIT_MS : DEAF_LIMIT_MS;
    if (session.deafMs >= deafLimit && (reason !== undefined || turn?.isWaitedFor() === true)) kill();
    else if (reason === undefined && turn?.othersWait() === true) {
      isTooLong = session.computedMs + TURN_MS >= LONGEST_TURN_MS;
      if (isTooLong) end(tooLongForOthers());
      else if (performance.now() - startedAt >= turn.longestMs) end(timedOut(turn.longestMs));
    }
  };
  const watch = (): void => {
    clearTimeout(watching);
    watching = setInterval(look, LOOK_EVERY_MS);
  };
  if (turn !== undefined) {
    watching = setTimeout(() => {
      session.watch();
      watch();
    }, TURN_MS);
  }
  const timer = setTimeout(() => end(timedOut(limitMs)), limitMs);
  const onAbort = (): void => end(abandoned!.reason);
  if (abandoned?.aborted === true) onAbort();
  else abandoned?.addEventListener("abort", onAbort, { once: true });
  if (turn !== undefined) turn.cut = end;
  try {
    return await Promise.race([run(), cutShort]);
  } catch (error) {
    // The reason counts, whatever error the work made of it.
    throw reason ?? error;
  } finally {
    if (turn !== undefined) turn.cut = null;
    clearTimeout(timer);
    clearTimeout(watching);
    clearTimeout(unheardTimer);
    abandoned?.removeEventListener("abort", onAbort);
    session.resume();
    await killed;
  }
}

const tooLongForOthers = (): LodestoneError =>
  new LodestoneError(
    "TIMEOUT",
    `The request computed for ${LONGEST_TURN_MS / 1_000} seconds while others waited for the embedded database; it was ended and rolled back. Ask for ` +
      "less at once, or when nobody else is there. On a PostgreSQL server requests run side by side.",
  );

const uninterruptible = (): LodestoneError =>
  new LodestoneError(
    "TIMEOUT",
    "The statement computed for three quarters of a second without a moment at which it could be interrupted, while others waited " +
      "for the database; it was ended and rolled back. Compute with shorter values, or with fewer at once.",
  );
