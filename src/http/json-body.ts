/**
 * Text to a JSON value that every layer below may trust: bounded in depth, only finite numbers, only text that PostgreSQL can hold (well-formed, no NUL), and
 * no `__proto__` key. What JSON.parse tolerates beyond that (duplicate keys: the last one counts) is tolerated.
 */
import { LodestoneError } from "../errors.ts";
import type { JsonValue } from "../records/record-store.ts";
import { findJsonFault } from "./json-fault.ts";

/** Above it a hostile text could keep the event loop busy: its depth is looked at before it is parsed, and the place of its fault is not searched for. */
const LARGE_TEXT_LENGTH = 1 << 20;

/** @throws {LodestoneError} INVALID, with the position or the path of the fault. */
export function parseJsonBody(text: string, maxDepth: number): JsonValue {
  const isLarge = text.length > LARGE_TEXT_LENGTH;
  if (isLarge && isDeeperThan(text, maxDepth)) throw new LodestoneError("INVALID", `body: nested deeper than ${maxDepth} levels`);
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LodestoneError("INVALID", `The body is not valid JSON: ${isLarge ? (error as Error).message : findJsonFault(text)}.`);
  }
  const fault = findFault(value, maxDepth);
  if (fault?.message === TOO_DEEP) throw new LodestoneError("INVALID", `${pathOf(fault.path)}: nested deeper than ${maxDepth} levels`);
  if (fault !== undefined) throw new LodestoneError("INVALID", `${pathOf(fault.path)}: ${fault.message}`);
  return value;
}

const TOO_DEEP = "nested too deep";

/** Counts brackets outside of strings. For a text that is no JSON it may say anything. */
function isDeeperThan(text: string, maxDepth: number): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > maxDepth) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case 0x22: {
        i = endOfString(text, i);
        break;
      }
    }
  }
  return false;
}

/** @param begin of a string's opening quote. @returns the index of its closing quote, or the text's end. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

interface Fault {
  readonly message: string;
  /** Innermost key first. */
  readonly path: (string | number)[];
}

function findFault(value: JsonValue, levelsLeft: number): Fault | undefined {
  switch (typeof value) {
    case "string":
      return findTextFault(value);
    case "number":
      return Number.isFinite(value) ? undefined : { message: "the number is too large for a double", path: [] };
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null) return undefined;
  if (levelsLeft === 0) return { message: TOO_DEEP, path: [] };
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = findFault(value[i] as JsonValue, levelsLeft - 1);
      if (fault !== undefined) return at(i, fault);
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    if (key === "__proto__") return { message: '"__proto__" is not allowed as a key', path: [] };
    const fault = findTextFault(key) ?? findFault(value[key] as JsonValue, levelsLeft - 1);
    if (fault !== undefined) return at(key, fault);
  }
  return undefined;
}

function at(key: string | number, fault: Fault): Fault {
  fault.path.push(key);
  return fault;
}

function findTextFault(text: string): Fault | undefined {
  if (text.includes("\u0000")) return { message: "text cannot contain the character NUL (\\u0000)", path: [] };
  if (!text.isWellFormed())
    return { message: "text contains half of a surrogate pair (\\ud800 to \\udfff), which is no character", path: [] };
  return undefined;
}

function pathOf(innermostFirst: readonly (string | number)[]): string {
  const path = innermostFirst
    .toReversed()
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`))
    .join("")
    .replace(/^\./, "");
  if (path === "") return "body";
  return path.length > 200 ? `${path.slice(0, 200).toWellFormed()}…` : path;
}
