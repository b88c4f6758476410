/**
 * Words and vectors in one search, exactly, without scoring all vectors: Fagin's threshold algorithm ("Optimal
 * aggregation algorithms for middleware", Fagin, Lotem and Naor, 2003) over two lists of all records.
 *
 *   by words    the scores are there: records in the order of what words and boosts give them, their bonus
 *   by vector   a search gives the k best
 *
 * A record that neither list has reached gets at most the bonus at which the one stands, and at most the vector score
 * of the last record of the other. Once both together cannot reach the worst result, no such record is one. Until
 * then both go on: the vectors of the next block of records by bonus are scored, and the best by vector are asked
 * for again, four times as many. Records without a vector have their whole score at once. So the answer is that of
 * scoring every record, and mostly comes after one step.
 *
 * Ranks (rrf) need all scores, which are asked for piece by piece.
 */
import { clearBit, countBits, hasBit, setBit } from "../filter/bit-mask.ts";
import { giveBack, takeAccumulators } from "./accumulators.ts";
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
  /** No more of the best by vector can be asked for; default: all can. */
  readonly mostNearest?: number;
}

/** What is asked of the vectors in one step. */
export interface Ask {
  /** So many of the best by vector among the rows that can be found; 0: none. */
  readonly k: number;
  /** Rows whose scores are wanted, each once. */
  readonly rows: Uint32Array;
}

