/**
 * What a query looks for, and how well a word of a text matches it. Distances are edits of one letter each:
 * inserted, left out, replaced, or two neighbours transposed.
 */
import { isSingleCharacter, type Word } from "./words.ts";

/** A word of a query. */
export interface Term {
  readonly plain: string;
  /** How often the query says it. */
  readonly count: number;
  /** How many edits it may be away; none in words so short that they could not be recognised then. */
  readonly distance: number;
  /** The beginning of a word is enough. */
  readonly prefix: boolean;
  /** Of a phrase in quotes: looked for as it is, without stems. */
  readonly isQuoted?: boolean;
  /** Its stem, where the language is known (`withStem`): words of the same stem match. */
  readonly stem?: string;
  /** One character of a script without spaces: any word that contains it matches. */
  readonly isCharacter?: boolean;
}

/** The stem of a word in lower case: "connected" and "connection" have the stem "connect". */
export type Stemmer = (word: string) => string;

export function termsOf(words: readonly string[], fuzziness: number, prefix: string | undefined): Term[] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].map(([word, count]) => ({
    plain: word,
    count,
    distance: Math.min(fuzziness, Math.floor((word.length - 1) / 2)),
    prefix: word === prefix,
    ...(isSingleCharacter(word) ? { isCharacter: true } : {}),
  }));
}

/** The term as it is looked for in texts of the stemmer's language. */
export function withStem(term: Term, stemmer: Stemmer | undefined): Term {
  const hasNone = stemmer === undefined || term.isQuoted === true || term.isCharacter === true;
  return hasNone ? term : { ...term, stem: stemmer(term.plain) };
}

/**
 * In tenths, so that sums of qualities are whole numbers, the same in whatever order they are added: the same
 * word, the beginning of it, another word of the same stem, and words one and two edits away. Where stems are known,
 * other forms of a word are found by them, and a word one edit away is more often another word.
 */
export const SAME_WORD = 10;
const PREFIX = 8;
const SAME_STEM = 8;
const EDITED = [SAME_WORD, 6, 3] as const;
const EDITED_BESIDE_STEMS = [SAME_WORD, 5, 3] as const;

/** 10 for the same word, less for others that match, 0 for those that do not. @param stemmer  that of `term.stem`. */
export function matchQuality(term: Term, word: string, stemmer?: Stemmer): number {
  if (word === term.plain) return SAME_WORD;
  if (term.prefix && word.startsWith(term.plain)) return PREFIX;
  if (term.isCharacter === true) return word.includes(term.plain) ? SAME_WORD : 0;
  if (term.stem !== undefined && stemmer !== undefined && stemmer(word) === term.stem) return SAME_STEM;
  return editQuality(term, word);
}

export function editQuality(term: Term, word: string): number {
  if (term.distance === 0 || Math.abs(word.length - term.plain.length) > term.distance) return 0;
  const distance = editDistance(term.plain, word, term.distance);
  return distance > term.distance ? 0 : (term.stem === undefined ? EDITED : EDITED_BESIDE_STEMS)[distance]!;
}

/** Three rows of the matrix, kept from call to call. */
let rows: [Uint16Array, Uint16Array, Uint16Array] | undefined;

function threeRows(length: number): [Uint16Array, Uint16Array, Uint16Array] {
  return [new Uint16Array(length), new Uint16Array(length), new Uint16Array(length)];
}

/**
 * The optimal string alignment distance: edits of one letter and transpositions of two neighbours, no part edited
 * twice. Anything above `limit` once it is known to be above: only the diagonal band in which it can stay within
 * the limit is computed (Ukkonen, "Algorithms for approximate string matching", 1985): O(limit · length).
 */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  if (rows === undefined || rows[0].length <= b.length) rows = threeRows(Math.max(64, 2 * b.length));
  let [beforeLast, last, row] = rows;
  for (let j = 0; j <= b.length; j++) last[j] = j;
  let leastOfLast = 0;
  for (let i = 1; i <= a.length; i++) {
    const first = Math.max(1, i - limit);
    const end = Math.min(b.length, i + limit);
    const letter = a.charCodeAt(i - 1);
    const letterBefore = i > 1 ? a.charCodeAt(i - 2) : -1;
    // Left and right of the band everything is above the limit.
    row[first - 1] = first === 1 ? i : limit + 1;
    let least = row[first - 1]!;
    for (let j = first; j <= end; j++) {
      const other = b.charCodeAt(j - 1);
      const above = j === i + limit ? limit + 1 : last[j]!;
      let distance = Math.min(above + 1, row[j - 1]! + 1, last[j - 1]! + (letter === other ? 0 : 1));
      if (j > 1 && letterBefore === other && letter === b.charCodeAt(j - 2)) distance = Math.min(distance, beforeLast[j - 2]! + 1);
      row[j] = distance;
      if (distance < least) least = distance;
    }
    // A transposition reaches back two rows.
    if (least > limit && leastOfLast > limit) return least;
    leastOfLast = least;
    [beforeLast, last, row] = [last, row, beforeLast];
  }
  return last[b.length]!;
}

