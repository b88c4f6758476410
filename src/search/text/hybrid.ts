/**
 * Words and vectors in one search, exactly. The best records are found without scoring all vectors:
 *
 *   1. The vector search alone gives the best by vector. Records without a match all get the same from their words,
 *      so none of them that is not among these can be better than they are.
 *   2. Records with a match, most from their words first, are searched in blocks. What words give to the first of a
 *      block, added to the best vector score that any record has, bounds the rest: once that cannot reach the worst
 *      result so far, all others are left out. Within a block, the vector search gives the best by vector, as many
 *      as can still be results.
 *
 * So the answer is that of scoring every record, and each step is a vector search with its own proofs. Ranks (rrf)
 * need all scores, and are searched for piece by piece.
 */
import { clearBit, hasBit, maskWords, setBit } from "../../filter/bit-mask.ts";
import { contribution, type Fusion, rankContribution, ranksOf, SAMPLE_SIZE, type Spread, spreadOf } from "../../full-text/fusion.ts";
import type { ColumnIndex } from "../column-index.ts";
import type { SimilarityFunction } from "../search-store.ts";
import type { SearchTable } from "../table-index.ts";
import { BestRows } from "./best-rows.ts";

export interface VectorHalf {
  readonly columnId: number;
  readonly query: Float32Array;
  readonly similarity: SimilarityFunction;
  readonly fusion: Fusion;
}

/** What the words give: rows that match, each once, and their scores. */
export interface TextHalf {
  readonly rows: Uint32Array;
  readonly scores: Float64Array;
}

/** One half of a result's score. */
export interface HalfScore {
  readonly score: number;
  readonly mean?: number;
  readonly deviation?: number;
  readonly rank?: number;
  readonly weight: number;
  readonly contribution: number;
}

export interface HybridHit {
  readonly row: number;
  readonly score: number;
  /** undefined: the record has no vector. */
  readonly vector: HalfScore | undefined;
  /** undefined: no word matches. */
  readonly text: HalfScore | undefined;
  readonly boost: number;
}

export interface HybridSearch {
  readonly data: SearchTable;
  readonly index: ColumnIndex;
  readonly half: VectorHalf;
  readonly text: TextHalf;
  /** Rows that can be found. */
  readonly mask: Uint32Array;
  readonly boosts: Float64Array | undefined;
  readonly size: number;
}

/** Rows of one block; the next is four times as long. */
const FIRST_BLOCK = 1_024;
const BLOCK_GROWTH = 4;
/** Of a block, so many are asked for first. */
const FIRST_ASKED = 64;
/** For ranks, so many rows are scored between two steps. */
const PIECE_ROWS = 16_384;
/** Bounds are computed in another order than scores, and may be off by roundings. */
const SLACK = 1e-9;

export async function searchHybrid(search: HybridSearch, rest: () => Promise<void>): Promise<{ totalCount: number; hits: HybridHit[] }> {
  const { mask, text, data, half } = search;
  const rows = text.rows.filter((row) => hasBit(mask, row));
  const scores = new Float64Array(data.capacity);
  for (let i = 0; i < text.rows.length; i++) scores[text.rows[i]!] = text.scores[i]!;
  const run = half.fusion.method === "rrf" ? searchByRank : searchByScore;
  return run(search, { rows, scores }, rest);
}

/** Rows that match and pass the filter, and the scores of their words by row; 0 for those without a match. */
interface Words {
  readonly rows: Uint32Array;
  readonly scores: Float64Array;
}

function scoresOf({ rows, scores }: Words): Float64Array {
  const found = new Float64Array(rows.length);
  // `Float64Array.from` takes ten times as long.
  for (let i = 0; i < rows.length; i++) found[i] = scores[rows[i]!]!;
  return found;
}

/** Scores of the vectors of some rows, best first. */
async function nearest(
  { data, index, half }: HybridSearch,
  filter: Uint32Array,
  k: number,
): Promise<{ total: number; rows: number[]; scores: Float64Array }> {
  const [answer] = await index.searchMany([half.query], { k, similarity: half.similarity, filter });
  const { totalCount, results } = answer!;
  return { total: totalCount, rows: results.map(({ id }) => data.rowOf(id)!), scores: Float64Array.from(results, ({ score }) => score) };
}

