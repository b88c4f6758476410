/**
 * The thread that parses and analyses users' statements.
 *
 * Why a thread: a long statement takes a while (200,000 literals: 400 ms). One that is nested too deeply
 * overflows the stack inside the WASM parser, which does not restore its own stack pointer then; after a few
 * such statements the parser's memory is damaged and its results mean nothing. So after anything but a clean
 * result this thread is not used again (parser.ts ends it).
 */
import { parentPort } from "node:worker_threads";
import { hasSqlDetails, loadModule, parseSync } from "libpg-query";
import { analyse, type StatementAnalysis } from "./analyse.ts";
import { Refusal } from "./grammar.ts";

export type ParseReply =
  /** The first message: from now on statements are parsed. */
  | { readonly isReady: true }
  | { readonly analysis: StatementAnalysis }
  /** `position`: counted in characters from 1, as PostgreSQL does; null if there is none. */
  | { readonly fault: string; readonly position: number | null }
  /** The parser broke: the thread must be ended. */
  | { readonly broken: string };

const port = parentPort!;
await loadModule();
port.postMessage({ isReady: true } satisfies ParseReply);

port.on("message", (statement: string) => {
  port.postMessage(reply(statement));
});

function reply(statement: string): ParseReply {
  try {
    return { analysis: analyse(parseSync(statement).stmts ?? []) };
  } catch (error) {
    if (error instanceof Refusal)
      return { fault: error.message, position: error.location < 0 ? null : characters(statement, error.location) + 1 };
    if (hasSqlDetails(error)) {
      const position = error.sqlDetails?.cursorPosition ?? -1; // from 0
      return { fault: error.message, position: position < 0 ? null : position + 1 };
    }
    return { broken: String(error) };
  }
}

/** Locations are bytes of UTF-8; people count characters. */
function characters(statement: string, bytes: number): number {
  return Buffer.from(statement, "utf8").subarray(0, bytes).toString("utf8").length;
}
