/**
 * A value as JSON text, piece by piece: other callers are served in between, and an answer is never held as one
 * text. Together the pieces are what JSON.stringify gives, except for ExactJson, which is written as it is. Not
 * recursive: values may be nested to any depth.
 */
import { isHighSurrogate } from "../text/surrogates.ts";
import { ExactJson } from "./exact-json.ts";

/** The weight, in characters (roughly), up to which a value is written at once. */
const PIECE_WEIGHT = 32 * 1024;
/** What a number, a literal or brackets weigh. */
const VALUE_WEIGHT = 8;
/**
 * A deeper value counts as infinitely heavy: its outermost level is written by itself, and what is in it weighed
 * again. JSON.stringify is recursive, and each level may be looked at this often.
 */
const MAX_DEPTH_AT_ONCE = 32;

/** Whether the value weighs more than about `limit` characters of JSON. Inspects no more of it than that. */
export function isHeavierThan(value: unknown, limit: number): boolean {
  return weigh(value, limit, 0) > limit;
}

/** @param value  of plain objects, lists, texts, finite numbers, booleans, null and ExactJson; members that are undefined are left out. */
export function* jsonPieces(value: unknown): Generator<string, void, undefined> {
  // Joined, not added up: a text that was added up takes 32 bytes for each of its parts for as long as it is kept.
  let texts: string[] = [];
  let length = 0;
  for (const part of parts(value)) {
    texts.push(part);
    length += part.length;
    if (length < PIECE_WEIGHT) continue;
    yield texts.join("");
    texts = [];
    length = 0;
  }
  if (length > 0) yield texts.join("");
}

/** A list or an object that is being written. */
interface Open {
  readonly value: Readonly<Record<string | number, unknown>>;
  /** undefined: a list. */
  readonly keys: readonly string[] | undefined;
  readonly length: number;
  at: number;
  /** Whether something is written already. */
  isBegun: boolean;
}

function* parts(root: unknown): Generator<string, void, undefined> {
  const open: Open[] = [];
  let value = root;
  for (;;) {
    if (value instanceof ExactJson) yield* pieces(value.text);
    else if (typeof value === "string" && value.length > PIECE_WEIGHT) yield* longString(value);
    else if (typeof value !== "object" || value === null || !isHeavierThan(value, PIECE_WEIGHT)) yield JSON.stringify(value);
    else {
      const keys = Array.isArray(value) ? undefined : Object.keys(value);
      const length = keys?.length ?? (value as unknown[]).length;
      open.push({ value: value as Open["value"], keys, length, at: 0, isBegun: false });
      yield keys === undefined ? "[" : "{";
    }
    // On to the next value: the next element or member of the innermost, closing what is done.
    for (;;) {
      const innermost = open.at(-1);
      if (innermost === undefined) return;
      const key = nextKey(innermost);
      if (key === undefined) {
        yield innermost.keys === undefined ? "]" : "}";
        open.pop();
        continue;
      }
      const comma = innermost.isBegun ? "," : "";
      innermost.isBegun = true;
      yield typeof key === "number" ? comma : `${comma}${JSON.stringify(key)}:`;
      value = innermost.value[key] ?? null;
      break;
    }
  }
}

/** A text as JSON.stringify writes it, in parts, because a long one would take too long at once. */
function* longString(text: string): Generator<string, void, undefined> {
  yield '"';
  for (const piece of pieces(text)) yield JSON.stringify(piece).slice(1, -1);
  yield '"';
}

/** Parts of a text, none of which ends within a surrogate pair. */
function* pieces(text: string): Generator<string, void, undefined> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PIECE_WEIGHT, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++;
    yield text.slice(start, end);
    start = end;
  }
}

/** Members that are undefined are passed over. */
function nextKey(open: Open): string | number | undefined {
  while (open.at < open.length) {
    const at = open.at++;
    if (open.keys === undefined) return at;
    const key = open.keys[at]!;
    if (open.value[key] !== undefined) return key;
  }
  return undefined;
}

function weigh(value: unknown, limit: number, depth: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return VALUE_WEIGHT;
  if (depth > MAX_DEPTH_AT_ONCE || value instanceof ExactJson) return Number.POSITIVE_INFINITY;
  let weight = VALUE_WEIGHT;
  if (Array.isArray(value)) {
    for (const element of value) {
      weight += weigh(element, limit - weight, depth + 1);
      if (weight > limit) break;
    }
    return weight;
  }
  for (const key in value) {
    weight += key.length + 4 + weigh((value as Record<string, unknown>)[key], limit - weight, depth + 1);
    if (weight > limit) break;
  }
  return weight;
}
