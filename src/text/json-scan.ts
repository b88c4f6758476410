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
 * Finds the brackets, braces, commas and colons outside of strings, step by step. A step looks at no more of
 * the text than it is asked to, inside a long string too.
 */
export class MarkScan {
  readonly #text: string;
  #at: number;
  #isInString = false;
  /** The next quote, when it is not before `#at`: the search for it may go through the whole text, and is not repeated. */
  #quote = -1;

  /** @param from  outside of strings. */
  constructor(text: string, from = 0) {
    this.#text = text;
    this.#at = from;
  }

  /** Everything before it was looked at. */
  get position(): number {
    return this.#at;
  }

  /** Goes on to the next mark before `to`. @returns its index; undefined when there is none. */
  next(to: number): number | undefined {
    const text = this.#text;
    let at = this.#at;
    while (at < to) {
      if (this.#isInString) {
        at = this.#skip(at, to);
        continue;
      }
      switch (text.charCodeAt(at)) {
        case LIST_BEGIN:
        case LIST_END:
        case OBJECT_BEGIN:
        case OBJECT_END:
        case COMMA:
        case COLON:
          this.#at = at + 1;
          return at;
        case QUOTE:
          this.#isInString = true;
      }
      at++;
    }
    this.#at = at;
    return undefined;
  }

  /** From inside a string, but not inside an escape, on to such a place at `to` or later, or behind the string. */
  #skip(at: number, to: number): number {
    const text = this.#text;
    if (this.#quote < at) {
      const quote = text.indexOf('"', at);
      this.#quote = quote === -1 ? text.length : quote;
    }
    const end = Math.min(this.#quote, to);
    let backslashes = 0;
    while (end - 1 - backslashes >= at && text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 1) return end + 1;
    if (end < this.#quote) return end;
    this.#isInString = false;
    return end + 1;
  }
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
  const scan = new MarkScan(text, begin);
  for (let at = scan.next(text.length); at !== undefined; at = scan.next(text.length)) {
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
  readonly #marks: MarkScan;
  #depth = 0;
  deepest = 0;

  constructor(text: string) {
    this.#text = text;
    this.#marks = new MarkScan(text);
  }

  /** Goes on to `to`. */
  scan(to: number): void {
    for (let at = this.#marks.next(to); at !== undefined; at = this.#marks.next(to)) {
      const mark = this.#text.charCodeAt(at);
      if (mark === LIST_BEGIN || mark === OBJECT_BEGIN) this.deepest = Math.max(this.deepest, ++this.#depth);
      else if (mark === LIST_END || mark === OBJECT_END) this.#depth--;
    }
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
