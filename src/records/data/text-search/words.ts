/**
 * The words of a text, and how close they are to the words of a search. A word is a run of letters, digits and
 * marks. It is compared without case and accents ("Crème" is "creme"), by Levenshtein distance.
 */

import { fold } from "../../../filter/fold.ts";
import { isHighSurrogate } from "../../../text/surrogates.ts";

export interface Word {
  /** Where it stands in the text, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  readonly plain: string;
}

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** How much text is looked through without a pause, in UTF-16 units. */
const WINDOW_LENGTH = 65_536;
/**
 * How much of a longer word is compared: a text may be one word of megabytes, and such a word can only begin with
 * a searched one.
 */
const COMPARED_LENGTH = 4_096;
/** Combining diacritical marks; the same characters are removed in SQL (`plainSql`). */
const ACCENTS = "\u0300-\u036f";
const IS_ASCII = /^[ -~]*$/;
const ACCENT = new RegExp(`[${ACCENTS}]`, "g");
export const ACCENT_CLASS = `[${ACCENTS}]`;

/** Without case, accents and compatibility forms. `plainSql` computes the same. */
export function plain(text: string): string {
  return IS_ASCII.test(text) ? text.toLowerCase() : fold(text.normalize("NFKD").replace(ACCENT, ""));
}

/**
 * One by one, so that a long text can be left early, and others served between its words. An item with an empty
 * `plain` is not a word: it says that the text between `start` and `end` was looked through.
 */
export function* wordsIn(text: string): Generator<Word, void, undefined> {
  let word: { start: number; end: number; plain: string } | undefined;
  for (let at = 0; at < text.length; ) {
    let windowEnd = Math.min(at + WINDOW_LENGTH, text.length);
    if (windowEnd < text.length && isHighSurrogate(text.charCodeAt(windowEnd - 1))) windowEnd--;
    let next = windowEnd;
    for (const { 0: found, index } of text.slice(at, windowEnd).matchAll(WORD)) {
      const start = at + index;
      const end = start + found.length;
      if (word?.end === start) {
        // The previous word fills its window, and continues.
        word.end = end;
      } else if (end === windowEnd && end < text.length && index > 0) {
        // It may continue after the window: then it is the first word of the next.
        next = start;
      } else {
        if (word !== undefined) yield word;
        word = { start, end, plain: plain(found.slice(0, COMPARED_LENGTH)) };
      }
    }
    yield { start: at, end: windowEnd, plain: "" };
    at = next;
  }
  if (word !== undefined) yield word;
}

/** All of them, of a short text. */
export const wordsOf = (text: string): Word[] => [...wordsIn(text)].filter((word) => word.plain !== "");

/** A word of a search. */
export interface Term {
  readonly plain: string;
  /** How many letters may differ; none in words so short that they could not be recognised then. */
  readonly distance: number;
  /** The beginning of a word is enough. */
  readonly prefix: boolean;
}

export function termsOf(query: string, fuzziness: number, prefix: boolean): Term[] {
  const words = wordsOf(query).map((word) => word.plain);
  const last = words.at(-1);
  return [...new Set(words)].map((word) => ({
    plain: word,
    distance: Math.min(fuzziness, Math.floor((word.length - 1) / 2)),
    prefix: prefix && word === last,
  }));
}

/**
 * Texts of which a record must contain at least one, in its plain form, for any of its words to match: a word
 * within k edits of the term contains at least one of k + 1 pieces of the term unchanged (Wu and Manber, "Fast
 * text searching allowing errors", 1992). So PostgreSQL can skip most records.
 */
export function piecesOf(term: Term): string[] {
  const pieces: string[] = [];
  const count = term.distance + 1;
  for (let i = 0; i < count; i++) {
    const piece = term.plain.slice(Math.floor((i * term.plain.length) / count), Math.floor(((i + 1) * term.plain.length) / count));
    if (piece !== "" && isWhole(piece)) pieces.push(piece);
  }
  return pieces.length === count ? pieces : [""];
}

/** A piece that begins or ends inside a surrogate pair is not text. */
function isWhole(piece: string): boolean {
  return !/\p{Surrogate}/u.test(piece);
}

const QUALITY = [1, 0.6, 0.3] as const;
const PREFIX_QUALITY = 0.8;

/** 1 for the same word, less for the beginning of one and for each letter that differs, 0 for no match. */
export function matchQuality(term: Term, word: string): number {
  if (word === term.plain) return 1;
  if (term.prefix && word.startsWith(term.plain)) return PREFIX_QUALITY;
  if (term.distance === 0 || Math.abs(word.length - term.plain.length) > term.distance) return 0;
  const distance = levenshtein(term.plain, word, term.distance);
  return distance > term.distance ? 0 : QUALITY[distance]!;
}

/** A row of the matrix, kept from call to call. */
let row = new Uint16Array(64);

/**
 * The Levenshtein distance, or anything above `limit` once it is known to be above. Only the diagonal band in
 * which it can stay within the limit is computed (Ukkonen, "Algorithms for approximate string matching", 1985):
 * O(limit · length), and most pairs of words are told apart within their first letters.
 */
export function levenshtein(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  if (row.length <= b.length) row = new Uint16Array(2 * b.length);
  for (let j = 0; j <= b.length; j++) row[j] = j;
  for (let i = 1; i <= a.length; i++) {
    const first = Math.max(1, i - limit);
    const last = Math.min(b.length, i + limit);
    const letter = a.charCodeAt(i - 1);
    // Left of the band, and right of it by the numbers of the first row, everything is above the limit.
    let diagonal = row[first - 1]!;
    let left = first === 1 ? i : limit + 1;
    let least = left;
    row[first - 1] = left;
    for (let j = first; j <= last; j++) {
      const above = row[j]!;
      const replaced = letter === b.charCodeAt(j - 1) ? diagonal : diagonal + 1;
      left = Math.min(above + 1, left + 1, replaced);
      row[j] = left;
      diagonal = above;
      if (left < least) least = left;
    }
    if (least > limit) return least;
  }
  return row[b.length]!;
}

/**
 * The letters of a word as a set of 32: an edit takes away one letter at most and adds one at most, so words
 * that are few edits apart have sets that differ in few. Tells nearly all pairs apart in a few nanoseconds
 * each.
 */
function letterSet(word: string): number {
  let letters = 0;
  for (let i = 0; i < word.length; i++) letters |= 1 << (word.charCodeAt(i) & 31);
  return letters;
}

function hasMoreBitsThan(limit: number, bits: number): boolean {
  let left = bits;
  for (let i = 0; i < limit; i++) left &= left - 1;
  return left !== 0;
}

export interface TermMatch {
  /** Of the term, in the list. */
  readonly index: number;
  readonly quality: number;
}

/** Words repeat a lot: this many are remembered, and none longer than this. */
const MAX_REMEMBERED = 10_000;
const MAX_REMEMBERED_LENGTH = 40;
const NO_MATCH: readonly TermMatch[] = [];

/** All terms of a search against the words of its texts. */
export class TermMatcher {
  readonly #terms: readonly Term[];
  readonly #letters: Int32Array;
  readonly #remembered = new Map<string, readonly TermMatch[]>();
  #lastCost = 0;

