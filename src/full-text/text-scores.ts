/**
 * Scores all records of a text index: BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009)
 * of each column, with its weight, summed. Exhaustive, a term at a time. Statistics are those of the whole table,
 * so a record has the same score under every filter and on every page.
 *
 * The same bits everywhere: frequencies are whole numbers (tenths of a match, see terms.ts), a record's
 * contributions are added term by term and column by column in the order of the query, and the logarithm is made
 * of additions, multiplications and divisions, which IEEE 754 defines to the last bit.
 */
import { intersect, maskWords, setBit } from "../filter/bit-mask.ts";
import { giveBack, takeAccumulators } from "./accumulators.ts";
import { grown, type Postings } from "./posting-lists.ts";
import { editQuality, hasMoreBitsThan, letterSet, matchQuality, SAME_WORD, type Stemmer, type Term, withStem } from "./terms.ts";
import type { TextView } from "./text-index.ts";

/** Where a query looks. */
export interface TextTarget {
  readonly column: string;
  readonly weight: number;
  /** Of the language of its texts, if it is known. */
  readonly stemmer?: Stemmer | undefined;
}

/** What one word of the query adds to the score of a record in one column. */
export interface TextContribution {
  readonly word: string;
  readonly column: string;
  /** How often the column has the word; words that match less well count less. */
  readonly frequency: number;
  /** Words of the column in this record, and in an average one. */
  readonly length: number;
  readonly averageLength: number;
  /** Records of the table that have the word in a target column, and what BM25 makes of that. */
  readonly documentFrequency: number;
  readonly rarity: number;
  /** What the word counts for because the query repeats it; 1 where the language is not known. */
  readonly repetition: number;
  readonly weight: number;
  readonly score: number;
}

export interface TextScores {
  /** Documents that match, each once, in no order. */
  readonly documents: Uint32Array;
  /** Of these documents. */
  readonly scores: Float64Array;
}

export interface ScoreOptions {
  /** Records of the table, those without any word included. */
  readonly records: number;
  /** Of targets that have none of their own. */
  readonly stemmer?: Stemmer | undefined;
  /** For these documents every contribution is written down. */
  readonly explained?: ReadonlyMap<number, TextContribution[]>;
}

const K1 = 1.2;
const B = 0.75;
/** Of words that a query repeats, as at TREC ("Okapi at TREC-3", 1994). */
const K3 = 8;
/** Words or postings looked at between two yields, about a tenth of a millisecond. */
const STEP = 16_384;
/** The cost of a stem, in postings. */
const STEM_COST = 200;

/** The matches of one term in one column. */
interface Matches {
  readonly target: TextTarget;
  readonly documents: Uint32Array;
  /** In tenths. */
  readonly frequencies: Uint32Array;
}

/** Yields the postings and words looked at since the last time. */
export function* scoreTexts(
  index: TextView,
  targets: readonly TextTarget[],
  terms: readonly Term[],
  { records, stemmer, explained }: ScoreOptions,
): Generator<number, TextScores, undefined> {
  const accumulators = takeAccumulators(index.end);
  const { scores: sums, stamps } = accumulators;
  const frequencySums = new FrequencySums(accumulators.frequencies);
  let matched = new Uint32Array(1024);
  let count = 0;
  for (const term of terms) {
    const stamp = accumulators.nextStamp();
    const wordsOf = new Map<Stemmer | undefined, MatchingWord[]>();
    const found: Matches[] = [];
    let documentFrequency = 0;
    for (const target of targets) {
      const own = target.stemmer ?? stemmer;
      let words = wordsOf.get(own);
      if (words === undefined) {
        words = yield* wordsMatching(index, withStem(term, own), own);
        wordsOf.set(own, words);
      }
      if (words.length === 0) continue;
      const matches = yield* frequencySums.of(index, target, words);
      found.push(matches);
      // In one column each document is found once.
      if (targets.length === 1) documentFrequency = matches.documents.length;
      else
        for (const document of matches.documents) {
          if (stamps[document] === stamp) continue;
          stamps[document] = stamp;
          documentFrequency++;
        }
    }
    const rarity = naturalLog(1 + (records - documentFrequency + 0.5) / (documentFrequency + 0.5));
    for (const { target, documents, frequencies } of found) {
      const isLanguageKnown = (target.stemmer ?? stemmer) !== undefined;
      const repetition = isLanguageKnown ? repetitionOf(term.count, documentFrequency, records) : 1;
      const factor = target.weight * rarity * repetition;
      const lengths = index.lengths(target.column);
      const averageLength = index.averageLength(target.column);
      for (let i = 0; i < documents.length; i++) {
        const document = documents[i]!;
        const frequency = frequencies[i]! / SAME_WORD;
        const length = lengths[document]!;
        const norm = K1 * (1 - B + (B * length) / averageLength);
        const score = (factor * frequency * (K1 + 1)) / (frequency + norm);
        if (sums[document] === 0) {
          if (count === matched.length) matched = grown(matched, 2 * count);
          matched[count++] = document;
        }
        sums[document]! += score;
        explained?.get(document)?.push({
          word: term.plain,
          column: target.column,
          frequency,
          length,
          averageLength,
          documentFrequency,
          rarity,
          repetition,
          weight: target.weight,
          score,
        });
      }
      yield documents.length;
    }
  }
  const documents = matched.slice(0, count);
  const scores = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    scores[i] = sums[documents[i]!]!;
    sums[documents[i]!] = 0;
  }
  giveBack(accumulators);
  return { documents, scores };
}

/**
 * A word counts for more if the query repeats it: in a paragraph that is asked for, these are what it is about. Less so the
 * more records have the word, and not at all from a quarter of them on: "of" and "which" are repeated anyway.
 */