export interface Answer {
  /** The k best by vector, best first, equal scores by id; fewer: all rows that have a vector. */
  readonly rows: ArrayLike<number>;
  readonly scores: Float64Array;
  /** Of the rows of `Ask.rows`, in their order; NaN for one without a vector. */
  readonly wanted: Float64Array;
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

/** Yields what is asked of the vectors, and takes the answer. Between two steps others may work. */
export type HybridSteps = Generator<Ask, HybridAnswer, Answer>;

/** Rows of the first block by bonus; the next is twice as long. */
const FIRST_BLOCK = 1_024;
/** More than are wanted: the score of the last is the bound of all others. */
const ASKED_BEYOND = 22;
const ASKED_GROWTH = 4;
/** For ranks, so many rows are scored in one step. */
const PIECE_ROWS = 16_384;
/** Bounds are computed in another order than scores, and may be off by roundings. */
const SLACK = 1e-9;
const NO_ROWS = new Uint32Array(0);

interface Words {
  /** Rows that can be found and have a match. */
  readonly matching: Uint32Array;
  /** By row, 0 for those without a match. */
  readonly scores: Float64Array;
}

export function* searchHybrid(search: HybridSearch): HybridSteps {
  const { mask, text, source } = search;
  const accumulators = takeAccumulators(source.capacity);
  const { scores } = accumulators;
  for (let i = 0; i < text.rows.length; i++) scores[text.rows[i]!] = text.scores[i]!;
  const run = search.fusion.method === "rrf" ? searchByRank : searchByScore;
  const answer = yield* run(search, { matching: rowsIn(mask, text.rows), scores });
  for (let i = 0; i < text.rows.length; i++) scores[text.rows[i]!] = 0;
  giveBack(accumulators);
  return answer;
}

function* searchByScore(search: HybridSearch, { matching, scores: words }: Words): HybridSteps {
  const { source, fusion, mask, boosts, size } = search;
  const { method, vectorWeight } = fusion;
  const textWeight = 1 - vectorWeight;
  const textSpread = spreadOf(scoresAt(matching, words), countBits(mask), method);
  const ofText = (row: number): number => contribution(words[row]!, textSpread, textWeight);
  const having = havingVector(search);
  const without = rowsIn(having, matching, false);
  const ranked = boosts === undefined ? rowsIn(having, matching) : rowsOf(having);
  const bonuses = new Float64Array(ranked.length);
  for (let i = 0; i < ranked.length; i++) bonuses[i] = ofText(ranked[i]!) + (boosts?.[ranked[i]!] ?? 0);
  const { order, greatestFrom } = byBonus(ranked, bonuses);
  /** Of a record that is not among `ranked`. */
  const bonusOfNone = boosts === undefined ? contribution(0, textSpread, textWeight) : Number.NEGATIVE_INFINITY;

  const sample = method === "standardized" ? sampleOf(source, having) : NO_ROWS;
  /** Rows whose vector is still to be scored. */
  const left = having.slice();
  let place = 0;
  let length = FIRST_BLOCK;
  const nextBlock = (): Uint32Array => {
    const block = rowsIn(left, order.subarray(place, place + length));
    place += length;
    length *= 2;
    return block;
  };
  const most = source.mostNearest ?? Number.POSITIVE_INFINITY;
  let k = Math.min(size + ASKED_BEYOND, most);
  for (const row of sample) clearBit(left, row);
  let asked = joined(sample, nextBlock());
  let answer = yield { k, rows: asked };
  const sampled = answer.wanted.subarray(0, sample.length).filter((score) => !Number.isNaN(score));
  const vectorSpread = spreadOf(sampled, sampled.length, method);
  const ofVector = (score: number): number => contribution(score, vectorSpread, vectorWeight);

  const best = new BestRows(Math.max(size, 1), source);
  const canReach = (bonus: number, vector: number): boolean =>
    bonus + vector + SLACK * (Math.abs(bonus) + Math.abs(vector) + 1) >= best.least;
  const added = new Uint32Array(mask.length);
  /** Of the rows that were added, in that order. */
  const vectors: number[] = [];
  const add = (row: number, vector: number): void => {
    if (hasBit(added, row) || !hasBit(mask, row) || Number.isNaN(vector)) return;
    clearBit(left, row);
    setBit(added, row);
    best.add(row, ofVector(vector) + ofText(row) + (boosts?.[row] ?? 0), vectors.length);
    vectors.push(vector);
  };
  for (const row of without) best.add(row, ofText(row) + (boosts?.[row] ?? 0));
  for (;;) {
    for (let i = 0; i < asked.length; i++) add(asked[i]!, answer.wanted[i]!);
    for (let i = 0; i < answer.rows.length; i++) add(answer.rows[i]!, answer.scores[i]!);
    const least = answer.scores.at(-1);
    const bonus = place < order.length ? greatestFrom(place) : bonusOfNone;
    if (answer.rows.length < k || least === undefined || !canReach(bonus, ofVector(least))) break;
    // All by bonus are there, and of the others those with the best vectors, equal ones by id: more are not needed.
    if (k === most && place >= order.length) break;
    k = Math.min(k * ASKED_GROWTH, most);
    asked = nextBlock();
    answer = yield { k, rows: asked };
  }
  const hits = best
    .inOrder()
    .slice(0, size)
    .map(({ row, score, place: at }): HybridHit => {
      const vector = vectors[at];
      const own = words[row]!;
      return {
        row,
        score,
        vector: vector === undefined ? undefined : scored(vector, vectorSpread, vectorWeight, method),
        text: own === 0 && method !== "standardized" ? undefined : scored(own, textSpread, textWeight, method),
        boost: boosts?.[row] ?? 0,
      };
    });
  return { totalCount: countBits(having) + without.length, hits };
}

function* searchByRank(search: HybridSearch, { matching, scores: words }: Words): HybridSteps {
  const { source, fusion, boosts, size } = search;
  /** By row; NaN for those without a vector. */
  const vectors = new Float64Array(source.capacity).fill(Number.NaN);
  const { vectorWeight, k } = fusion;
  const textWeight = 1 - vectorWeight;
  const having = havingVector(search);
  const without = rowsIn(having, matching, false);
  const rows = rowsOf(having);
  for (let start = 0; start < rows.length; start += PIECE_ROWS) {
    const piece = rows.subarray(start, start + PIECE_ROWS);
    const { wanted } = yield { k: 0, rows: piece };
    for (let i = 0; i < piece.length; i++) vectors[piece[i]!] = wanted[i]!;
  }
  const vectorRank = ranksOf(scoresAt(rows, vectors));
  const textRank = ranksOf(scoresAt(matching, words));
  const ofVector = (row: number): number => rankContribution(vectorRank(vectors[row]!), vectorWeight, k);
  const ofText = (row: number): number => (words[row] === 0 ? 0 : rankContribution(textRank(words[row]!), textWeight, k));
  const best = new BestRows(Math.max(size, 1), source);
  for (const row of rows) best.add(row, ofVector(row) + ofText(row) + (boosts?.[row] ?? 0));
  for (const row of without) best.add(row, ofText(row) + (boosts?.[row] ?? 0));
  const hits = best
    .inOrder()
    .slice(0, size)
    .map(({ row, score }): HybridHit => {
      const [vector, own] = [vectors[row]!, words[row]!];
      return {
        row,
        score,
        vector: Number.isNaN(vector)
          ? undefined
          : { score: vector, rank: vectorRank(vector), weight: vectorWeight, contribution: ofVector(row) },
        text: own === 0 ? undefined : { score: own, rank: textRank(own), weight: textWeight, contribution: ofText(row) },
        boost: boosts?.[row] ?? 0,
      };
    });
  return { totalCount: rows.length + without.length, hits };
}

const BUCKETS = 1_024;

/**
 * Rows with the greatest bonuses first, sorted as far as into BUCKETS: a comparison sort of all takes longer than the
 * search itself. `greatestFrom(i)` bounds the bonuses of all rows from place i on.
 */
function byBonus(rows: Uint32Array, bonuses: Float64Array): { order: Uint32Array; greatestFrom: (place: number) => number } {
  let greatest = Number.NEGATIVE_INFINITY;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < bonuses.length; i++) {
    const bonus = bonuses[i]!;
    if (bonus > greatest) greatest = bonus;
    if (bonus < least) least = bonus;
  }
  const range = greatest - least;
  // Falls as the bonus rises, whatever the roundings.
  const bucketOf = (bonus: number): number => (range > 0 ? Math.floor(((greatest - bonus) / range) * (BUCKETS - 1)) : 0);
  const starts = new Uint32Array(BUCKETS + 1);
  const greatestOf = new Float64Array(BUCKETS).fill(Number.NEGATIVE_INFINITY);
  const buckets = new Uint16Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    const bonus = bonuses[i]!;
    const bucket = bucketOf(bonus);
    buckets[i] = bucket;
    starts[bucket + 1]!++;
    if (bonus > greatestOf[bucket]!) greatestOf[bucket] = bonus;
  }
  for (let bucket = 0; bucket < BUCKETS; bucket++) starts[bucket + 1]! += starts[bucket]!;
  const next = starts.slice();
  const order = new Uint32Array(rows.length);
  for (let i = 0; i < rows.length; i++) order[next[buckets[i]!]!++] = rows[i]!;
  const greatestFrom = (place: number): number => {
    // starts[bucket] ≤ place < starts[bucket + 1]
    let bucket = 0;
    while (starts[bucket + 1]! <= place) bucket++;
    return greatestOf[bucket]!;
  };
  return { order, greatestFrom };
}

