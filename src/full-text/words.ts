/**
 * The words of a text. A word is a run of letters, digits and marks, compared without case, accents and
 * compatibility forms: "Crème" is "creme". Scripts that are written without spaces between words (Han, Kana,
 * Hangul, Thai, Lao, Khmer) are cut into overlapping pairs of characters, bigrams, as search engines do: a word is
 * then found inside any run that contains it. `Intl.Segmenter` would know more words, and others in every engine.
 */

import { fold } from "../filter/fold.ts";
import { isHighSurrogate } from "../text/surrogates.ts";

export interface Word {
  /** Where it stands in the text, in UTF-16 units. Bigrams overlap. */
  readonly start: number;
  readonly end: number;
  readonly plain: string;
}

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
// Literals, and nothing that is made when this is imported: bundlers leave out what is not used.
const HAS_UNSEGMENTED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\u30fc\uff70]/u;
/** A run of characters written without spaces, or of others. Marks belong to the character before them. */
const RUNS =
  /(?:[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\u30fc\uff70]\p{M}*)+|[^\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\u30fc\uff70]+/gu;
const UNITS = /.\p{M}*/gu;

/** How much text is looked through without a pause, in UTF-16 units. */
const WINDOW_LENGTH = 65_536;
/** Of a longer word, this much is compared: a text may be one word of megabytes. */
const MAX_WORD_LENGTH = 256;
const IS_ASCII = /^[ -~\s]*$/;
/** Combining diacritical marks. */
const ACCENT = /[\u0300-\u036f]/g;
/** Letters that Unicode does not decompose, and that people leave out or write as these. */
const PLAIN_LETTERS: Readonly<Record<string, string>> = { ø: "o", ł: "l", ß: "ss", æ: "ae", œ: "oe", ı: "i", đ: "d", ð: "d", þ: "th" };
const SPECIAL_LETTERS = /[øłßæœıđðþ]/g;

/** Without case, accents and compatibility forms. */
export function plain(text: string): string {
  if (IS_ASCII.test(text)) return text.toLowerCase();
  return fold(text.normalize("NFKD").replace(ACCENT, "")).replace(SPECIAL_LETTERS, (letter) => PLAIN_LETTERS[letter]!);
}

/**
 * The plain words of a text, for an index: no places, and no object for each word. Yields the text looked through
 * since the last time, in UTF-16 units, so that others can be served between two windows of a long text.
 */
export function* visitWords(text: string, visit: (word: string) => void): Generator<number, void, undefined> {
  if (text.length > WINDOW_LENGTH || !IS_ASCII.test(text)) {
    for (const { plain: word, start, end } of wordsIn(text)) {
      if (word !== "") visit(word);
      else yield end - start;
    }
    return;
  }
  // Most texts; eight times as fast.
  const lower = text.toLowerCase();
  let start = -1;
  for (let at = 0; at < lower.length; at++) {
    const code = lower.charCodeAt(at);
    // a to z, 0 to 9.
    if ((code >= 97 && code <= 122) || (code >= 48 && code <= 57)) {
      if (start === -1) start = at;
    } else if (start !== -1) {
      visit(lower.slice(start, Math.min(at, start + MAX_WORD_LENGTH)));
      start = -1;
    }
  }
  if (start !== -1) visit(lower.slice(start, start + MAX_WORD_LENGTH));
  yield text.length;
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
    for (const { 0: letters, index } of text.slice(at, windowEnd).matchAll(WORD)) {
      const runs = HAS_UNSEGMENTED.test(letters) ? letters.matchAll(RUNS) : [{ 0: letters, index: 0 }];
      for (const { 0: found, index: offset } of runs) {
        const start = at + index + offset;
        const end = start + found.length;
        const mayContinue = end === windowEnd && end < text.length;
        if (HAS_UNSEGMENTED.test(found)) {
          if (word !== undefined) yield word;
          word = undefined;
          const last = yield* bigrams(found, start);
          // Its last character may begin a pair with the first of the next window.
          if (mayContinue && last > at) next = last;
        } else if (word?.end === start) {
          // The previous word fills its window, and continues.
          word.end = end;
        } else if (mayContinue && start > at) {
          // It may continue after the window: then it is the first word of the next.
          next = start;
        } else {
          if (word !== undefined) yield word;
          word = { start, end, plain: plain(found.slice(0, MAX_WORD_LENGTH)).slice(0, MAX_WORD_LENGTH) };
        }
      }
    }
    yield { start: at, end: windowEnd, plain: "" };
    at = next;
  }
  if (word !== undefined) yield word;
}

/** @returns where the last character of the run begins. */
function* bigrams(run: string, start: number): Generator<Word, number, undefined> {
  let before: { readonly text: string; readonly at: number } | undefined;
  let isAlone = true;
  for (const { 0: unit, index } of run.matchAll(UNITS)) {
    if (before !== undefined) {
      isAlone = false;
      yield { start: start + before.at, end: start + index + unit.length, plain: plain(before.text + unit) };
    }
    before = { text: unit, at: index };
  }
  if (before === undefined) return start;
  if (isAlone) yield { start, end: start + run.length, plain: plain(run) };
  return start + before.at;
}

/** All of them, of a short text. */
export const wordsOf = (text: string): Word[] => [...wordsIn(text)].filter((word) => word.plain !== "");

/** A single character of a script without spaces: it is looked for in both places of a bigram. */
export const isSingleCharacter = (word: string): boolean => HAS_UNSEGMENTED.test(word) && [...word.matchAll(UNITS)].length === 1;
