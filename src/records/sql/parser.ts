/**
 * The main thread's side of the statement parser: one thread per process, started at first use and replaced
 * when a statement breaks it. Callers take turns, by the time that their statements take, so the statements of
 * one delay another's by one statement at most. Results for recent statements are cached, since clients send
 * the same text again and again.
 */

import type { FaultListeners } from "../../errors/fault-state.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { FairTurns } from "../../fairness/fair-turns.ts";
import type { StatementAnalysis } from "./analyse.ts";
import { ParserBroken, ParserThread } from "./parser-thread.ts";

/** Longer statements are refused: values belong in params. */
const MAX_STATEMENT_CHARACTERS = 500_000;
/** Nobody waits longer than this for a turn. */
const TURN_WAIT_MS = 30_000;
const CACHED_STATEMENTS = 1_000;
const CACHED_CHARACTERS_EACH = 2_000;

/** For whom a statement is parsed. */
export interface ParsingCaller {
  /** "" is the service itself. */
  readonly caller: string;
  /** A caller who left does not wait for a turn. */
  readonly signal?: AbortSignal | undefined;
  /** Is told when the thread had to be replaced, and why. */
  readonly onFault?: FaultListeners["onFault"];
}

const turns = new FairTurns({
  places: 1,
  waitMs: TURN_WAIT_MS,
  busy:
    "The parser of statements has been busy with statements of others, and with earlier ones of yours. " +
    "Nothing was changed: send shorter ones, or try again.",
});
let thread: ParserThread | null = null;
const cache = new Map<string, StatementAnalysis>();

/**
 * @throws {LodestoneError} INVALID with PostgreSQL's own message, or with what is not allowed and why; OVERLOADED
 *   after too long a wait; the signal's reason.
 */
export function analyseStatement(statement: string, caller: ParsingCaller): Promise<StatementAnalysis> {
  if (statement.length > MAX_STATEMENT_CHARACTERS) {
    return Promise.reject(
      new LodestoneError(
        "INVALID",
        `statement has ${statement.length} characters; at most ${MAX_STATEMENT_CHARACTERS} are allowed. Send values in params.`,
      ),
    );
  }
  if (statement.trim() === "") return Promise.reject(new LodestoneError("INVALID", "the statement is empty"));
  // PostgreSQL's protocol and its parser end a string at NUL: what follows would be sent unchecked.
  if (statement.includes("\0")) return Promise.reject(new LodestoneError("INVALID", "statement contains a NUL character."));
  if (!statement.isWellFormed())
    return Promise.reject(new LodestoneError("INVALID", "statement contains a lone surrogate; it is not valid Unicode."));
  const known = cache.get(statement);
  if (known !== undefined) return Promise.resolve(known);
  return parsed(statement, caller);
}

function parsed(statement: string, { caller, signal, onFault }: ParsingCaller): Promise<StatementAnalysis> {
  return turns.run(caller, signal, async () => {
    const known = cache.get(statement); // somebody else sent the same, and was first
    if (known !== undefined) return known;
    thread ??= new ParserThread();
    try {
      const analysis = await thread.parse(statement);
      remember(statement, analysis);
      return analysis;
    } catch (error) {
      if (error instanceof LodestoneError && error.code === "INVALID") throw error;
      throw await replaceThread(thread, error, onFault);
    }
  });
}

/**
 * Returns the error for the statement that broke the thread. The next thread starts in its caller's turn, who
 * thereby pays for it.
 */
async function replaceThread(broken: ParserThread, error: unknown, onFault: ParsingCaller["onFault"]): Promise<unknown> {
  broken.end();
  thread = null;
  if (!(error instanceof ParserBroken)) return error;
  onFault?.(new Error(`The parser of SQL statements had to be replaced: ${error.message}`, { cause: error }));
  thread = new ParserThread();
  await thread.ready().catch(() => {}); // the next statement finds out
  return new LodestoneError("INVALID", "statement is nested too deeply or is too long to be parsed. Send values in params, or split it.", {
    cause: error,
  });
}

function remember(statement: string, analysis: StatementAnalysis): void {
  if (statement.length > CACHED_CHARACTERS_EACH) return;
  if (cache.size >= CACHED_STATEMENTS) cache.delete(cache.keys().next().value!);
  cache.set(statement, analysis);
}