function scored(score: number, spread: Spread, weight: number, method: Fusion["method"]): HalfScore {
  return { score, ...(method === "standardized" && spread), weight, contribution: contribution(score, spread, weight) };
}

/** The rows whose scores tell how vector scores are spread: the same records wherever they are. */
function sampleOf(source: HybridSource, having: Uint32Array): Uint32Array {
  const count = countBits(having);
  if (count <= SAMPLE_SIZE) return rowsOf(having);
  const hashes = source.idHashes();
  // Hashes are spread evenly: most rows are above this, and need not be sorted.
  for (let most = Math.floor((1.5 * 2 ** 32 * SAMPLE_SIZE) / count); ; most *= 4) {
    const low: number[] = [];
    const sorted: number[] = [];
    for (let row = 0; row < source.capacity; row++) {
      if (hashes[row]! > most || !hasBit(having, row)) continue;
      low.push(row);
      sorted.push(hashes[row]!);
    }
    if (low.length < SAMPLE_SIZE) continue;
    const last = new Uint32Array(sorted).sort()[SAMPLE_SIZE - 1]!;
    // Ids with the same hash come in their own order.
    const equal = low.filter((row) => hashes[row] === last).sort((a, b) => (source.isBefore(a, b) ? -1 : 1));
    return new Uint32Array([...low.filter((row) => hashes[row]! < last), ...equal].slice(0, SAMPLE_SIZE));
  }
}

/** Rows that can be found and have a vector. */
function havingVector({ source, mask }: HybridSearch): Uint32Array {
  const having = source.vectorRows();
  return mask.map((word, i) => word & (having[i] ?? 0));
}

/** Those of the rows that are in the mask, or are not. `Uint32Array.filter` takes ten times as long. */
function rowsIn(mask: Uint32Array, rows: Uint32Array, isIn = true): Uint32Array {
  const kept = new Uint32Array(rows.length);
  let count = 0;
  for (let i = 0; i < rows.length; i++) if (hasBit(mask, rows[i]!) === isIn) kept[count++] = rows[i]!;
  return kept.subarray(0, count);
}

/** `Float64Array.from` takes ten times as long. */
function scoresAt(rows: Uint32Array, scores: Float64Array): Float64Array {
  const found = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) found[i] = scores[rows[i]!]!;
  return found;
}

function joined(one: Uint32Array, other: Uint32Array): Uint32Array {
  const all = new Uint32Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}

/** In ascending order. */
function rowsOf(mask: Uint32Array): Uint32Array {
  const rows = new Uint32Array(countBits(mask));
  let count = 0;
  for (let i = 0; i < mask.length; i++) {
    for (let word = mask[i]! | 0; word !== 0; word &= word - 1) rows[count++] = 32 * i + 31 - Math.clz32(word & -word);
  }
  return rows;
}
