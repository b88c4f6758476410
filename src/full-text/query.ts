/**
 * What a query says: words, of which a record needs one, and in the "websearch" syntax also phrases that it must have
 * ("in quotes") and words or phrases that it must not have (-word, -"a phrase").
 */
import { type Term, termsOf } from "./terms.ts";
import type { TextView } from "./text-index.ts";
import { wordsIn, wordsOf } from "./words.ts";

export const SYNTAXES = ["words", "websearch"] as const;
export type Syntax = (typeof SYNTAXES)[number];

/** The plain words of a phrase, in order; one or more. */
export type Phrase = readonly string[];

export interface ParsedQuery {
  readonly words: readonly string[];
  /** The last word, if the query ends in one. */
  readonly last: string | undefined;
  readonly required: readonly Phrase[];
  readonly excluded: readonly Phrase[];
}

/** More different words than that are looked for no longer: those that the fewest records have remain. */
const MAX_TERMS = 1_024;

const PART = /(?<!\S)(-?)"([^"]*)(?:"|$)|(?<!\S)-(?=[^\s-])(\S+)|[^"\s]+|"/gu;

export function parseQuery(query: string, syntax: Syntax): ParsedQuery {
  if (syntax === "words") {
    const words = wordsOf(query).map((word) => word.plain);
    return { words, last: words.at(-1), required: [], excluded: [] };
  }
  const words: string[] = [];
  const required: Phrase[] = [];
  const excluded: Phrase[] = [];
  let last: string | undefined;
  for (const [part, minus, quoted, left] of query.matchAll(PART)) {
    const phrase = wordsOf(quoted ?? left ?? part).map((word) => word.plain);
    if (phrase.length === 0) continue;
    last = undefined;
    if (left !== undefined || minus === "-") excluded.push(phrase);
    else {
      words.push(...phrase);
      if (quoted === undefined) last = phrase.at(-1);
      else required.push(phrase);
    }
  }
  return { words, last, required, excluded };
}

export interface TermOptions {
  readonly fuzziness: number;
  /** The last word may be the beginning of one. */
  readonly prefix: boolean;
}

/** The terms of a query. Words of a required phrase are looked for as they are. */
export function queryTerms({ words, last, required }: ParsedQuery, { fuzziness, prefix }: TermOptions): Term[] {
  const quoted = new Set(required.flat());
  return termsOf(words, fuzziness, prefix ? last : undefined).map((term) =>
    quoted.has(term.plain) ? { plain: term.plain, count: term.count, distance: 0, prefix: false, isQuoted: true } : term,
  );
}

/** The terms that a table is searched for: the rarest, if there are too many. */
export function rarestTerms(terms: readonly Term[], view: TextView, columns: readonly string[]): readonly Term[] {
  if (terms.length <= MAX_TERMS) return terms;
  const counted = terms.map((term, place) => {
    const word = view.wordId(term.plain);
    const count = word === undefined ? 0 : columns.reduce((sum, column) => sum + view.postingCount(column, word), 0);
    return { term, place, count: count === 0 ? Number.POSITIVE_INFINITY : count };
  });
  counted.sort((a, b) => (a.count < b.count ? -1 : a.count > b.count ? 1 : a.place - b.place));
  return counted
    .slice(0, MAX_TERMS)
    .sort((a, b) => a.place - b.place)
    .map(({ term }) => term);
}

/** Whether the words of the phrase follow each other in the text. Yields the text looked through since the last time. */
export function* hasPhrase(text: string, phrase: Phrase): Generator<number, boolean, undefined> {
  /** How many words of the phrase each beginning has matched so far that still may be one. */
  let begun: number[] = [];
  for (const { plain, start, end } of wordsIn(text)) {
    if (plain === "") {
      yield end - start;
      continue;
    }
    const next: number[] = [];
    for (const matched of [...begun, 0]) {
      if (phrase[matched] !== plain) continue;
      if (matched + 1 === phrase.length) return true;
      next.push(matched + 1);
    }
    begun = next;
  }
  return false;
}
