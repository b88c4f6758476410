/**
 * One life of the thread that parses statements, seen from the main thread. It takes one statement at a time.
 * After one that broke it, it is ended and never used again (parser-worker.ts says why).
 */
import { Worker } from "node:worker_threads";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { TEST_ENVIRONMENT } from "../../files/fault-points.ts";
import type { StatementAnalysis } from "./analyse.ts";
import type { ParseReply } from "./parser-worker.ts";

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
