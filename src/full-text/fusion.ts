/**
 * Two scores of each record made one. What other engines fuse are two lists of k candidates each, and their answers
 * change with k. Here every record that passes the filter has its exact place in both halves.
 *
 *   standardized   the z-scores of both halves: (score − mean) / deviation. Of words over all records that can be
 *                  found, those without a match having 0; of vectors over a sample of them.
 *   linear         the scores as they are
 *   rrf            1 / (k + rank) in each half; equal scores have the same rank ("reciprocal rank fusion", Cormack,
 *                  Clarke and Büttcher, 2009)
 *
 * A record without a vector has 0 from that half, which under `standardized` is the mean: nothing is known of it.
 */

export type FusionMethod = "standardized" | "rrf" | "linear";
export const FUSION_METHODS: readonly FusionMethod[] = ["standardized", "rrf", "linear"];

export interface Fusion {
  readonly method: FusionMethod;
  /** From 0 to 1; words have the rest. */
  readonly vectorWeight: number;
  /** Of rrf. */
  readonly k: number;
}

/** How the scores of one half are spread. */
export interface Spread {
  readonly mean: number;
  readonly deviation: number;
}

const AS_IT_IS: Spread = { mean: 0, deviation: 1 };

/** Scores are summed as whole numbers of up to so many bits, so the order of the records does not matter. */
const SUMMED_BITS = 24;
const HALF = 2 ** SUMMED_BITS;
/** Smaller ones cannot be scaled; no score is as small. */
const LEAST_SCORE = 2 ** -900;

/**
 * The spread of the scores of `count` records, of which those not given have 0. Every partial sum is a whole number
 * that a double holds, and so the result is the same in whatever order they come.
 *
 * @param scores  finite; those of words are 0 or more each, those of vectors by dotProduct may be negative.
 */
export function spreadOf(scores: Float64Array, count: number, method: FusionMethod): Spread {
  if (method !== "standardized") return AS_IT_IS;
  let greatest = 0;
  for (const score of scores) greatest = Math.max(greatest, Math.abs(score));
  if (greatest < LEAST_SCORE || count === 0) return { mean: 0, deviation: 0 };
  let scale = 1;
  while (greatest * scale < HALF / 2) scale *= 2;
  while (greatest * scale > HALF) scale /= 2;
  let sum = 0;
  let high = 0;
  let low = 0;
  for (const score of scores) {
    const whole = Math.round(score * scale);
    const square = whole * whole;
    sum += whole;
    const upper = Math.floor(square / HALF);
    high += upper;
    low += square - upper * HALF;
  }
  const mean = sum / count;
  const variance = (high * HALF + low) / count - mean * mean;
  return { mean: mean / scale, deviation: variance <= 0 ? 0 : Math.sqrt(variance) / scale };
}

/** What a half adds: 0 where nothing is known, or all are the same. */
export function contribution(score: number, { mean, deviation }: Spread, weight: number): number {
  return deviation === 0 ? 0 : (weight * (score - mean)) / deviation;
}

/** What a rank adds, counted from 1. */
export const rankContribution = (rank: number, weight: number, k: number): number => weight / (k + rank);

/** For each score its rank: one more than there are greater ones. */
export function ranksOf(scores: Float64Array): (score: number) => number {
  const sorted = scores.slice().sort();
  return (score) => {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sorted[middle]! > score) high = middle;
      else low = middle + 1;
    }
    return sorted.length - low + 1;
  };
}

/** How many records are looked at for the spread of the vector half: those whose ids have the lowest hashes. */
export const SAMPLE_SIZE = 1_024;

/** FNV-1a of the UTF-16 code units, mixed as in MurmurHash3, and never 0. The same wherever the record is. */
export function idHash(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0 || 1;
}
