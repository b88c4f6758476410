/**
 * Bounds of the rows of a block for plans/cascade-many.ts. In the terms of bounds.ts and codes/codes.ts, let
 * c6 = c >> 1 and t = c & 1, so that c − 64 = 2 (c6 − 32) + t and ŷ6 = (2 (c6 − 32) + 1/2) Δ. Then
 *   p·y = p̂·ŷ + p̂·(y − ŷ) + (p − p̂)·y ≤ p̂·ŷ + ‖p̂‖ A + ρ ‖y‖
 *   A = ‖y − ŷ‖          for ŷ6 (6 bits) or ŷ (all 7), each with its own A
 *   p̂·ŷ6 = unit · Δ/2 · (4 Σ Q (c6 − 32) + Σ Q)
 *   p̂·ŷ = unit · Δ · (2 Σ Q (c6 − 32) + Σ Q t) = unit · Δ · Σ Q (c − 64)
 * The sums are exact integers below 2^31: those of relaxed SIMD are at most 127 · 127 · MAX_CODE_DIMENSION
 * (rows/rows.ts); many-dots.ts proves it for the others. p̂ is 0 on the padding.
 *
 * The head: with h for its dimensions and t for the others,
 *   p·y ≤ p̂_h·ŷ_h + (as above: |p̂_h| ≤ |p̂|) + ρ‖y‖ + ‖p_t‖ ‖y_t‖
 * ‖y_t‖ is that of codes/codes.ts if its tail begins at the same dimension. Otherwise ‖y_t‖ ≤ ‖ŷ_t‖ + A (ŷ6
 * is not 0 on the padding, which only adds to ‖ŷ_t‖).
 *
 * Float32 roundings: at most 16 touch any term (five additions, three factors, their products, and the conversion
 * of the sum). So the computed value is within 2^-20 of the terms' magnitudes M.
 * These are the terms themselves, except |p̂·ŷ| ≤ ‖p̂‖ (‖y‖ + A). SLACK_OF_MANY = 2^-18 of them is four times
 * that. The term and p̂·ŷ use half of it; the rest leaves room for ‖p‖ (relative 2^-21) and the stored norms
 * (2^-21). COSINE is not divided by ‖x‖: the bound is compared with −limit ‖x‖, and the limit is enlarged by
 * 2^-20 of itself for the roundings of ‖x‖ and the product. DOT is COSINE with 1 in the place of ‖x‖. A NaN, from infinite losses, skips nothing.
 *
 * The first test (setFirstTest, listTiles) is the same inequality, divided by unit · Δ and solved for the sum that
 * the kernel counts. So a row's part of each term is computed once for all queries, and a pair needs few
 * operations. At most 10 roundings touch any term, which is 0.63 · 2^-20 of it. The magnitudes are |p̂·ŷ| ≤ ‖p̂‖ (‖y‖
 * + A), that of unit · Δ/2 · ΣQ, which is no larger (|ŷ6| ≥ Δ/2 in each dimension), those of the other terms, and
 * the limit's. For a row that matters to be ruled out the limit's must be smaller than the sum of the others and the
 * error. So ‖p̂‖ A counts five times, ‖p̂‖ ‖y‖ three times, the others twice: at most 3.2 · 2^-20 of each, and the
 * slack is 4 · 2^-20. Underflow adds less than 1 to a sum, which the test leaves room for. It is left out where a
 * term might overflow.
 *
 * Nothing else overflows, divided by ‖x‖ or not: ‖p‖ < 2^47, ‖y‖ / ‖x‖ ≤ 2^20, ‖centre‖ < 2^20 and 2^-40 ≤
 * ‖x‖ (codes/codes.ts says which rows are codable), so all terms stay below 2^110. No term that matters is
 * below 2^-120: the slack alone is 2^-18 ‖p‖ ‖y‖ / ‖x‖ with ‖p‖ ≥ 2^-40 and ‖y‖ ≥ 2^-40, and ‖y‖ ≥ ‖x‖ / 2
 * unless ‖x‖ < 2^21.
 */

