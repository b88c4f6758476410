/**
 * The main thread's side of the statement parser: one thread for the process, started at first use, replaced when a statement breaks it.
 * Answers of recent statements are kept: clients send the same text again and again.
 */
import { Worker } from "node:worker_threads";
import { LodestoneError } from "../../errors.ts";
import type { StatementAnalysis } from "./analyse.ts";
import type { ParseReply, ParseRequest } from "./parser-worker.ts";

/** Longer statements are refused: values belong into params. */
const MAX_STATEMENT_CHARACTERS = 500_000;
/** A thread that takes longer is replaced. */
const PARSE_LIMIT_MS = 10_000;
const CACHED_STATEMENTS = 500;
const CACHED_CHARACTERS_EACH = 2_000;

interface Waiting {
  readonly statement: string;
  readonly resolve: (analysis: StatementAnalysis) => void;
  readonly reject: (error: LodestoneError) => void;
}

let worker: Worker | null = null;
let nextId = 1;
let timer: NodeJS.Timeout | null = null;
const waiting = new Map<number, Waiting>();
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
  // PostgreSQL's protocol and its parser end a string at NUL: what follows would be sent unseen.
  if (statement.includes("\0")) return Promise.reject(new LodestoneError("INVALID", "statement contains a NUL character."));
  if (!statement.isWellFormed())
    return Promise.reject(new LodestoneError("INVALID", "statement contains a lone surrogate; it is not valid Unicode."));
  const known = cache.get(statement);
  if (known !== undefined) return Promise.resolve(known);
  return new Promise((resolve, reject) => {
    const id = nextId++;
    waiting.set(id, { statement, resolve, reject });
    send(id, statement);
  });
}

function send(id: number, statement: string): void {
  worker ??= start();
  worker.ref();
  const request: ParseRequest = { id, statement };
  worker.postMessage(request);
  timer ??= setTimeout(() => replaceAfter("took too long"), PARSE_LIMIT_MS);
}

function start(): Worker {
  const started = new Worker(new URL("./parser-worker.js", import.meta.url), { argv: [], env: {} });
  started.on("message", (reply: ParseReply) => settle(started, reply));
  started.on("error", (error) => {
    if (worker === started) replaceAfter(String(error));
  });
  return started;
}

function settle(from: Worker, reply: ParseReply): void {
  if (from !== worker) return;
  const request = waiting.get(reply.id)!;
  if ("broken" in reply) {
    replaceAfter(reply.broken);
    return;
  }
  waiting.delete(reply.id);
  if (timer !== null) clearTimeout(timer);
  timer = waiting.size === 0 ? null : setTimeout(() => replaceAfter("took too long"), PARSE_LIMIT_MS);
  if (waiting.size === 0) from.unref(); // an idle parser does not keep the process alive
  if ("analysis" in reply) {
    remember(request.statement, reply.analysis);
    request.resolve(reply.analysis);
  } else {
    request.reject(new LodestoneError("INVALID", `${reply.fault}${reply.position === null ? "" : ` (at character ${reply.position})`}`));
  }
}

/** The oldest statement is the one that broke the thread (they are worked on in order): it fails, the others are sent to a new thread. */
function replaceAfter(_reason: string): void {
  const broken = worker;
  worker = null;
  if (timer !== null) clearTimeout(timer);
  timer = null;
  void broken?.terminate();
  const [culprit] = waiting.keys();
  if (culprit === undefined) return;
  waiting
    .get(culprit)!
    .reject(
      new LodestoneError("INVALID", "statement is nested too deeply or is too long to be parsed. Send values in params, or split it."),
    );
  waiting.delete(culprit);
  for (const [id, { statement }] of waiting) send(id, statement);
}

function remember(statement: string, analysis: StatementAnalysis): void {
  if (statement.length > CACHED_CHARACTERS_EACH) return;
  if (cache.size >= CACHED_STATEMENTS) cache.delete(cache.keys().next().value!);
  cache.set(statement, analysis);
}
