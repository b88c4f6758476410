/**
 * The main thread's side of the statement parser: one thread per process, started at first use and replaced
 * when a statement breaks it. Callers take turns, by the time that their statements take, so the statements of
 * one delay another's by one statement at most. Results for recent statements are cached, since clients send
 * the same text again and again.
 */

import { Worker } from "node:worker_threads";
import type { FaultListeners } from "../../errors/fault-state.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { FairTurns } from "../../fairness/fair-turns.ts";
import { TEST_ENVIRONMENT } from "../../files/fault-points.ts";
import type { StatementAnalysis } from "./analyse.ts";
import type { ParseReply } from "./parser-worker.ts";

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
  busy: () =>
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

// One life of the thread that parses statements, seen from the main thread. It takes one statement at a time.
// After one that broke it, it is ended and never used again (parser-worker.ts says why).

/** A thread that takes longer for one statement is ended. Linear work takes a second on an idle machine. */
const PARSE_LIMIT_MS = 10_000;
/** Time for a thread to start, even on a very busy machine. No statement is to blame for that. */
const START_LIMIT_MS = 60_000;

/** The statement, or something else, broke the thread. */
export class ParserBroken extends Error {}

export class ParserThread {
  readonly #worker = new Worker(new URL("./parser-worker.js", import.meta.url), { argv: [], env: TEST_ENVIRONMENT });
  readonly #ready: Promise<void>;
  #settle: { readonly resolve: (reply: ParseReply) => void; readonly reject: (error: Error) => void } | null = null;
  #failure: Error | null = null;

  constructor() {
    this.#worker.on("message", (reply: ParseReply) => this.#settle?.resolve(reply));
    this.#worker.on("error", (error) => this.#fail(new ParserBroken(String(error), { cause: error })));
    this.#worker.on("exit", () => this.#fail(new ParserBroken("the thread ended")));
    this.#ready = this.#reply(START_LIMIT_MS, () => new Error("it takes too long")).then(
      () => this.#worker.unref(), // an idle parser does not keep the process alive
      (error: unknown) => {
        throw notStarted(error); // no descriptor is left, say: that is not the statement's fault
      },
    );
    this.#ready.catch(() => {});
  }

  /** @throws {LodestoneError} UNAVAILABLE; {ParserBroken} when the thread failed. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /**
   * @throws {LodestoneError} INVALID with PostgreSQL's own message, or with what is not allowed and why.
   * @throws {ParserBroken} the thread is of no use any more.
   */
  async parse(statement: string): Promise<StatementAnalysis> {
    await this.#ready;
    if (this.#failure !== null) throw notStarted(this.#failure);
    this.#worker.ref();
    this.#worker.postMessage(statement);
    const reply = await this.#reply(PARSE_LIMIT_MS, () => new ParserBroken("it took too long"));
    this.#worker.unref();
    if ("analysis" in reply) return reply.analysis;
    if ("fault" in reply)
      throw new LodestoneError("INVALID", `${reply.fault}${reply.position === null ? "" : ` (at character ${reply.position})`}`);
    throw new ParserBroken("broken" in reply ? reply.broken : "it answered out of turn");
  }

  end(): void {
    void this.#worker.terminate();
  }

  async #reply(limitMs: number, late: () => Error): Promise<ParseReply> {
    if (this.#failure !== null) throw this.#failure;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<ParseReply>((resolve, reject) => {
        this.#settle = { resolve, reject };
        timer = setTimeout(() => reject(late()), limitMs);
      });
    } finally {
      clearTimeout(timer);
      this.#settle = null;
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#settle?.reject(error);
  }
}

const notStarted = (cause: unknown): LodestoneError =>
  new LodestoneError("UNAVAILABLE", "The parser of statements has not started; try again.", { retryAfterSeconds: 1, cause });