import { costLimit } from "../exact/cost-limit";
import { addSeed, seedLimit } from "../exact/seeds";
import { COSINE, L2 } from "../exact/similarity";
import { largestF32 } from "../lanes";
import {
  headDimension,
  headPtr,
  LOSS_L2,
  lossesPtr,
  NORMS,
  RESIDUAL_NORMS,
  SHIFTS,
  SIX_LOSS_L2,
  STEPS,
  secondLossesPtr,
  TAIL_NORM,
  tailPtr,
  wordsPtr,
} from "../rows/rows";
import { SLACK_OF_MANY } from "./coefficients";
import { dotLowBits, manyHeadDimensions, tailSquares } from "./many-dots";
import { ManyQuery } from "./many-query-codes";

export const MAX_BLOCK_ROWS: u32 = 256;

/** Terms of the first test up to this do not overflow. */
const LARGEST_TERM: f64 = 1e37;

// Of the current block, one entry per row: its number in the segment, and what the bounds need, f32.
const rowNumbers = memory.data(2 * 256, 16);
const steps = memory.data(4 * 256, 16);
/** A of the bounds above, for the codes that the kernel reads, and, in relaxed SIMD, for all 7 bits. */
const losses = memory.data(4 * 256, 16);
const fullLosses = memory.data(4 * 256, 16);
const norms = memory.data(4 * 256, 16);
const shifts = memory.data(4 * 256, 16);
const rowNorms = memory.data(4 * 256, 16);
const tailNorms = memory.data(4 * 256, 16);
// For the first test, see describeBlock: in units of the row's step.
const scales = memory.data(4 * 256, 16);
const inverses = memory.data(4 * 256, 16);
const shares = memory.data(4 * 256, 16);
const sharedLosses = memory.data(4 * 256, 16);
const headLosses = memory.data(4 * 256, 16);
/** Whether the block needs only scales and losses. */
let isScaled: bool = false;
let largestScale: f64 = 0;
let largestInverse: f64 = 0;
let largestShare: f64 = 0;

// The largest coefficients of the queries in the first test, as multiples of their lossFactor.
let normRatio: f32 = 0;
let tailRatio: f32 = 0;

export function setRowNumber(i: u32, row: u32): void {
  store<u16>(rowNumbers + ((<usize>i) << 1), <u16>row);
}

/** The row number in the segment of entry `i` of the block. */
export function rowNumber(i: usize): u32 {
  return load<u16>(rowNumbers + (i << 1));
}

function loadLoss(ptr: usize): f32 {
  return reinterpret<f32>((<u32>load<u16>(ptr)) << 16);
}

/** Stores what the bounds need of entry `i`, whose row is unpacked at `tile`. */
export function describeRow(i: u32, segment: usize, tile: usize, needsTail: bool, similarity: i32): void {
  const row = rowNumber(i);
  const words = wordsPtr(segment, row);
  const rowLosses = lossesPtr(segment, row);
  const at = (<usize>i) << 2;
  const step = load<f32>(words, STEPS);
  let loss = loadLoss(rowLosses + LOSS_L2);
  if (ASC_FEATURE_RELAXED_SIMD) {
    store<f32>(fullLosses + at, loss);
    loss = loadLoss(secondLossesPtr(segment, row) + SIX_LOSS_L2);
  }
  if (needsTail) {
    let tail = loadLoss(rowLosses + TAIL_NORM);
    if (manyHeadDimensions() !== headDimension) {
      const unit = <f64>step * (ASC_FEATURE_RELAXED_SIMD ? 0.5 : 1);
      tail = <f32>((unit * Math.sqrt(<f64>tailSquares(tile)) + <f64>loss) * (1 + 1e-6));
    }
    store<f32>(tailNorms + at, tail);
  }
  store<f32>(steps + at, step);
  store<f32>(losses + at, loss);
  store<f32>(norms + at, load<f32>(words, RESIDUAL_NORMS));
  store<f32>(shifts + at, load<f32>(words, SHIFTS));
  store<f32>(rowNorms + at, similarity === COSINE ? load<f32>(words, NORMS) : 1);
}