  constructor(terms: readonly Term[]) {
    this.#terms = terms;
    this.#letters = Int32Array.from(terms, (term) => letterSet(term.plain));
  }

  /** The approximate cost of the last `match`, in letters compared. */
  get lastCost(): number {
    return this.#lastCost;
  }

  match({ plain: word, start, end }: Word): readonly TermMatch[] {
    this.#lastCost = 16 + end - start;
    if (word === "") return NO_MATCH;
    const known = this.#remembered.get(word);
    if (known !== undefined) return known;
    this.#lastCost += word.length + 2 * this.#terms.length;
    const found: TermMatch[] = [];
    const letters = letterSet(word);
    for (let index = 0; index < this.#terms.length; index++) {
      const term = this.#terms[index]!;
      const own = this.#letters[index]!;
      // The rest of the word may have letters of its own where a beginning will do.
      if (hasMoreBitsThan(term.distance, own & ~letters) || (!term.prefix && hasMoreBitsThan(term.distance, letters & ~own))) continue;
      this.#lastCost += 16;
      const quality = matchQuality(term, word);
      if (quality > 0) found.push({ index, quality });
    }
    const matches = found.length === 0 ? NO_MATCH : found;
    if (word.length > MAX_REMEMBERED_LENGTH) return matches;
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
    this.#remembered.set(word, matches);
    return matches;
  }
}
