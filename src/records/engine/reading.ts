/**
 * Counts what a statement sends back as it arrives, and refuses it at the first byte too many. See
 * budget/memory-budget.ts.
 */
import { type AnswerBudget, overloaded } from "../../budget/memory-budget.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";

/**
 * Limit for the service's own statements (catalog, change feed), which belong to no request. It is also below
 * the longest string of JavaScript (512 MB), beyond which the driver would throw in the middle of a message.
 */
const MAX_STATEMENT_BYTES = 128 * 2 ** 20;
/** Smaller results cannot hold enough JSON or arrays to matter. */
const WEIGHED_FROM_BYTES = 256 * 1024;
/** An empty object or list takes three characters of JSON, and this many bytes in memory. */
const CONTAINER_BYTES = 56;
/** A value in a list; at worst a short text. */
const ELEMENT_BYTES = 24;

const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const COMMA = 0x2c;

export class Reading {
  readonly #budget: AnswerBudget | undefined;
  readonly #isCommitted: boolean;
  #bytes = 0;
  #refusal: LodestoneError | undefined;

  /** @param isCommitted  the statement commits by itself: its (small) result is charged and not refused. */
  constructor(budget: AnswerBudget | undefined, isCommitted = false) {
    this.#budget = budget;
    this.#isCommitted = isCommitted;
  }

  /** Set once it was too much; the outcome of the statement itself no longer matters then. */
  get refusal(): LodestoneError | undefined {
    return this.#refusal;
  }

  /** Bytes that may still come. */
  get allowance(): number {
    const ofStatement = MAX_STATEMENT_BYTES - this.#bytes;
    return this.#budget === undefined || this.#isCommitted ? ofStatement : Math.min(ofStatement, this.#budget.remaining);
  }

  /** @returns false when the statement must be stopped. */
  received(chunk: Uint8Array): boolean {
    if (this.#refusal !== undefined) return false;
    this.#bytes += chunk.length;
    return this.#charge(chunk.length) && (this.#bytes < WEIGHED_FROM_BYTES || this.#hold(chunk));
  }

  /** A row of this many bytes was not taken. */
  refuse(bytes: number): void {
    if (this.#refusal !== undefined) return;
    this.#bytes += bytes;
    // Even if there is room by now it is too late: the row is gone.
    if (this.#charge(bytes)) this.#refusal = overloaded();
  }

  #charge(bytes: number): boolean {
    if (this.#bytes > MAX_STATEMENT_BYTES) this.#refusal = tooLong();
    else if (this.#isCommitted) this.#budget?.chargeCommitted(bytes);
    else this.#attempt((budget) => budget.charge(bytes));
    return this.#refusal === undefined;
  }

  /** Counts the memory that JSON and arrays take as values, beyond their text. */
  #hold(chunk: Uint8Array): boolean {
    if (this.#budget === undefined || this.#isCommitted) return true;
    let weight = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      if (byte === COMMA) weight += ELEMENT_BYTES;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) weight += CONTAINER_BYTES;
    }
    this.#attempt((budget) => budget.hold(weight));
    return this.#refusal === undefined;
  }

  #attempt(charge: (budget: AnswerBudget) => void): void {
    if (this.#budget === undefined) return;
    try {
      charge(this.#budget);
    } catch (error) {
      this.#refusal = error as LodestoneError;
    }
  }
}

function tooLong(): LodestoneError {
  return new LodestoneError(
    "TOO_LARGE",
    `The result of one statement is larger than ${MAX_STATEMENT_BYTES / 2 ** 20} MiB. Nothing was changed. Ask for less at once, or leave out the columns with the largest values.`,
  );
}

/** Tracks, for one session, which statement the arriving bytes belong to. */
export class SessionReadings {
  readonly #onBegin: (allowance: number) => void;
  #current: Reading | null = null;
  #users = 0;

  /** @param onBegin  told the allowance before a statement is sent. */
  constructor(onBegin: (allowance: number) => void = () => {}) {
    this.#onBegin = onBegin;
  }

  get current(): Reading | null {
    return this.#current;
  }

  /**
   * Statements that are sent together are counted together.
   * @throws {LodestoneError} the refusal, even of a statement that ran to its end.
   */
  async run<Result>(budget: AnswerBudget | undefined, isCommitted: boolean, send: () => Promise<Result>): Promise<Result> {
    const reading = this.#current ?? new Reading(budget, isCommitted);
    this.#current = reading;
    this.#users++;
    this.#onBegin(reading.allowance);
    try {
      const result = await send();
      if (reading.refusal === undefined) return result;
    } catch (error) {
      throw reading.refusal ?? error;
    } finally {
      if (--this.#users === 0) this.#current = null;
    }
    throw reading.refusal;
  }
}