/**
 * The letters of a word as a set of 32: an edit takes away one letter at most and adds one at most (a
 * transposition none), so words that are few edits apart have sets that differ in few. Tells nearly all pairs
 * apart in a few nanoseconds each.
 */
export function letterSet(word: string): number {
  let letters = 0;
  for (let i = 0; i < word.length; i++) letters |= 1 << (word.charCodeAt(i) & 31);
  return letters;
}

export function hasMoreBitsThan(limit: number, bits: number): boolean {
  let left = bits;
  for (let i = 0; i < limit; i++) left &= left - 1;
  return left !== 0;
}

/** Words repeat a lot: this many are remembered, and none longer than this. */
const MAX_REMEMBERED = 10_000;
const MAX_REMEMBERED_LENGTH = 40;

/** No term is more edits away. */
const MAX_DISTANCE = 2;
/** A letter of a word whose stem is made, in letters compared. */
const STEM_COST = 128;

/**
 * Whether words of a text match any term of a query, for marking them: `matchQuality` above 0, without asking it of each
 * term. A query may have a thousand terms, and a text as many words: a word is looked up among those of the query and their
 * stems, and compared by edits only with terms of about its length that have about its letters.
 */
export class TermMatcher {
  readonly #words: ReadonlySet<string>;
  readonly #stems: ReadonlySet<string>;
  /** Those of which a part of a word is enough. */
  readonly #parts: readonly Term[];
  /** By length: those that may be some edits away. */
  readonly #edited = new Map<number, { readonly term: Term; readonly letters: number }[]>();
  readonly #stemmer: Stemmer | undefined;
  readonly #remembered = new Map<string, boolean>();
  #lastCost = 0;

  constructor(terms: readonly Term[], stemmer?: Stemmer) {
    const own = terms.map((term) => withStem(term, stemmer));
    this.#words = new Set(own.map(({ plain }) => plain));
    this.#stems = new Set(own.flatMap(({ stem = [] }) => stem));
    this.#parts = own.filter(({ prefix, isCharacter }) => prefix || isCharacter === true);
    for (const term of own) {
      if (term.distance === 0) continue;
      const ofLength = this.#edited.get(term.plain.length) ?? [];
      ofLength.push({ term, letters: letterSet(term.plain) });
      this.#edited.set(term.plain.length, ofLength);
    }
    this.#stemmer = stemmer;
  }

  /** The approximate cost of the last `matches`, in letters compared. */
  get lastCost(): number {
    return this.#lastCost;
  }

  matches({ plain: word, start, end }: Word): boolean {
    this.#lastCost = 16 + end - start;
    if (word === "") return false;
    const known = this.#remembered.get(word);
    if (known !== undefined) return known;
    const isMatch = this.#words.has(word) || this.#isPartly(word) || this.#hasStem(word) || this.#isEdited(word);
    if (word.length > MAX_REMEMBERED_LENGTH) return isMatch;
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
    this.#remembered.set(word, isMatch);
    return isMatch;
  }

  #isPartly(word: string): boolean {
    this.#lastCost += this.#parts.length * word.length;
    return this.#parts.some(({ plain, prefix }) => (prefix ? word.startsWith(plain) : word.includes(plain)));
  }

  #hasStem(word: string): boolean {
    if (this.#stemmer === undefined || this.#stems.size === 0) return false;
    this.#lastCost += STEM_COST * word.length;
    return this.#stems.has(this.#stemmer(word));
  }

  #isEdited(word: string): boolean {
    if (this.#edited.size === 0) return false;
    const letters = letterSet(word);
    for (let length = word.length - MAX_DISTANCE; length <= word.length + MAX_DISTANCE; length++) {
      const ofLength = this.#edited.get(length) ?? [];
      this.#lastCost += ofLength.length;
      for (const { term, letters: own } of ofLength) {
        const { distance, plain } = term;
        if (Math.abs(length - word.length) > distance) continue;
        if (hasMoreBitsThan(distance, own & ~letters) || hasMoreBitsThan(distance, letters & ~own)) continue;
        this.#lastCost += 4 * length;
        if (editDistance(plain, word, distance) <= distance) return true;
      }
    }
    return false;
  }
}
