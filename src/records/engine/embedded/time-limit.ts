/**
 * Ends work on the embedded session that runs too long, that nobody waits for, or that must make way for
 * others. Its statement is interrupted, and further statements are refused with the reason. A statement that
 * does not notice the interruption in time (PostgreSQL checks between rows and pages, not inside one long
 * text) is ended together with its thread.
 */
import { timedOut } from "../database-errors.ts";
import type { EmbeddedSession } from "./embedded-session.ts";

/** Wait this long before ending the thread, since then everybody waits for a new session. */
const UNHEARD_AFTER_MS = 1_000;

/** One run of a unit of work. While `cut` is set it may be cut short; its work is then rolled back. */
export interface Turn {
  /** null when nothing is running, or when a commit is. */
  cut: ((reason: Error) => void) | null;
}

export interface TimeLimits {
  readonly limitMs: number;
  /** When it aborts, the work is ended. For work that leaves nothing behind. */
  readonly abandoned?: AbortSignal | undefined;
  readonly turn?: Turn | undefined;
}

/**
 * @throws {LodestoneError} TIMEOUT, the signal's reason, the reason with which the turn was cut, or what
 *   `run` rejects with.
 */
export async function withTimeLimit<Result>(
  session: EmbeddedSession,
  { limitMs, abandoned, turn }: TimeLimits,
  run: () => Promise<Result>,
): Promise<Result> {
  let reason: Error | undefined;
  let killTimer: NodeJS.Timeout | undefined;
  let killed: Promise<void> | undefined;
  let onKilled: () => void = () => {};
  const cutShort = new Promise<never>((_resolve, reject) => {
    onKilled = () => reject(reason);
  });
  const end = (why: Error): void => {
    if (reason !== undefined) return;
    reason = why;
    session.interrupt(why);
    killTimer = setTimeout(() => {
      killed = session.kill(why).finally(onKilled);
    }, UNHEARD_AFTER_MS);
  };
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
    clearTimeout(killTimer);
    abandoned?.removeEventListener("abort", onAbort);
    session.resume();
    await killed;
  }
}