/** Call it for each segment before shareQuery. */
export function clearShared(): void {
  normRatio = 0;
  tailRatio = 0;
}

/** A query near the segment's centre is unlike the others and skips the first test. */
function isShared(many: ManyQuery): bool {
  return many.lossFactor > 0 && many.normFactor <= many.lossFactor;
}

/** Extends the first test to this query. */
export function shareQuery(many: ManyQuery): void {
  if (!many.isReady || !isShared(many)) return;
  const inverse: f32 = 1 / many.lossFactor;
  normRatio = max(normRatio, many.normFactor * inverse);
  tailRatio = max(tailRatio, many.restFactor * inverse);
}

/**
 * Call it when all rows of a block are described. Prepares the first test, whose terms are those of rowsLeft
 * divided by Δ: with the largest ratios of the queries' coefficients, all losses of a row add up to one number
 * times lossFactor, no less than with the query's own coefficients. COSINE and DOT without a centre have no other
 * terms than −limit ‖x‖ / Δ and these.
 */
export function describeBlock(rows: u32, similarity: i32, isCentred: bool): void {
  const isL2 = similarity === L2;
  isScaled = !isL2 && !isCentred;
  const one = f32x4.splat(1);
  let mostScale = f32x4.splat(0);
  let mostInverse = mostScale;
  let mostShare = mostScale;
  // Entries after the last row belong to earlier rows, or are 0, and are never read.
  for (let at: usize = 0; at < (<usize>rows) << 2; at += 16) {
    const step = v128.load(steps + at);
    // A row that cannot be coded has no step. Its losses stay infinite.
    const inverse = f32x4.div(one, v128.bitselect(one, step, f32x4.eq(step, f32x4.splat(0))));
    const norm = v128.load(norms + at);
    const shared = f32x4.add(v128.load(losses + at), f32x4.mul(norm, f32x4.splat(normRatio)));
    const head = f32x4.add(shared, f32x4.mul(v128.load(tailNorms + at), f32x4.splat(tailRatio)));
    const scale = f32x4.mul(v128.load(rowNorms + at), inverse);
    const share = isL2 ? f32x4.mul(f32x4.mul(norm, norm), f32x4.splat(<f32>(-0.5 * (1 - SLACK_OF_MANY)))) : v128.load(shifts + at);
    const shareInSteps = f32x4.mul(share, inverse);
    v128.store(scales + at, scale);
    v128.store(inverses + at, inverse);
    v128.store(shares + at, shareInSteps);
    v128.store(sharedLosses + at, f32x4.mul(shared, inverse));
    v128.store(headLosses + at, f32x4.mul(head, inverse));
    mostScale = f32x4.max(mostScale, scale);
    mostInverse = f32x4.max(mostInverse, inverse);
    mostShare = f32x4.max(mostShare, f32x4.abs(shareInSteps));
  }
  largestScale = <f64>largestF32(mostScale);
  largestInverse = <f64>largestF32(mostInverse);
  largestShare = <f64>largestF32(mostShare);
}

/**
 * Call it when the heap's threshold may have changed. The limit is infinite while there is no threshold, and NaN, which
 * skips nothing, if it is below all float32.
 */
export function updateLimit(many: ManyQuery): void {
  const threshold = many.query.heap.threshold;
  if (many.threshold === threshold) return;
  many.threshold = threshold;
  const limit = <f64>costLimit(many.query, threshold);
  many.limit = <f32>(limit + Math.abs(limit) * 9.5367431640625e-7);
}

/**
 * The coefficients of a query in the first test, in units of what a sum of the kernel counts: a row is ruled out if
 *   sum − scale · u − inverse · v + share · w + loss · l ≤ bar
 * with u, v, w and l of describeBlock.
 */
@unmanaged
export class FirstTest {
  scale: f32;
  inverse: f32;
  share: f32;
  loss: f32;
  bar: f32;
}

