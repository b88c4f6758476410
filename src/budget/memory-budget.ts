/**
 * How much of this process's memory answers may take: one budget for all of them, and an account (AnswerBudget)
 * for each request.
 *
 * Where it is charged. Everything from the database arrives over one stream per session (records/engine). The
 * bytes are charged there as they arrive, before a row is complete, on both engines. The statement is stopped at
 * the first byte that exceeds the budget: the embedded database drops the row in its own thread and cancels; a
 * connection to a server is closed. Whatever an answer repeats (one record in a hundred answers, a record that a
 * transaction gets a thousand times) is charged where the answer is assembled. Nothing else is counted.
 *
 * When. Reads that belong to a write run, and are charged, inside its transaction, so a refusal always comes
 * before the commit. A single statement that commits by itself answers at most MAX_COMMITTED_BYTES
 * (records/data/write), which is never refused.
 *
 * Two measures, two refusals:
 * - the bytes of one answer, as the database sends them. Beyond `answerBytes` the error is TOO_LARGE (413): the
 *   same request would be refused again.
 * - the memory of the process: MEMORY_PER_BYTE for each byte, and what values take beyond their text (`hold`).
 *   Beyond the caller's share the error is OVERLOADED (429); beyond what a single caller could have, TOO_LARGE.
 *   With n callers that hold something, the share of each is 1/(n + 1) of all: one alone gets half, and there is
 *   always a part left for the next caller.
 *
 * Small answers are never refused: the first FREE_BYTES of an answer are counted, but always granted.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";

export interface BudgetLimits {
  /** Of one answer, as the database sends it. */
  readonly answerBytes: number;
  /** Of the process's memory, for all answers together. */
  readonly totalBytes: number;
}

/** A byte of text is held as it came, as a value, and as the answer's JSON, in characters of one or two bytes. */
export const MEMORY_PER_BYTE = 4;
/** 64 KiB: so 256 requests at once hold at most 16 MiB of text, 64 MiB of memory. */
export const FREE_BYTES = 64 * 1024;

const ASK_FOR_LESS =
  "Ask for less at once: fewer records (page.size, size, limit, LIMIT), fewer operations, statements or query vectors in one request, or only the columns that are needed";

export class MemoryBudget {
  readonly limits: BudgetLimits;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(limits: BudgetLimits) {
    this.limits = limits;
  }

  /** The account of one request. @param caller  whose share it takes from: a key, or an address where there are no keys. */
  open(caller: string): AnswerBudget {
    return new AnswerBudget(this, caller);
  }

  /** Memory that is held, by all. */
  get heldBytes(): number {
    return this.#total;
  }

  /** What the caller may still take. */
  available(caller: string): number {
    const own = this.#held.get(caller) ?? 0;
    const callers = this.#held.size + (own > 0 ? 0 : 1);
    const { totalBytes } = this.limits;
    return Math.max(0, Math.min(totalBytes / (callers + 1) - own, totalBytes - this.#total));
  }

  /** Takes bytes without a check; a negative number gives them back. */
  take(caller: string, bytes: number): void {
    const own = (this.#held.get(caller) ?? 0) + bytes;
    this.#total += bytes;
    if (own > 0) this.#held.set(caller, own);
    else this.#held.delete(caller);
  }
}

/** What one request has read and holds. Closed when its answer has gone out, or nobody waits for it. */
export class AnswerBudget {
  readonly #budget: MemoryBudget;
  readonly #caller: string;
  #bytes = 0;
  /** Of memory, what was taken from the budget of all. */
  #held = 0;
  #isClosed = false;

  constructor(budget: MemoryBudget, caller: string) {
    this.#budget = budget;
    this.#caller = caller;
  }

  get caller(): string {
    return this.#caller;
  }

  /** Charged so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What may be charged at this moment without a refusal. */
  get remaining(): number {
    const ofAnswer = this.#budget.limits.answerBytes - this.#bytes;
    if (ofAnswer <= 0) return 0;
    const free = Math.max(0, FREE_BYTES - this.#bytes);
    return Math.floor(Math.min(ofAnswer, free + this.#budget.available(this.#caller) / MEMORY_PER_BYTE));
  }

  /** @throws {LodestoneError} TOO_LARGE or OVERLOADED; then nothing of it is charged. */
  charge(bytes: number): void {
    if (this.#bytes + bytes > this.#budget.limits.answerBytes) throw tooLarge(this.#budget.limits.answerBytes);
    const beyondFree = Math.min(bytes, Math.max(0, this.#bytes + bytes - FREE_BYTES));
    if (beyondFree > 0) this.hold(beyondFree * MEMORY_PER_BYTE);
    this.#bytes += bytes;
  }

  /**
   * Memory that is no part of the answer's bytes.
   * @throws {LodestoneError} TOO_LARGE when that would be too much for a caller who is alone as well;
   *   OVERLOADED.
   */
  hold(bytes: number): void {
    const most = this.#budget.limits.totalBytes / 2;
    if (this.#held + bytes > most) throw tooHeavy(most);
    if (bytes > this.#budget.available(this.#caller)) throw overloaded();
    this.#take(bytes);
  }

  /** Charges what can no longer be refused, because it is committed. */
  chargeCommitted(bytes: number): void {
    this.#bytes += bytes;
    this.#take(bytes * MEMORY_PER_BYTE);
  }

  /** For data that are read but not kept: gives back what was charged since. Nothing else may charge meanwhile. */
  mark(): () => void {
    const [bytes, held] = [this.#bytes, this.#held];
    return () => {
      this.#bytes = Math.min(this.#bytes, bytes);
      this.#take(Math.min(0, held - this.#held));
    };
  }

  /** Gives everything back. Safe to call more than once. */
  close(): void {
    this.#take(-this.#held);
    this.#isClosed = true;
  }

  #take(bytes: number): void {
    // A statement may still run after its client has disconnected.
    if (this.#isClosed || bytes === 0) return;
    this.#held += bytes;
    this.#budget.take(this.#caller, bytes);
  }
}

export function tooLarge(limitBytes: number): LodestoneError {
  return new LodestoneError("TOO_LARGE", `The answer is larger than ${showSize(limitBytes)}. Nothing was changed. ${ASK_FOR_LESS}.`);
}

function tooHeavy(limitBytes: number): LodestoneError {
  return new LodestoneError(
    "TOO_LARGE",
    `The answer takes more than ${showSize(limitBytes)} of memory while it is built. Nothing was changed. ${ASK_FOR_LESS}.`,
  );
}

export function overloaded(): LodestoneError {
  return new LodestoneError(
    "OVERLOADED",
    `Large answers in progress use all the memory that you may have. Nothing was changed. Try again in a moment. ${ASK_FOR_LESS}.`,
    { retryAfterSeconds: 1 },
  );
}

function showSize(bytes: number): string {
  return bytes >= 2 ** 20 ? `${Math.floor(bytes / 2 ** 20)} MiB` : `${bytes.toLocaleString("en-US")} bytes`;
}
