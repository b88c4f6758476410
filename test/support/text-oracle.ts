/** What searches for words, and for words and vectors, are compared with: obvious code over all records, in float64. */
import { contribution, type Fusion, idHash, ranksOf, SAMPLE_SIZE, spreadOf } from "../../src/full-text/fusion.ts";
import { matchQuality, type Stemmer, type Term, withStem } from "../../src/full-text/terms.ts";
import type { IndexedText } from "../../src/full-text/text-index.ts";
import { naturalLog, type TextTarget } from "../../src/full-text/text-scores.ts";
import { wordsOf } from "../../src/full-text/words.ts";

/** By column. */
export type Texts = Readonly<Record<string, IndexedText>>;

/**
 * BM25 as the documentation has it.
 *
 * @param stemmer  of targets without their own.
 * @returns the scores of the records that match.
 */
export function textScores<Id>(
  records: ReadonlyMap<Id, Texts>,
  targets: readonly TextTarget[],
  terms: readonly Term[],
  stemmer?: Stemmer,
): Map<Id, number> {
  const wordsIn = (text: IndexedText = null): string[] =>
    (typeof text === "string" ? [text] : (text ?? [])).flatMap((item) => (item === null ? [] : wordsOf(item).map(({ plain }) => plain)));
  const columns = targets.map((target) => {
    const words = new Map([...records].map(([id, texts]): [Id, string[]] => [id, wordsIn(texts[target.column])]));
    const lengths = [...words.values()].map(({ length }) => length).filter((length) => length > 0);
    const averageLength = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    return { words, averageLength, weight: target.weight, stemmer: target.stemmer ?? stemmer };
  });
  const scores = new Map<Id, number>();
  for (const term of terms) {
    const found = columns.map((column) => ({ ...column, frequencies: frequencies(column.words, term, column.stemmer) }));
    const having = new Set(found.flatMap((column) => [...column.frequencies.keys()])).size;
    const rarity = naturalLog(1 + (records.size - having + 0.5) / (having + 0.5));
    const repeated = (term.count * 9) / (term.count + 8) - 1;
    for (const column of found) {
      const repetition = column.stemmer === undefined ? 1 : 1 + repeated * Math.max(0, 1 - (4 * having) / records.size);
      for (const [id, f] of column.frequencies) {
        const { length } = column.words.get(id)!;
        const score = (column.weight * rarity * repetition * f * 2.2) / (f + 1.2 * (0.25 + (0.75 * length) / column.averageLength));
        scores.set(id, (scores.get(id) ?? 0) + score);
      }
    }
  }
  return scores;
}

/** How often each record has the word, other words that match counting less; those that have it alone. */
function frequencies<Id>(texts: ReadonlyMap<Id, readonly string[]>, plain: Term, stemmer: Stemmer | undefined): Map<Id, number> {
  const term = withStem(plain, stemmer);
  const qualities = new Map<string, number>();
  const quality = (word: string): number => {
    const known = qualities.get(word) ?? matchQuality(term, word, stemmer);
    qualities.set(word, known);
    return known;
  };
  const all = [...texts].map(([id, words]) => [id, words.reduce((sum, word) => sum + quality(word), 0) / 10] as const);
  return new Map(all.filter(([, frequency]) => frequency > 0));
}

/**
 * Every record that has a vector or a match, by score and id.
 *
 * @param ids  of the records that pass the filter; `words` and `vectors` have scores of some of them.
 */
export function fusedScores(
  ids: readonly string[],
  words: ReadonlyMap<string, number>,
  vectors: ReadonlyMap<string, number>,
  { method, vectorWeight, k }: Fusion,
  boostOf: (id: string) => number = () => 0,
): [id: string, score: number][] {
  const sample = [...vectors].sort(([a], [b]) => idHash(a) - idHash(b) || (a < b ? -1 : 1)).slice(0, SAMPLE_SIZE);
  const sampled = Float64Array.from(sample, ([, score]) => score);
  const vectorSpread = spreadOf(sampled, sample.length, method);
  const textSpread = spreadOf(Float64Array.from(words.values()), ids.length, method);
  const vectorRank = ranksOf(Float64Array.from(vectors.values()));
  const textRank = ranksOf(Float64Array.from(words.values()));
  const ofVector = (score: number | undefined): number =>
    score === undefined ? 0 : method === "rrf" ? vectorWeight / (k + vectorRank(score)) : contribution(score, vectorSpread, vectorWeight);
  const ofText = (score: number | undefined): number => {
    const weight = 1 - vectorWeight;
    if (method === "rrf") return score === undefined ? 0 : weight / (k + textRank(score));
    return contribution(score ?? 0, textSpread, weight);
  };
  const found = ids.filter((id) => vectors.has(id) || words.has(id));
  return inOrder(found.map((id) => [id, ofVector(vectors.get(id)) + ofText(words.get(id)) + boostOf(id)]));
}

export const inOrder = (scored: [id: string, score: number][]): [id: string, score: number][] =>
  scored.sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