/** Sets the test of a query's sums, or of those over the head, against a limit of costs. */
export function setFirstTest(test: FirstTest, many: ManyQuery, cost: f64, isHead: bool): void {
  // These rule out nothing.
  test.scale = 0;
  test.inverse = 0;
  test.share = 0;
  test.loss = 0;
  test.bar = -Infinity;
  if (!many.isReady || !isShared(many)) return;
  const unit = 1 / (<f64>many.productFactor * (ASC_FEATURE_RELAXED_SIMD ? 4 : 1));
  const scale = many.similarity !== L2 ? -cost * unit : 0;
  const inverse = (many.similarity !== L2 ? -(<f64>many.constant) : 0.5 * (<f64>many.constant - cost)) * unit;
  // Otherwise it might overflow.
  if (!(Math.abs(scale) * largestScale + Math.abs(inverse) * largestInverse + unit * largestShare < LARGEST_TERM)) return;
  test.scale = <f32>scale;
  test.inverse = <f32>inverse;
  test.share = <f32>unit;
  test.loss = <f32>(<f64>many.lossFactor * unit);
  test.bar = (ASC_FEATURE_RELAXED_SIMD ? <f32>-0.25 * <f32>(isHead ? many.headSum : many.codeSum) : 0) - 1;
}

/**
 * Lists the tiles in which the first test leaves a row to one of two queries, u16 at `list`: | rows left to a, 4
 * bits | to b, 4 bits | tile, 8 bits |. `sums…`: theirs over `tiles` tiles. @returns the number of listed tiles.
 */
export function listTiles(a: FirstTest, sumsOfA: usize, b: FirstTest, sumsOfB: usize, tiles: u32, isHead: bool, list: usize): u32 {
  const scaleOfA = f32x4.splat(a.scale);
  const scaleOfB = f32x4.splat(b.scale);
  const lossOfA = f32x4.splat(a.loss);
  const lossOfB = f32x4.splat(b.loss);
  const barOfA = f32x4.splat(a.bar);
  const barOfB = f32x4.splat(b.bar);
  const tileLosses = isHead ? headLosses : sharedLosses;
  let to = list;
  for (let tile: u32 = 0; tile < tiles; tile++) {
    const at = (<usize>tile) << 4;
    const scale = v128.load(scales + at);
    const loss = v128.load(tileLosses + at);
    let xOfA = f32x4.sub(f32x4.convert_i32x4_s(v128.load(sumsOfA + at)), f32x4.mul(scale, scaleOfA));
    let xOfB = f32x4.sub(f32x4.convert_i32x4_s(v128.load(sumsOfB + at)), f32x4.mul(scale, scaleOfB));
    xOfA = f32x4.add(xOfA, f32x4.mul(loss, lossOfA));
    xOfB = f32x4.add(xOfB, f32x4.mul(loss, lossOfB));
    if (!isScaled) {
      const inverse = v128.load(inverses + at);
      const share = v128.load(shares + at);
      xOfA = f32x4.sub(xOfA, f32x4.mul(inverse, f32x4.splat(a.inverse)));
      xOfB = f32x4.sub(xOfB, f32x4.mul(inverse, f32x4.splat(b.inverse)));
      xOfA = f32x4.add(xOfA, f32x4.mul(share, f32x4.splat(a.share)));
      xOfB = f32x4.add(xOfB, f32x4.mul(share, f32x4.splat(b.share)));
    }
    // A NaN rules out nothing.
    const left = (i32x4.bitmask(f32x4.le(xOfA, barOfA)) | (i32x4.bitmask(f32x4.le(xOfB, barOfB)) << 4)) ^ 255;
    store<u16>(to, <u16>(left | (tile << 8)));
    to += (<usize>(left !== 0)) << 1;
  }
  return <u32>(to - list) >> 1;
}

