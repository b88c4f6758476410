/**
 * Ends work on the embedded session that runs too long, that nobody waits for, or that is to make way for
 * others: its statement is interrupted, and what it asks for afterwards is refused with the reason. A statement
 * that does not look at the interruption in time (PostgreSQL looks between rows and pages, not inside one long
 * text) is ended with its thread.
 */
import { LodestoneError } from "../../../errors.ts";
import type { EmbeddedSession } from "./session.ts";

/** Ending the thread costs everybody the opening of a new session. */
const UNHEARD_AFTER_MS = 1_000;

/** One run of a unit of work, while it may be cut short: what was done is rolled back then. */
export interface Turn {
  /** null when nothing is running, or what runs is a commit. */
  cut: ((reason: Error) => void) | null;
}

export interface TimeLimits {
  readonly limitMs: number;
  /** When it aborts, the work is ended; for work of which nothing is kept. */
  readonly abandoned?: AbortSignal | undefined;
  readonly turn?: Turn | undefined;
}

/** @throws {LodestoneError} TIMEOUT, the signal's reason, the reason with which the turn was cut, or what `run` rejects with. */
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
    // Whatever the work made of it.
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

/** Made only when it is needed: an error's stack costs more than a short statement's share of this thread. */
export function timedOut(limitMs: number): LodestoneError {
  return new LodestoneError("TIMEOUT", `The statement ran longer than ${limitMs / 1000} seconds; it was cancelled and rolled back.`);
}
