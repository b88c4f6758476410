/**
 * Which JSON text a json column accepts: text that both JavaScript and PostgreSQL can read, nested not too deep
 * for either.
 */

import { DepthScan } from "../../../text/json-scan.ts";
import { Slices } from "../../../threads/event-loop.ts";
import { MAX_JSON_DEPTH } from "../../catalog/json-limits.ts";
import { isHeavierThan, jsonPieces } from "../../json-pieces.ts";

/**
 * PostgreSQL alone parses longer texts: it has a thread of its own and rejects the same ones
 * (constraint-errors.ts). Parsing them here would block all callers.
 */
const LONG_TEXT = 256 * 1024;
/** Characters that are inspected in one slice. */
const STEP = 64 * 1024;
/** Characters that are written in one slice: a fiftieth of a second if they are small lists. */
const SLICE_LENGTH = 2 * STEP;
const ESCAPED_NUL = "\\u0000";

export interface ColumnJson {
  /** JSON text, if there is no error. */
  readonly text: string;
  /** What is wrong with it, or undefined. */
  readonly fault: string | undefined;
}

/** A string is JSON text, as the SDK sends it; anything else is the value itself. Linear in what was sent. */
export function jsonOf(sent: unknown): ColumnJson {
  const text = typeof sent === "string" ? sent : JSON.stringify(sent);
  const check = new TextCheck(text);
  while (!check.isDone) check.step();
  return { text, fault: check.fault };
}

/** Whether `jsonOf` would take more than a few milliseconds. Inspects no more of the value than it must. */
export function isLongJson(sent: unknown): boolean {
  return typeof sent === "string" ? sent.length > LONG_TEXT : isHeavierThan(sent, LONG_TEXT);
}

/** Like `jsonOf`, in slices; other callers are served between them. */
export async function longJsonOf(sent: unknown): Promise<ColumnJson> {
  const slices = new Slices(SLICE_LENGTH);
  const pieces: string[] = [];
  for (const piece of typeof sent === "string" ? [sent] : jsonPieces(sent)) {
    pieces.push(piece);
    if (slices.spend(piece.length)) await slices.rest();
  }
  const text = pieces.join("");
  const check = new TextCheck(text);
  while (!check.isDone) {
    check.step();
    if (slices.spend(STEP)) await slices.rest();
  }
  return { text, fault: check.fault };
}

/** The depth is known before anything recursive runs. */
class TextCheck {
  readonly #text: string;
  readonly #depth: DepthScan;
  readonly #nuls: EscapedNulScan;
  #checked = 0;
  fault: string | undefined;
  isDone = false;

  constructor(text: string) {
    this.#text = text;
    this.#depth = new DepthScan(text);
    this.#nuls = new EscapedNulScan(text);
  }

  step(): void {
    this.#checked = Math.min(this.#checked + STEP, this.#text.length);
    this.#depth.scan(this.#checked);
    if (this.#depth.deepest > MAX_JSON_DEPTH) this.fault = `it is nested deeper than ${MAX_JSON_DEPTH} levels`;
    // Raw and escaped alike: jsonb can hold neither.
    else if (this.#nuls.finds(this.#checked)) this.fault = "it holds the character U+0000, which jsonb cannot";
    else if (this.#checked === this.#text.length && this.#text.length <= LONG_TEXT) this.fault = faultOfParsing(this.#text);
    this.isDone = this.fault !== undefined || this.#checked === this.#text.length;
  }
}

/** Looks for an escaped NUL, part by part. */
class EscapedNulScan {
  readonly #text: string;
  /** Not in the middle of a pair of backslashes: behind an even number of them, or none. */
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Goes on to `to`, and a character further if that is escaped. @returns whether an escaped NUL begins before `to`. */
  finds(to: number): boolean {
    let at = this.#at;
    // Behind `to` there may be the rest of it.
    const part = this.#text.slice(0, to + ESCAPED_NUL.length - 1);
    for (let found = part.indexOf(ESCAPED_NUL, at); found !== -1; found = part.indexOf(ESCAPED_NUL, at)) {
      // An odd number of backslashes before it makes it the six characters themselves.
      if (this.#backslashes(at, found) % 2 === 0) return true;
      at = found + 1;
    }
    const end = Math.max(at, to);
    this.#at = end + (this.#backslashes(at, end) % 2);
    return false;
  }

  /** How many there are right before `end`, from `begin` on. */
  #backslashes(begin: number, end: number): number {
    let at = end;
    while (at > begin && this.#text[at - 1] === "\\") at--;
    return end - at;
  }
}

function faultOfParsing(text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `it is not JSON (${error instanceof Error ? error.message : String(error)})`;
  }
  if (/\\u[dD][89a-fA-F]/.test(text) || /\p{Surrogate}/u.test(text)) {
    // JSON.stringify writes a lone surrogate as an escape, and only a lone one.
    if (/(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/.test(JSON.stringify(value))) return "it holds a lone surrogate (half of a UTF-16 pair)";
  }
  return undefined;
}
