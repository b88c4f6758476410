/**
 * The main thread's side of the statement parser: one thread per process, started at first use and replaced
 * when a statement breaks it. Results for recent statements are cached, since clients send the same text
 * again and again.
 */
import { Worker } from "node:worker_threads";
import { LodestoneError } from "../../errors.ts";
import { TEST_ENVIRONMENT } from "../../fault-points.ts";
import { PendingCalls } from "../../worker-calls.ts";
import type { StatementAnalysis } from "./analyse.ts";
import type { ParseReply, ParseRequest, Statement } from "./parser-worker.ts";
import type { TableColumns } from "./resolve-from.ts";

/** Longer statements are refused: values belong in params. */
const MAX_STATEMENT_CHARACTERS = 500_000;
/** A thread that takes longer for one statement is replaced. */
const PARSE_LIMIT_MS = 10_000;
/** Time for a thread to start, even on a very busy machine. No statement is to blame for that. */
const START_LIMIT_MS = 60_000;
const CACHED_STATEMENTS = 1_000;
const CACHED_CHARACTERS_EACH = 2_000;

let worker: Worker | null = null;
/** The thread has started. */
let isReady = false;
let timer: NodeJS.Timeout | null = null;
const waiting = new PendingCalls<Statement>();
/** By statement; once its names were resolved, by the columns' key and the statement. */
const cache = new Map<string, StatementAnalysis>();

/** @throws {LodestoneError} INVALID with PostgreSQL's own message, or with what is not allowed and why. */
export function analyseStatement(statement: string): Promise<StatementAnalysis> {
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
  return parsed(statement, statement);
}

/**
 * Checks that each `x.f` of a statement is a column. analyseStatement must have accepted the statement.
 *
 * @param columns     of the tables that the statement names.
 * @param columnsKey  equal for equal columns: the result is cached under it.
 * @throws {LodestoneError} INVALID for a name that is not a column, or that may be something else.
 */
export async function resolveStatement(statement: string, columns: TableColumns, columnsKey: string): Promise<void> {
  const key = `${columnsKey}\0${statement}`;
  if (!cache.has(key)) await parsed(statement, key, columns);
}

async function parsed(statement: string, key: string, columns?: TableColumns): Promise<StatementAnalysis> {
  const request: Statement = { statement, ...(columns === undefined ? {} : { columns }) };
  const { number, answer } = waiting.begin<StatementAnalysis>(request);
  send(number, request);
  const analysis = await answer;
  remember(key, analysis);
  return analysis;
}

function send(number: number, request: Statement): void {
  worker ??= start();
  worker.ref();
  worker.postMessage({ number, ...request } satisfies ParseRequest);
  if (timer === null) watch();
}

/** Limits how long the thread may stay silent from now on. */
function watch(): void {
  if (timer !== null) clearTimeout(timer);
  if (waiting.size === 0) timer = null;
  else timer = isReady ? setTimeout(() => replaceAfter("took too long"), PARSE_LIMIT_MS) : setTimeout(giveUpStarting, START_LIMIT_MS);
}

function start(): Worker {
  isReady = false;
  const started = new Worker(new URL("./parser-worker.js", import.meta.url), { argv: [], env: TEST_ENVIRONMENT });
  started.on("message", (reply: ParseReply) => settle(started, reply));
  started.on("error", (error) => {
    if (worker === started) replaceAfter(String(error));
  });
  return started;
}

function settle(from: Worker, reply: ParseReply): void {
  if (from !== worker) return;
  if ("isReady" in reply) {
    isReady = true;
    watch();
    return;
  }
  if ("broken" in reply) {
    replaceAfter(reply.broken);
    return;
  }
  if ("analysis" in reply) waiting.resolve(reply.number, reply.analysis);
  else waiting.reject(reply.number, invalid(`${reply.fault}${reply.position === null ? "" : ` (at character ${reply.position})`}`));
  watch();
  if (waiting.size === 0) from.unref(); // an idle parser does not keep the process alive
}

function giveUpStarting(): void {
  const late = worker;
  worker = null;
  timer = null;
  void late?.terminate();
  for (const [number] of waiting.requests()) {
    waiting.reject(
      number,
      new LodestoneError("UNAVAILABLE", "The parser of statements has not started yet; try again.", { retryAfterSeconds: 1 }),
    );
  }
}

/**
 * Statements are processed in order, so the oldest one broke the thread: it fails. The others are sent to a
 * new thread.
 */
function replaceAfter(_reason: string): void {
  const broken = worker;
  worker = null;
  if (timer !== null) clearTimeout(timer);
  timer = null;
  void broken?.terminate();
  const [culprit] = waiting.requests();
  if (culprit === undefined) return;
  waiting.reject(culprit[0], invalid("statement is nested too deeply or is too long to be parsed. Send values in params, or split it."));
  for (const [number, request] of waiting.requests()) send(number, request);
}

function remember(key: string, analysis: StatementAnalysis): void {
  if (key.length > CACHED_CHARACTERS_EACH) return;
  if (cache.size >= CACHED_STATEMENTS) cache.delete(cache.keys().next().value!);
  cache.set(key, analysis);
}

const invalid = (message: string): LodestoneError => new LodestoneError("INVALID", message);