async function searchByScore(
  search: HybridSearch,
  words: Words,
  rest: () => Promise<void>,
): Promise<{ totalCount: number; hits: HybridHit[] }> {
  const { half, mask, boosts, data, size } = search;
  const { method, vectorWeight } = half.fusion;
  const textWeight = 1 - vectorWeight;
  const rows = countBits(mask);
  const textSpread = spreadOf(scoresOf(words), rows, method);
  // Together: shards answer both at once.
  const [vectorSpread, first] = await Promise.all([
    method === "standardized" ? sampleSpread(search) : spreadOf(new Float64Array(0), 0, method),
    nearest(search, mask, Math.max(size, 1)),
  ]);
  const ofVector = (score: number): number => contribution(score, vectorSpread, vectorWeight);
  const ofText = (row: number): number => contribution(words.scores[row]!, textSpread, textWeight);
  const best = new BestRows(Math.max(size, 1), data);
  const vectors = new Map<number, number>();
  const add = (row: number, vector: number | undefined): void => {
    if (vector !== undefined) vectors.set(row, vector);
    best.add(row, (vector === undefined ? 0 : ofVector(vector)) + ofText(row) + (boosts?.[row] ?? 0));
  };
  const canReach = (bound: number): boolean => bound + SLACK * (Math.abs(bound) + 1) >= best.least;

  // 1. By vector. As long as the last one could still be better than the worst result, there may be more.
  const textOfNone = contribution(0, textSpread, textWeight);
  const done = mask.slice();
  let total = 0;
  let greatest = Number.NEGATIVE_INFINITY;
  for (let k = Math.max(size, 1), near = first; ; k *= 2, near = await nearest(search, mask, k)) {
    total = near.total;
    greatest = near.scores[0] ?? greatest;
    near.rows.forEach((row, i) => {
      if (!hasBit(done, row)) return;
      clearBit(done, row);
      add(row, near.scores[i]!);
    });
    const last = near.scores.at(-1);
    if (near.rows.length < k || last === undefined || boosts !== undefined || !canReach(ofVector(last) + textOfNone)) break;
    await rest();
  }

  // 2. By words and boosts: those that can be results at all.
  const mostOfVector = greatest === Number.NEGATIVE_INFINITY ? 0 : Math.max(ofVector(greatest), 0);
  const bonuses = new Float64Array(data.capacity);
  const left: number[] = [];
  for (const row of boosts === undefined ? words.rows : rowsOf(mask)) {
    if (!hasBit(done, row)) continue;
    const bonus = ofText(row) + (boosts?.[row] ?? 0);
    if (!canReach(bonus + mostOfVector)) continue;
    bonuses[row] = bonus;
    left.push(row);
  }
  const { order, greatestFrom } = byBonus(left, bonuses);
  for (let start = 0, length = FIRST_BLOCK; start < order.length; start += length, length *= BLOCK_GROWTH) {
    const most = greatestFrom(start);
    if (!canReach(most + mostOfVector)) break;
    const block = new Uint32Array(maskWords(data.capacity));
    for (let i = start; i < Math.min(start + length, order.length); i++) setBit(block, order[i]!);
    for (let k = Math.max(FIRST_ASKED, size); ; k *= 4) {
      const near = await nearest(search, block, k);
      near.rows.forEach((row, i) => {
        if (!hasBit(done, row)) return;
        clearBit(done, row);
        add(row, near.scores[i]!);
      });
      const last = near.scores.at(-1);
      if (near.rows.length < k || last === undefined || !canReach(most + ofVector(last))) break;
    }
    await rest();
  }
  const alone = rowsWithoutVector(search, words);
  for (const row of alone) add(row, undefined);
  const hits = best
    .inOrder()
    .slice(0, size)
    .map(({ row, score }): HybridHit => {
      const vector = vectors.get(row);
      const own = words.scores[row]!;
      return {
        row,
        score,
        vector: vector === undefined ? undefined : scored(vector, vectorSpread, vectorWeight, method),
        text: own === 0 && method !== "standardized" ? undefined : scored(own, textSpread, textWeight, method),
        boost: boosts?.[row] ?? 0,
      };
    });
  return { totalCount: total + alone.length, hits };
}

const BUCKETS = 1_024;

/**
 * Rows with the greatest bonuses first, sorted as far as into BUCKETS: a comparison sort of all takes longer than the
 * search itself. `greatestFrom(i)` bounds the bonuses of all rows from place i on.
 */
function byBonus(rows: readonly number[], bonuses: Float64Array): { order: Uint32Array; greatestFrom: (place: number) => number } {
  let greatest = Number.NEGATIVE_INFINITY;
  let least = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    const bonus = bonuses[row]!;
    if (bonus > greatest) greatest = bonus;
    if (bonus < least) least = bonus;
  }
  const range = greatest - least;
  // Falls as the bonus rises, whatever the roundings.
  const bucketOf = (row: number): number => (range > 0 ? Math.floor(((greatest - bonuses[row]!) / range) * (BUCKETS - 1)) : 0);
  const starts = new Uint32Array(BUCKETS + 1);
  for (const row of rows) starts[bucketOf(row) + 1]!++;
  for (let bucket = 0; bucket < BUCKETS; bucket++) starts[bucket + 1]! += starts[bucket]!;
  const next = starts.slice();
  const order = new Uint32Array(rows.length);
  for (const row of rows) order[next[bucketOf(row)]!++] = row;
  const greatestFrom = (place: number): number => {
    const bucket = bucketOf(order[place]!);
    let most = Number.NEGATIVE_INFINITY;
    for (let i = starts[bucket]!; i < starts[bucket + 1]!; i++) most = Math.max(most, bonuses[order[i]!]!);
    return most;
  };
  return { order, greatestFrom };
}