function repetitionOf(count: number, documentFrequency: number, records: number): number {
  return 1 + ((count * (K3 + 1)) / (count + K3) - 1) * Math.max(0, 1 - (4 * documentFrequency) / records);
}

/** A bit for each document: whether it has all of the words in the column. */
export function* documentsWith(index: TextView, column: string, words: readonly string[]): Generator<number, Uint32Array, undefined> {
  let documents: Uint32Array | undefined;
  for (const word of new Set(words)) {
    const having = new Uint32Array(maskWords(index.end));
    const id = index.wordId(word);
    const postings = id === undefined ? undefined : index.postings(column, id);
    const count = postings?.count ?? 0;
    for (let i = 0; i < count; i++) setBit(having, postings!.documents[i]!);
    documents = documents === undefined ? having : intersect(documents, having);
    yield count + having.length;
  }
  return documents ?? new Uint32Array(maskWords(index.end));
}

interface MatchingWord {
  readonly id: number;
  /** In tenths. */
  readonly quality: number;
}

function* wordsMatching(index: TextView, term: Term, stemmer: Stemmer | undefined): Generator<number, MatchingWord[], undefined> {
  const found: MatchingWord[] = [];
  const exact = index.wordId(term.plain);
  if (exact !== undefined) found.push({ id: exact, quality: SAME_WORD });
  const stemmed = new Set<number>();
  if (term.stem !== undefined && stemmer !== undefined) {
    const words = index.wordsOfStem(term.stem, stemmer);
    let next = words.next();
    for (let made = 1; next.done !== true; made++, next = words.next()) if (made % 64 === 0) yield 64 * STEM_COST;
    for (const id of next.value) {
      if (id === exact) continue;
      stemmed.add(id);
      found.push({ id, quality: matchQuality(term, index.wordAt(id), stemmer) });
    }
  }
  if (term.distance === 0 && !term.prefix && term.isCharacter !== true) return found;
  const own = letterSet(term.plain);
  const { distance, plain } = term;
  const mayHaveMore = term.prefix || term.isCharacter === true;
  for (let id = 0; id < index.wordCount; ) {
    const { letters } = index;
    const stop = Math.min(id + STEP, index.wordCount);
    for (; id < stop; id++) {
      const other = letters[id]!;
      // The rest of the word may have letters of its own where a part will do.
      if (hasMoreBitsThan(distance, own & ~other) || (!mayHaveMore && hasMoreBitsThan(distance, other & ~own))) continue;
      if (id === exact || stemmed.has(id)) continue;
      const word = index.wordAt(id);
      const quality = mayHaveMore
        ? matchQuality(term, word)
        : Math.abs(word.length - plain.length) > distance
          ? 0
          : editQuality(term, word);
      if (quality > 0) found.push({ id, quality });
    }
    yield STEP / 4;
  }
  return found;
}

/** How often each document has any of some words. */
class FrequencySums {
  /** By document; all zeros before and after `of`. */
  readonly #sums: Uint32Array;
  #touched = new Uint32Array(1024);

  constructor(sums: Uint32Array) {
    this.#sums = sums;
  }

  *of(index: TextView, target: TextTarget, words: readonly MatchingWord[]): Generator<number, Matches, undefined> {
    if (words.length === 1) {
      const { id, quality } = words[0]!;
      const matches = onlyLive(index, index.postings(target.column, id), quality);
      yield matches.documents.length;
      return { target, ...matches };
    }
    const sums = this.#sums;
    let count = 0;
    for (const { id, quality } of words) {
      const postings = index.postings(target.column, id);
      if (postings === undefined) continue;
      const { count: length, documents, frequencies } = postings;
      for (let i = 0; i < length; i++) {
        const document = documents[i]!;
        if (!index.isLive(document)) continue;
        if (sums[document] === 0) {
          if (count === this.#touched.length) this.#touched = grown(this.#touched, 2 * count);
          this.#touched[count++] = document;
        }
        sums[document]! += quality * frequencies[i]!;
      }
      yield length;
    }
    const documents = this.#touched.slice(0, count);
    const frequencies = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      frequencies[i] = sums[documents[i]!]!;
      sums[documents[i]!] = 0;
    }
    return { target, documents, frequencies };
  }
}

function onlyLive(index: TextView, postings: Postings | undefined, quality: number): Omit<Matches, "target"> {
  if (postings === undefined) return { documents: new Uint32Array(0), frequencies: new Uint32Array(0) };
  const documents = new Uint32Array(postings.count);
  const frequencies = new Uint32Array(postings.count);
  let count = 0;
  for (let i = 0; i < postings.count; i++) {
    if (!index.isLive(postings.documents[i]!)) continue;
    documents[count] = postings.documents[i]!;
    frequencies[count++] = quality * postings.frequencies[i]!;
  }
  return { documents: documents.subarray(0, count), frequencies: frequencies.subarray(0, count) };
}

const LN2 = Math.LN2;
const SQRT2 = Math.SQRT2;

/**
 * `Math.log`, of which each engine has its own: x = m · 2ᵉ with √½ < m ≤ √2, and ln m = 2 artanh((m − 1) / (m + 1))
 * by its series. For x ≥ 1; within 2 units in the last place.
 */
export function naturalLog(x: number): number {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, x);
  const high = bits.getUint32(0);
  let exponent = (high >>> 20) - 1023;
  bits.setUint32(0, (high & 0xfffff) | (1023 << 20));
  let mantissa = bits.getFloat64(0);
  if (mantissa > SQRT2) {
    mantissa /= 2;
    exponent++;
  }
  const s = (mantissa - 1) / (mantissa + 1);
  const square = s * s;
  let sum = 0;
  for (let n = 23; n >= 1; n -= 2) sum = sum * square + 1 / n;
  return exponent * LN2 + 2 * s * sum;
}
