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
 * Float32 roundings: at most 16 touch any term (five additions, three factors, their products, the conversion
 * of the sum, and those of the first test). So the computed value is within 2^-20 of the terms' magnitudes M.
 * These are the terms themselves, except |p̂·ŷ| ≤ ‖p̂‖ (‖y‖ + A). SLACK_OF_MANY = 2^-18 of them is four times
 * that. The term and p̂·ŷ use half of it; the rest leaves room for ‖p‖ (relative 2^-21) and the stored norms
 * (2^-21). COSINE is not divided by ‖x‖: the bound is compared with −limit ‖x‖, and the limit is enlarged by
 * 2^-20 of itself for the roundings of ‖x‖ and the product. A NaN, from infinite losses, skips nothing.
 *
 * Nothing else overflows, divided by ‖x‖ or not: ‖p‖ < 2^47, ‖y‖ / ‖x‖ ≤ 2^20, ‖centre‖ < 2^20 and 2^-40 ≤
 * ‖x‖ (codes/codes.ts says which rows are codable), so all terms stay below 2^110. No term that matters is
 * below 2^-120: the slack alone is 2^-18 ‖p‖ ‖y‖ / ‖x‖ with ‖p‖ ≥ 2^-40 and ‖y‖ ≥ 2^-40, and ‖y‖ ≥ ‖x‖ / 2
 * unless ‖x‖ < 2^21.
 */

import { costLimit } from "../exact/cost-limit";
import { addSeed, seedLimit } from "../exact/seeds";
import { largestF32, leastF32 } from "../lanes";
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
// For the first test, see describeBlock: the factor of the sum, the losses of all dimensions and of the head,
// and the summand.
const ratios = memory.data(4 * 256, 16);
const sharedLosses = memory.data(4 * 256, 16);
const headLosses = memory.data(4 * 256, 16);
const shares = memory.data(4 * 256, 16);
let leastInverse: f64 = 0;
let largestInverse: f64 = 0;

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
export function describeRow(i: u32, segment: usize, tile: usize, needsTail: bool): void {
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
  store<f32>(rowNorms + at, load<f32>(words, NORMS));
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
 * Call it when all rows of a block are described. With the largest ratios of the queries' coefficients, all
 * losses of a row add up to one number times lossFactor, no less than with the query's own coefficients. For
 * COSINE everything is divided by ‖x‖. With that, at most 12 roundings touch any term.
 */
export function describeBlock(rows: u32, isCosine: bool): void {
  const one = f32x4.splat(1);
  let most = f32x4.splat(0);
  let least = f32x4.splat(Infinity);
  // Entries after the last row belong to earlier rows, or are 0, and are never read.
  for (let at: usize = 0; at < (<usize>rows) << 2; at += 16) {
    const norm = v128.load(norms + at);
    const shared = f32x4.add(v128.load(losses + at), f32x4.mul(norm, f32x4.splat(normRatio)));
    const head = f32x4.add(shared, f32x4.mul(v128.load(tailNorms + at), f32x4.splat(tailRatio)));
    let inverse = one;
    let share: v128;
    if (isCosine) {
      inverse = f32x4.div(one, v128.load(rowNorms + at));
      share = f32x4.mul(v128.load(shifts + at), inverse);
    } else {
      share = f32x4.mul(f32x4.mul(norm, norm), f32x4.splat(<f32>(-0.5 * (1 - SLACK_OF_MANY))));
    }
    v128.store(ratios + at, f32x4.mul(v128.load(steps + at), inverse));
    v128.store(sharedLosses + at, f32x4.mul(shared, inverse));
    v128.store(headLosses + at, f32x4.mul(head, inverse));
    v128.store(shares + at, share);
    most = f32x4.max(most, inverse);
    least = f32x4.min(least, inverse);
  }
  largestInverse = <f64>largestF32(most);
  leastInverse = <f64>leastF32(least);
}

/** Call it when the heap's threshold may have changed. The limit is infinite while there is no threshold. */
export function updateLimit(many: ManyQuery): void {
  const threshold = many.query.heap.threshold;
  if (many.threshold === threshold) return;
  many.threshold = threshold;
  const limit = <f64>costLimit(many.query, threshold);
  many.limit = <f32>(limit + Math.abs(limit) * 9.5367431640625e-7);
}

/**
 * Stores at left[group] which of four rows pass the first test: the bounds of markLeft with describeBlock's
 * losses. These are no less and need little computation. The test keeps few more rows than markLeft when the
 * queries differ only in direction. `isHead`: the sums are those of the head.
 */
export function markPossible(many: ManyQuery, groups: u32, sums: usize, left: usize, isHead: bool): void {
  if (!many.isReady || !isShared(many)) {
    memory.fill(left, many.isReady ? 15 : 0, groups);
    return;
  }
  const constant = <f64>many.constant;
  const most = many.isCosine
    ? -(<f64>many.limit) - constant * (constant > 0 ? largestInverse : leastInverse)
    : 0.5 * (constant - <f64>many.limit);
  const limit = f32x4.splat(<f32>most);
  const offset = i32x4.splat(isHead ? many.headSum : many.codeSum);
  const productFactor = f32x4.splat(many.productFactor);
  const lossFactor = f32x4.splat(many.lossFactor);
  const rowLosses = isHead ? headLosses : sharedLosses;
  for (let group: u32 = 0; group < groups; group++) {
    const at = (<usize>group) << 4;
    let sum = v128.load(sums + at);
    if (ASC_FEATURE_RELAXED_SIMD) sum = i32x4.add(i32x4.shl(sum, 2), offset);
    const dot = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sum), productFactor), v128.load(ratios + at));
    const upper = f32x4.add(f32x4.add(dot, f32x4.mul(v128.load(rowLosses + at), lossFactor)), v128.load(shares + at));
    store<u8>(left + group, <u8>(i32x4.bitmask(f32x4.lt(upper, limit)) ^ 15));
  }
}

