/**
 * Words of a text and how near they are to words that are searched for. A word is a run of letters, digits and marks; it is compared without case and
 * without accents ("Crème" is "creme"), by Levenshtein distance.
 */
import { fold } from "../../../filter/fold.ts";

export interface Word {
  /** Where it stands in the text, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  readonly plain: string;
}

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Combining diacritical marks; the same characters are removed in SQL (`plainSql`). */
const ACCENTS = "\u0300-\u036f";
const ACCENT = new RegExp(`[${ACCENTS}]`, "g");
export const ACCENT_CLASS = `[${ACCENTS}]`;

/** Without case, accents and compatibility forms. `plainSql` computes the same. */
export function plain(text: string): string {
  return fold(text.normalize("NFKD").replace(ACCENT, ""));
}

export function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  for (const match of text.matchAll(WORD)) words.push({ start: match.index, end: match.index + match[0].length, plain: plain(match[0]) });
  return words;
}

/** A word that is searched for. */
export interface Term {
  readonly plain: string;
  /** How many letters may differ; none in words too short to be recognised then. */
  readonly distance: number;
  /** The beginning of a word will do. */
  readonly prefix: boolean;
}

export function termsOf(query: string, fuzziness: number, prefix: boolean): Term[] {
  const plains = [...new Set(wordsOf(query).map((word) => word.plain))];
  const last = wordsOf(query).at(-1)?.plain;
  return plains.map((word) => ({
    plain: word,
    distance: Math.min(fuzziness, Math.floor((word.length - 1) / 2)),
    prefix: prefix && word === last,
  }));
}

/**
 * Texts of which a record must hold at least one, in its plain form, for any of its words to match: a word within k edits of the term holds at least one of
 * k + 1 pieces of the term unharmed (Wu and Manber, "Fast text searching allowing errors", 1992). So PostgreSQL can pass over most records.
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

/** A cut through a surrogate pair is no text. */
function isWhole(piece: string): boolean {
  return !/\p{Surrogate}/u.test(piece);
}

const QUALITY = [1, 0.6, 0.3] as const;
const PREFIX_QUALITY = 0.8;

/** 1 for the very word, less for the beginning of one and for each letter that differs, 0 for no match. */
export function matchQuality(term: Term, word: string): number {
  if (word === term.plain) return 1;
  if (term.prefix && word.startsWith(term.plain)) return PREFIX_QUALITY;
  if (term.distance === 0 || Math.abs(word.length - term.plain.length) > term.distance) return 0;
  const distance = levenshtein(term.plain, word, term.distance);
  return distance > term.distance ? 0 : QUALITY[distance]!;
}

/** The Levenshtein distance, or anything above `limit` once it is known to be above. */
export function levenshtein(a: string, b: string, limit: number): number {
  let before = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const cost = Math.min(before[j]! + 1, row[j - 1]! + 1, before[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
      row.push(cost);
      if (cost < least) least = cost;
    }
    if (least > limit) return least;
    before = row;
  }
  return before[b.length]!;
}
