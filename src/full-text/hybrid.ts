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
import { clearBit, hasBit, maskWords, setBit } from "../filter/bit-mask.ts";
import { BestRows, type RowOrder } from "./best-rows.ts";
import { contribution, type Fusion, rankContribution, ranksOf, SAMPLE_SIZE, type Spread, spreadOf } from "./fusion.ts";

/** The records that are searched. Nothing changes before the search has ended. */
export interface HybridSource extends RowOrder {
  /** Rows are below this. */
  readonly capacity: number;
  /** By row: `idHash` of its id. */
  idHashes(): Uint32Array;
  /** Rows that have a vector. */
  vectorRows(): Uint32Array;
}

/** A search by the vector alone. */
export interface Ask {
  /** Rows that can be found. */
  readonly mask: Uint32Array;
  readonly k: number;
}

export interface Nearest {
  /** Rows of the mask that have a vector. */
  readonly total: number;
  /** The k best of them, best first, equal scores by id. */
  readonly rows: ArrayLike<number>;
  readonly scores: Float64Array;
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
  readonly source: HybridSource;
  readonly fusion: Fusion;
  readonly text: TextHalf;
  /** Rows that can be found. */
  readonly mask: Uint32Array;
  readonly boosts: Float64Array | undefined;
  readonly size: number;
}

export interface HybridAnswer {
  readonly totalCount: number;
  readonly hits: HybridHit[];
}

/** Yields what is asked of the vectors, several at once; nothing: others may work in between. Takes the answers. */
export type HybridSteps = Generator<readonly Ask[], HybridAnswer, readonly Nearest[]>;

/** Rows of one block; the next is four times as long. */
const FIRST_BLOCK = 1_024;
const BLOCK_GROWTH = 4;
/** Of a block, so many are asked for first. */
const FIRST_ASKED = 64;
/** For ranks, so many rows are scored between two steps. */
const PIECE_ROWS = 16_384;
/** Bounds are computed in another order than scores, and may be off by roundings. */
const SLACK = 1e-9;
const NO_SCORES = new Float64Array(0);

export function searchHybrid(search: HybridSearch): HybridSteps {
  const { mask, text, source } = search;
  const rows = text.rows.filter((row) => hasBit(mask, row));
  const scores = new Float64Array(source.capacity);
  for (let i = 0; i < text.rows.length; i++) scores[text.rows[i]!] = text.scores[i]!;
  const run = search.fusion.method === "rrf" ? searchByRank : searchByScore;
  return run(search, { rows, scores });
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

function* nearest(mask: Uint32Array, k: number): Generator<readonly Ask[], Nearest, readonly Nearest[]> {
  const [answer] = yield [{ mask, k }];
  return answer!;
}

function* searchByScore(search: HybridSearch, words: Words): HybridSteps {
  const { source, fusion, mask, boosts, size } = search;
  const { method, vectorWeight } = fusion;
  const textWeight = 1 - vectorWeight;
  const rows = countBits(mask);
  const textSpread = spreadOf(scoresOf(words), rows, method);
  // Together: shards answer both at once.
  const first = { mask, k: Math.max(size, 1) };
  const [byVector, sample] = yield method === "standardized" ? [first, { mask: sampleOf(search), k: SAMPLE_SIZE }] : [first];
  const vectorSpread = spreadOf(sample?.scores ?? NO_SCORES, sample?.scores.length ?? 0, method);
  const ofVector = (score: number): number => contribution(score, vectorSpread, vectorWeight);
  const ofText = (row: number): number => contribution(words.scores[row]!, textSpread, textWeight);
  const best = new BestRows(Math.max(size, 1), source);
  const vectors = new Map<number, number>();
  const add = (row: number, vector: number | undefined): void => {
    if (vector !== undefined) vectors.set(row, vector);
    best.add(row, (vector === undefined ? 0 : ofVector(vector)) + ofText(row) + (boosts?.[row] ?? 0));
  };
  const canReach = (bound: number): boolean => bound + SLACK * (Math.abs(bound) + 1) >= best.least;

  const done = mask.slice();
  const addAll = ({ rows, scores }: Nearest): void => {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (!hasBit(done, row)) continue;
      clearBit(done, row);
      add(row, scores[i]!);
    }
  };

  // 1. By vector. As long as the last one could still be better than the worst result, there may be more.
  const textOfNone = contribution(0, textSpread, textWeight);
  const total = byVector!.total;
  const greatest = byVector!.scores[0];
  for (let k = first.k, near = byVector!; ; k *= 2, near = yield* nearest(mask, k)) {
    addAll(near);
    const last = near.scores.at(-1);
    if (near.rows.length < k || last === undefined || boosts !== undefined || !canReach(ofVector(last) + textOfNone)) break;
    yield [];
  }

  // 2. By words and boosts: those that can be results at all.
  const mostOfVector = greatest === undefined ? 0 : Math.max(ofVector(greatest), 0);
  const bonuses = new Float64Array(source.capacity);
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
    const block = new Uint32Array(maskWords(source.capacity));
    for (let i = start; i < Math.min(start + length, order.length); i++) setBit(block, order[i]!);
    for (let k = Math.max(FIRST_ASKED, size); ; k *= 4) {
      const near = yield* nearest(block, k);
      addAll(near);
      const last = near.scores.at(-1);
      if (near.rows.length < k || last === undefined || !canReach(most + ofVector(last))) break;
    }
    yield [];
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

function* searchByRank(search: HybridSearch, words: Words): HybridSteps {
  const { source, fusion, mask, boosts, size } = search;
  const { vectorWeight, k } = fusion;
  const textWeight = 1 - vectorWeight;
  const vectors = new Map<number, number>();
  for (let start = 0; start < source.capacity; start += PIECE_ROWS) {
    const piece = new Uint32Array(mask.length);
    piece.set(mask.subarray(start >>> 5, (start + PIECE_ROWS) >>> 5), start >>> 5);
    const { rows, scores } = yield* nearest(piece, PIECE_ROWS);
    for (let i = 0; i < rows.length; i++) vectors.set(rows[i]!, scores[i]!);
    yield [];
  }
  const vectorRank = ranksOf(Float64Array.from(vectors.values()));
  const textRank = ranksOf(scoresOf(words));
  yield [];
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
  const best = new BestRows(Math.max(size, 1), source);
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

/** The rows whose scores tell how vector scores are spread: the same records wherever they are. */
function sampleOf({ source, mask }: HybridSearch): Uint32Array {
  const hashes = source.idHashes();
  const having = source.vectorRows();
  const lowest: number[] = [];
  const rows = countBits(mask);
  // Hashes are spread evenly: most rows are above this, and need not be sorted.
  for (let most = rows <= 2 * SAMPLE_SIZE ? 2 ** 32 : (1.5 * 2 ** 32 * SAMPLE_SIZE) / rows; ; most *= 4) {
    lowest.length = 0;
    for (let row = 0; row < source.capacity; row++) if (hashes[row]! <= most && hasBit(mask, row) && hasBit(having, row)) lowest.push(row);
    if (lowest.length >= SAMPLE_SIZE || most >= 2 ** 32) break;
  }
  lowest.sort((a, b) => hashes[a]! - hashes[b]! || (source.isBefore(a, b) ? -1 : 1));
  const sample = new Uint32Array(maskWords(source.capacity));
  for (const row of lowest.slice(0, SAMPLE_SIZE)) setBit(sample, row);
  return sample;
}

/** Records with a match that the vector search does not count. */
function rowsWithoutVector({ source }: HybridSearch, words: Words): Uint32Array {
  const having = source.vectorRows();
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