function scored(score: number, spread: Spread, weight: number, method: Fusion["method"]): HalfScore {
  return { score, ...(method === "standardized" && spread), weight, contribution: contribution(score, spread, weight) };
}

async function searchByRank(
  search: HybridSearch,
  words: Words,
  rest: () => Promise<void>,
): Promise<{ totalCount: number; hits: HybridHit[] }> {
  const { half, mask, boosts, data, size } = search;
  const { vectorWeight, k } = half.fusion;
  const textWeight = 1 - vectorWeight;
  const vectors = new Map<number, number>();
  for (let start = 0; start < data.capacity; start += PIECE_ROWS) {
    const piece = new Uint32Array(mask.length);
    piece.set(mask.subarray(start >>> 5, (start + PIECE_ROWS) >>> 5), start >>> 5);
    const near = await nearest(search, piece, PIECE_ROWS);
    near.rows.forEach((row, i) => {
      vectors.set(row, near.scores[i]!);
    });
    await rest();
  }
  const vectorRank = ranksOf(Float64Array.from(vectors.values()));
  const textRank = ranksOf(scoresOf(words));
  await rest();
  const ofVector = (row: number): HalfScore | undefined => {
    const score = vectors.get(row);
    if (score === undefined) return undefined;
    const rank = vectorRank(score);
    return { score, rank, weight: vectorWeight, contribution: rankContribution(rank, vectorWeight, k) };
  };
  const ofText = (row: number): HalfScore | undefined => {
    const score = words.scores[row]!;
    if (score === 0) return undefined;
    const rank = textRank(score);
    return { score, rank, weight: textWeight, contribution: rankContribution(rank, textWeight, k) };
  };
  const best = new BestRows(Math.max(size, 1), data);
  let totalCount = 0;
  for (const row of new Set([...vectors.keys(), ...words.rows])) {
    totalCount++;
    best.add(row, (ofVector(row)?.contribution ?? 0) + (ofText(row)?.contribution ?? 0) + (boosts?.[row] ?? 0));
  }
  const hits = best
    .inOrder()
    .slice(0, size)
    .map(({ row, score }) => ({ row, score, vector: ofVector(row), text: ofText(row), boost: boosts?.[row] ?? 0 }));
  return { totalCount, hits };
}

/** Mean and deviation of the vector scores of a sample that is the same wherever the records are. */
async function sampleSpread(search: HybridSearch): Promise<Spread> {
  const { data, mask } = search;
  const hashes = data.idHashes();
  const having = data.vectorRows(search.index);
  const lowest: number[] = [];
  const rows = countBits(mask);
  // Hashes are spread evenly: most rows are above this, and need not be sorted.
  for (let most = rows <= 2 * SAMPLE_SIZE ? 2 ** 32 : (1.5 * 2 ** 32 * SAMPLE_SIZE) / rows; ; most *= 4) {
    lowest.length = 0;
    for (let row = 0; row < data.capacity; row++) if (hashes[row]! <= most && hasBit(mask, row) && hasBit(having, row)) lowest.push(row);
    if (lowest.length >= SAMPLE_SIZE || most >= 2 ** 32) break;
  }
  lowest.sort((a, b) => hashes[a]! - hashes[b]! || (data.rows.isBefore(a, b) ? -1 : 1));
  const sample = new Uint32Array(maskWords(data.capacity));
  for (const row of lowest.slice(0, SAMPLE_SIZE)) setBit(sample, row);
  const { scores } = await nearest(search, sample, SAMPLE_SIZE);
  return spreadOf(scores, scores.length, "standardized");
}

/** Records with a match that the vector search does not count. */
function rowsWithoutVector({ data, index }: HybridSearch, words: Words): Uint32Array {
  const having = data.vectorRows(index);
  return words.rows.filter((row) => !hasBit(having, row));
}

function countBits(mask: Uint32Array): number {
  let count = 0;
  for (let word of mask) for (; word !== 0; word &= word - 1) count++;
  return count;
}

function rowsOf(mask: Uint32Array): number[] {
  const rows: number[] = [];
  for (let row = 0; row < 32 * mask.length; row++) if (hasBit(mask, row)) rows.push(row);
  return rows;
}
