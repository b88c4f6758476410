/** What searches for words, and for words and vectors, are compared with: obvious code over all records, in float64. */
import { contribution, type Fusion, idHash, ranksOf, SAMPLE_SIZE, spreadOf } from "../../src/full-text/fusion.ts";
import { matchQuality, type Stemmer, type Term } from "../../src/full-text/terms.ts";
import type { IndexedText } from "../../src/full-text/text-index.ts";
import { naturalLog, type TextTarget } from "../../src/full-text/text-scores.ts";
import { wordsOf } from "../../src/full-text/words.ts";

export type Texts = Readonly<Record<string, IndexedText>>;

/** BM25 as the documentation has it. */
export function textScores<Key>(
  records: ReadonlyMap<Key, Texts>,
  targets: readonly TextTarget[],
  terms: readonly Term[],
  stemmer: Stemmer | undefined,
): Map<Key, number> {
  const wordsIn = (texts: Texts, column: string): string[] => {
    const text = texts[column] ?? null;
    return (typeof text === "string" ? [text] : (text ?? [])).flatMap((item) =>
      item === null ? [] : wordsOf(item).map(({ plain }) => plain),
    );
  };
  const scores = new Map<Key, number>();
  for (const term of terms) {
    const frequency = (texts: Texts, column: string): number =>
      wordsIn(texts, column).reduce((sum, word) => sum + matchQuality(term, word, stemmer), 0) / 10;
    const having = [...records.values()].filter((texts) => targets.some(({ column }) => frequency(texts, column) > 0)).length;
    const rarity = naturalLog(1 + (records.size - having + 0.5) / (having + 0.5));
    for (const { column, weight } of targets) {
      const lengths = [...records.values()].map((texts) => wordsIn(texts, column).length).filter((length) => length > 0);
      const average = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
      for (const [key, texts] of records) {
        const f = frequency(texts, column);
        if (f === 0) continue;
        const score = (weight * rarity * f * 2.2) / (f + 1.2 * (0.25 + (0.75 * wordsIn(texts, column).length) / average));
        scores.set(key, (scores.get(key) ?? 0) + score);
      }
    }
  }
  return scores;
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
): [id: string, score: number][] {
  const sample = [...vectors].sort(([a], [b]) => idHash(a) - idHash(b) || (a < b ? -1 : 1)).slice(0, SAMPLE_SIZE);
  const vectorSpread = spreadOf(
    Float64Array.from(sample, ([, score]) => score),
    sample.length,
    method,
  );
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
  return inOrder(ids.filter((id) => vectors.has(id) || words.has(id)).map((id) => [id, ofVector(vectors.get(id)) + ofText(words.get(id))]));
}

export const inOrder = (scored: [id: string, score: number][]): [id: string, score: number][] =>
  scored.sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
