/**
 * Scans JSON text without parsing it: the one scanner, for everything that needs to know something about a text
 * before, or instead of, parsing it. Iterative and linear. In text that is not JSON its findings mean nothing, but
 * it always ends.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const LIST_BEGIN = 0x5b;
export const LIST_END = 0x5d;
export const OBJECT_BEGIN = 0x7b;
export const OBJECT_END = 0x7d;

/**
 * The next bracket, brace, comma or colon outside of strings, from `from` on.
 *
 * @returns its index; `to` or more when there is none before `to` (more: a string goes on beyond it, and this
 *   is its end).
 */
export function nextMark(text: string, from: number, to: number): number {
  let at = from;
  for (; at < to; at++) {
    switch (text.charCodeAt(at)) {
      case LIST_BEGIN:
      case LIST_END:
      case OBJECT_BEGIN:
      case OBJECT_END:
      case COMMA:
      case COLON:
        return at;
      case QUOTE:
        at = endOfString(text, at);
    }
  }
  return at;
}

/** @param begin of a string's opening quote. @returns the index of its closing quote, or the text's end. */
export function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

/** @param begin of a value. @returns the index just behind it. */
export function endOfValue(text: string, begin: number): number {
  const first = text.charCodeAt(begin);
  if (first === QUOTE) return endOfString(text, begin) + 1;
  if (first !== LIST_BEGIN && first !== OBJECT_BEGIN) {
    let end = begin;
    while (end < text.length && !",]} \t\n\r".includes(text[end]!)) end++;
    return end;
  }
  let depth = 0;
  for (let at = begin; at < text.length; at = nextMark(text, at + 1, text.length)) {
    const mark = text.charCodeAt(at);
    if (mark === LIST_BEGIN || mark === OBJECT_BEGIN) depth++;
    else if ((mark === LIST_END || mark === OBJECT_END) && --depth === 0) return at + 1;
  }
  return text.length;
}

/** The deepest nesting of objects and lists. */
export function jsonDepth(text: string): number {
  const scan = new DepthScan(text);
  scan.scan(text.length);
  return scan.deepest;
}

/** The deepest nesting of a text that is scanned part by part. */
export class DepthScan {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  deepest = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Goes on to `to`. */
  scan(to: number): void {
    const text = this.#text;
    let depth = this.#depth;
    let deepest = this.deepest;
    let at = nextMark(text, this.#at, to);
    for (; at < to; at = nextMark(text, at + 1, to)) {
      const mark = text.charCodeAt(at);
      if (mark === LIST_BEGIN || mark === OBJECT_BEGIN) deepest = Math.max(deepest, ++depth);
      else if (mark === LIST_END || mark === OBJECT_END) depth--;
    }
    this.#at = at;
    this.#depth = depth;
    this.deepest = deepest;
  }
}

/** Where a value begins and ends in the text: `text.slice(begin, end)`. */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** The elements of the list, of valid JSON, that begins at `begin`. */
export function* elementsOf(text: string, begin: number): Generator<Span, void, undefined> {
  for (let at = skipBlanks(text, begin + 1); at < text.length && text.charCodeAt(at) !== LIST_END; ) {
    const end = endOfValue(text, at);
    yield { begin: at, end };
    at = skipBlanks(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipBlanks(text, at + 1);
  }
}

/** The members of the object, of valid JSON, that begins at `begin`: keys as they are written, with their escapes. */
export function* membersOf(text: string, begin: number): Generator<readonly [key: string, value: Span], void, undefined> {
  for (let at = skipBlanks(text, begin + 1); at < text.length && text.charCodeAt(at) !== OBJECT_END; ) {
    const endOfKey = endOfString(text, at);
    const value = skipBlanks(text, skipBlanks(text, endOfKey + 1) + 1);
    const end = endOfValue(text, value);
    yield [text.slice(at + 1, endOfKey), { begin: value, end }];
    at = skipBlanks(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipBlanks(text, at + 1);
  }
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (at < text.length && " \t\n\r".includes(text[at]!)) at++;
  return at;
}