/** Those of the rows `bits` of a tile that the bounds leave to a query. `sums`: its sums over the block's tiles. */
export function rowsLeft(many: ManyQuery, tile: u32, bits: u32, sums: usize, isHead: bool): u32 {
  if (!many.isReady) return 0;
  const at = (<usize>tile) << 4;
  let sum = v128.load(sums + at);
  if (ASC_FEATURE_RELAXED_SIMD) sum = i32x4.add(i32x4.shl(sum, 2), i32x4.splat(isHead ? many.headSum : many.codeSum));
  const norm = v128.load(norms + at);
  let upper = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sum), f32x4.splat(many.productFactor)), v128.load(steps + at));
  upper = f32x4.add(upper, f32x4.mul(v128.load(losses + at), f32x4.splat(many.lossFactor)));
  upper = f32x4.add(upper, f32x4.mul(norm, f32x4.splat(many.normFactor)));
  if (isHead) upper = f32x4.add(upper, f32x4.mul(v128.load(tailNorms + at), f32x4.splat(many.restFactor)));
  const limit = f32x4.splat(many.limit);
  const constant = f32x4.splat(many.constant);
  let skipped: v128;
  if (many.similarity !== L2) {
    upper = f32x4.add(f32x4.add(upper, v128.load(shifts + at)), constant);
    skipped = f32x4.lt(upper, f32x4.neg(f32x4.mul(v128.load(rowNorms + at), limit)));
  } else {
    const squares = f32x4.add(f32x4.mul(f32x4.mul(norm, norm), f32x4.splat(<f32>(1 - SLACK_OF_MANY))), constant);
    skipped = f32x4.gt(f32x4.sub(squares, f32x4.add(upper, upper)), limit);
  }
  return bits & ~(<u32>i32x4.bitmask(skipped));
}

/** Relaxed SIMD: whether all 7 bits rule out entry `i` of the block. `sum` is its Σ Q (c6 − 32). */
export function isBelow(many: ManyQuery, segment: usize, i: usize, sum: i32): bool {
  const at = i << 2;
  const row = <usize>rowNumber(i);
  const full = 2 * sum + dotLowBits(many.codes, headPtr(segment, row), tailPtr(segment, row));
  const norm = <f64>load<f32>(norms + at);
  const upper =
    <f64>full * (2 * <f64>many.productFactor) * <f64>load<f32>(steps + at) +
    <f64>load<f32>(fullLosses + at) * <f64>many.lossFactor +
    norm * <f64>many.normFactor;
  const limit = <f64>many.limit;
  if (many.similarity !== L2) return upper + <f64>load<f32>(shifts + at) + <f64>many.constant < -limit * <f64>load<f32>(rowNorms + at);
  return norm * norm * (1 - SLACK_OF_MANY) + <f64>many.constant - 2 * upper > limit;
}

/**
 * Offers rows of a tile as seeds (row numbers firstRow + …), by their cost according to the codes. `rows`: how many
 * rows the block has; `sums`: of all dimensions, over the block's tiles.
 */
export function takeSeeds(many: ManyQuery, firstRow: u32, tile: u32, rows: u32, sums: usize): void {
  if (!many.isReady) return;
  const seeds = many.query.seeds;
  const at = (<usize>tile) << 4;
  let sum = v128.load(sums + at);
  if (ASC_FEATURE_RELAXED_SIMD) sum = i32x4.add(i32x4.shl(sum, 2), i32x4.splat(many.codeSum));
  const dot = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sum), f32x4.splat(many.productFactor)), v128.load(steps + at));
  const constant = f32x4.splat(many.constant);
  let cost: v128;
  if (many.similarity !== L2) {
    cost = f32x4.neg(f32x4.div(f32x4.add(f32x4.add(dot, v128.load(shifts + at)), constant), v128.load(rowNorms + at)));
  } else {
    const norm = v128.load(norms + at);
    cost = f32x4.sub(f32x4.add(f32x4.mul(norm, norm), constant), f32x4.add(dot, dot));
  }
  let better = i32x4.bitmask(f32x4.lt(cost, f32x4.splat(seedLimit(seeds))));
  if (better === 0) return;
  v128.store(costs, cost);
  while (better !== 0) {
    const i = ctz(better);
    better &= better - 1;
    const row = (tile << 2) + i;
    const value = load<f32>(costs + ((<usize>i) << 2));
    if (row < rows && value < seedLimit(seeds)) addSeed(seeds, value, firstRow + rowNumber(row));
  }
}

const costs = memory.data(16, 16);
