/**
 * Which JSON text a json column accepts: text that both JavaScript and PostgreSQL can read, nested not too deep
 * for either.
 */
import { jsonDepth } from "../../../json-scan.ts";
import { MAX_JSON_DEPTH } from "../../json-depth.ts";

/**
 * PostgreSQL alone parses longer texts: it has a thread of its own and rejects the same ones
 * (constraint-errors.ts). Parsing them here would hold up everybody.
 */
const LONG_TEXT = 256 * 1024;

/** What is wrong with it, or undefined. Linear; the depth is known before anything recursive runs. */
export function checkJsonText(source: string): string | undefined {
  if (jsonDepth(source) > MAX_JSON_DEPTH) return `it is nested deeper than ${MAX_JSON_DEPTH} levels`;
  // Raw and escaped alike: jsonb can hold neither.
  if (/\\u0000/.test(source) && hasEscapedNul(source)) return "it holds the character U+0000, which jsonb cannot";
  if (source.length > LONG_TEXT) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch (error) {
    return `it is not JSON (${error instanceof Error ? error.message : String(error)})`;
  }
  if (/\\u[dD][89a-fA-F]/.test(source) || /\p{Surrogate}/u.test(source)) {
    // JSON.stringify writes a lone surrogate as an escape, and only a lone one.
    if (/(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/.test(JSON.stringify(value))) return "it holds a lone surrogate (half of a UTF-16 pair)";
  }
  return undefined;
}

/** An even number of backslashes before `\u0000` would make it the six characters themselves. */
function hasEscapedNul(source: string): boolean {
  return /(?<!\\)(?:\\\\)*\\u0000/.test(source);
}