/** The first group from `group` on that has rows left, or `to`. */
export function nextLeft(left: usize, group: u32, to: u32): u32 {
  while (group < to) {
    if ((group & 7) === 0 && load<u64>(left + group) === 0) group += 8;
    else if (load<u8>(left + group) === 0) group++;
    else return group;
  }
  return to;
}

/**
 * Clears the rows at left[group] that the bounds rule out, for groups from..to−1; `last` masks the last of
 * them.
 */
export function markLeft(many: ManyQuery, from: u32, to: u32, last: u32, sums: usize, left: usize, isHead: bool): void {
  if (!many.isReady) return;
  store<u8>(left + to - 1, <u8>(<u32>load<u8>(left + to - 1) & last));
  let group = nextLeft(left, from, to);
  if (group === to) return;
  const isCosine = many.isCosine;
  const offset = i32x4.splat(isHead ? many.headSum : many.codeSum);
  const productFactor = f32x4.splat(many.productFactor);
  const lossFactor = f32x4.splat(many.lossFactor);
  const normFactor = f32x4.splat(many.normFactor);
  const tailFactor = f32x4.splat(many.restFactor);
  const limit = f32x4.splat(many.limit);
  const constant = f32x4.splat(many.constant);
  const squareFactor = f32x4.splat(<f32>(1 - SLACK_OF_MANY));
  while (group < to) {
    const at = (<usize>group) << 4;
    let sum = v128.load(sums + at);
    if (ASC_FEATURE_RELAXED_SIMD) sum = i32x4.add(i32x4.shl(sum, 2), offset);
    const norm = v128.load(norms + at);
    let upper = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sum), productFactor), v128.load(steps + at));
    upper = f32x4.add(upper, f32x4.mul(v128.load(losses + at), lossFactor));
    upper = f32x4.add(upper, f32x4.mul(norm, normFactor));
    if (isHead) upper = f32x4.add(upper, f32x4.mul(v128.load(tailNorms + at), tailFactor));
    let skipped: v128;
    if (isCosine) {
      upper = f32x4.add(f32x4.add(upper, v128.load(shifts + at)), constant);
      skipped = f32x4.lt(upper, f32x4.neg(f32x4.mul(v128.load(rowNorms + at), limit)));
    } else {
      const squares = f32x4.add(f32x4.mul(f32x4.mul(norm, norm), squareFactor), constant);
      skipped = f32x4.gt(f32x4.sub(squares, f32x4.add(upper, upper)), limit);
    }
    store<u8>(left + group, <u8>(<u32>load<u8>(left + group) & ~i32x4.bitmask(skipped)));
    group = nextLeft(left, group + 1, to);
  }
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
  if (many.isCosine) return upper + <f64>load<f32>(shifts + at) + <f64>many.constant < -limit * <f64>load<f32>(rowNorms + at);
  return norm * norm * (1 - SLACK_OF_MANY) + <f64>many.constant - 2 * upper > limit;
}

/**
 * Offers the block's rows as seeds (row numbers firstRow + …), by their cost according to the codes, from the
 * sums of all vectors.
 */
export function takeSeeds(many: ManyQuery, firstRow: u32, rows: u32, sums: usize): void {
  if (!many.isReady) return;
  const seeds = many.query.seeds;
  const offset = i32x4.splat(many.codeSum);
  const productFactor = f32x4.splat(many.productFactor);
  const constant = f32x4.splat(many.constant);
  let limit = seedLimit(seeds);
  for (let first: u32 = 0; first < rows; first += 4) {
    const at = (<usize>first) << 2;
    let sum = v128.load(sums + at);
    if (ASC_FEATURE_RELAXED_SIMD) sum = i32x4.add(i32x4.shl(sum, 2), offset);
    const dot = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sum), productFactor), v128.load(steps + at));
    let cost: v128;
    if (many.isCosine) {
      cost = f32x4.neg(f32x4.div(f32x4.add(f32x4.add(dot, v128.load(shifts + at)), constant), v128.load(rowNorms + at)));
    } else {
      const norm = v128.load(norms + at);
      cost = f32x4.sub(f32x4.add(f32x4.mul(norm, norm), constant), f32x4.add(dot, dot));
    }
    let better = i32x4.bitmask(f32x4.lt(cost, f32x4.splat(limit)));
    v128.store(costs, cost);
    while (better !== 0) {
      const i = ctz(better);
      better &= better - 1;
      const value = load<f32>(costs + ((<usize>i) << 2));
      if (first + i >= rows || !(value < seedLimit(seeds))) continue;
      addSeed(seeds, value, firstRow + rowNumber(first + i));
      limit = seedLimit(seeds);
    }
  }
}

const costs = memory.data(16, 16);
