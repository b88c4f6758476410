/** Ends work on the embedded session that runs too long, or that nobody waits for. PGlite never looks at its own statement_timeout, and only the end of its thread stops a statement. */
import { LodestoneError } from "../../../errors.ts";
import type { EmbeddedSession } from "./session.ts";

/** Work that nobody waits for gets this much longer: ending it costs everybody the opening of a new session. */
const ABANDONED_AFTER_MS = 1_000;

/**
 * @param abandoned  when it aborts, the work is ended a moment later; for work of which nothing is kept.
 * @throws {LodestoneError} TIMEOUT, the signal's reason, or what `run` rejects with. The thread has ended then.
 */
export async function withTimeLimit<Result>(
  session: EmbeddedSession,
  limitMs: number,
  run: () => Promise<Result>,
  abandoned?: AbortSignal,
): Promise<Result> {
  let ended: Promise<void> | undefined;
  let onEnded: (reason: Error) => void = () => {};
  const cutShort = new Promise<never>((_resolve, reject) => {
    onEnded = reject;
  });
  const end = (reason: Error): void => {
    ended ??= session.kill(reason).finally(() => onEnded(reason));
  };
  const timer = setTimeout(() => end(timedOut(limitMs)), limitMs);
  let abandonTimer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    abandonTimer = setTimeout(() => end(abandoned!.reason), ABANDONED_AFTER_MS);
  };
  if (abandoned?.aborted === true) onAbort();
  else abandoned?.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([run(), cutShort]);
  } finally {
    clearTimeout(timer);
    clearTimeout(abandonTimer);
    abandoned?.removeEventListener("abort", onAbort);
    await ended;
  }
}

/** Made only when it is needed: an error's stack costs more than a short statement's share of this thread. */
function timedOut(limitMs: number): LodestoneError {
  return new LodestoneError("TIMEOUT", `The statement ran longer than ${limitMs / 1000} seconds; it was cancelled and rolled back.`);
}
