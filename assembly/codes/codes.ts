/**
 * Codes of rows: 7 bits per dimension, a byte each, with proven bounds on what they lose.
 *
 *   y = x − centre                             the segment's centre, or 0
 *   c = clamp(nearest(y / Δ) + 64, 0, 127)     one step Δ per row; zeros are kept exactly
 *   ŷ = (c − 64) Δ
 *   ŷ6 = ((c | 1) − 64.5) Δ                    the middle of the two codes that share the upper 6 bits,
 *                                              for many queries at once (dot/many-dots.ts)
 *
 * Seven bits in a byte, because relaxed SIMD multiplies such bytes directly. These codes are read as fast as
 * memory delivers them, in every build. (Planes of four bits were this project's first plan. They are half as
 * long, but unpacking them takes longer than reading the other half.)
 *
 * Δ is chosen so that the loss is nearly minimal; outliers may be clipped. It has 4 significant bits, (1 +
 * e/8) 2^n, so ŷ and ŷ6 are exact in float32. Few different Δ occur, so l1, whose query must be quantised
 * with the row's own step, can keep its codes for each of them.
 *
 * Stored for each row: ‖y − ŷ‖₂, ‖y − ŷ6‖₂, ‖y − ŷ‖₁, and ‖y_t‖₂, the loss without the codes of the tail (the
 * dimensions from headDimension on). None is ever below the true value.
 *
 * Proof (u = 2^-24). Let y' = fl(x − centre), so |y − y'| ≤ u|y'|(1 + u) elementwise, and e' = fl(y' − ŷ), so
 * |e' − (y' − ŷ)| ≤ u|e'|. Hence ‖y − ŷ‖ ≤ ‖e'‖(1 + u) + 2u‖y'‖ in either norm. A float32 sum of n terms ≥ 0
 * is at least (1 − (n + 2)u) times the true one. Both are covered by the factor (1 + (n + 64) 2^-23) and the
 * summand 2^-22 ‖y'‖, with ‖y'‖ from such a sum. Underflow contributes at most n·2^-149 while ‖y'‖ ≥ 2^-40,
 * so it is covered too.
 *
 * Codable rows: 0 or 2^-40 ≤ max |y'| ≤ 2^40, and x = 0 or ‖x‖ ≥ 2^-40 and ‖x‖ ≥ 2^-20 ‖y'‖. All others get
 * infinite losses, so that no bound ever skips them and no product or quotient of the bounds (dot/bounds.ts,
 * dot/many-bounds.ts) overflows. The last two conditions matter beside a centre, where x may be almost zero
 * while y is not. For such a row, bounds of the cosine would prove nothing anyway: their slack alone, 2^-19
 * ‖p‖ ‖y‖ / ‖x‖, exceeds the cosine's whole range.
 *
 * The tail: ‖y'_t‖ ≤ ‖y'‖, of which 2^-22 is added. It is a float64 sum, so this covers ‖y_t‖ ≤ ‖y'_t‖ + u(1
 * + u)‖y'‖ and its roundings. Nothing added to a row that is not all zeros is below 2^-62, so roundUp16 meets
 * no subnormals.
 */

import { addF32Wide, addF64, addI32, largestF32, squaresOfF32 } from "../lanes";
import { allocate } from "../rows/memory";
import {
  bitAt,
  CODE_SUMS,
  centreOf,
  codeDimension,
  dimension,
  floatsPtr,
  HEAD_SUMS,
  headBytes,
  headDimension,
  headPtr,
  LOSS_L1,
  LOSS_L2,
  livePtr,
  lossesPtr,
  NORMS,
  RESIDUAL_NORMS,
  SHIFTS,
  SIX_LOSS_L2,
  STEPS,
  secondLossesPtr,
  secondWordsPtr,
  segmentRows,
  squaresPtr,
  staleCountPtr,
  stalePtr,
  stride,
  strideBytes,
  TAIL_NORM,
  tailPtr,
  wordsPtr,
} from "../rows/rows";
import { clearCentre, moveCentre } from "./centres";

/** Values that bounds can be computed with in float32: 2^-40 to 2^40. */
export const MIN_CODABLE: f64 = 9.094947017729282e-13;
export const MAX_CODABLE: f64 = 1099511627776;

/** ‖x‖ of a codable row is at least this share of ‖y‖: 2^-20. */
const MIN_NORM_SHARE: f64 = 9.5367431640625e-7;

/**
 * The last row's step, at first 2^-44. A row whose residual is zero takes it. Any step would do for such a
 * row, and with this one l1 needs no codes for another step.
 */
let latestStep: f32 = 1 / (<f32>(1 << 30) * <f32>(1 << 14));

/**
 * A centre pays when its norm is at least this share of the rows' norm. It then reduces their norms, and with
 * them the losses, by 2 % or more.
 */
const CENTRE_SHARE: f64 = 0.2;

/** f32[codeDimension]: the residual of the current row. */
let residualPtr: usize = 0;
/** f64[codeDimension]: sums for a centre. */
let meanPtr: usize = 0;
/** f32[codeDimension] of zeros. */
let zeroPtr: usize = 0;

export function initializeCodes(): bool {
  if (codeDimension === 0) return true;
  residualPtr = allocate((<u64>codeDimension) << 2);
  meanPtr = allocate((<u64>codeDimension) << 3);
  zeroPtr = allocate((<u64>codeDimension) << 2);
  return residualPtr !== 0 && meanPtr !== 0 && zeroPtr !== 0;
}

/**
 * Updates the codes of a segment, whose float32 are in memory if any is stale. If half of its rows or more are stale, it
 * first chooses a new centre.
 */
export function encodeSegment(segment: usize): void {
  const stale = load<u32>(staleCountPtr(segment));
  if (stale === 0) return;
  let live: u32 = 0;
  for (let w: usize = 0; w < <usize>segmentRows >> 3; w += 4) live += popcnt(load<u32>(livePtr(segment) + w));
  let bitsPtr = stalePtr(segment);
  if (stale * 2 >= live && chooseCentre(segment, live)) bitsPtr = livePtr(segment);
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = load<u32>(bitsPtr + ((<usize>w) << 2));
    while (bits !== 0) {
      const row = (w << 5) + ctz(bits);
      encodeRow(segment, row, floatsPtr(segment) + <usize>row * strideBytes());
      bits &= bits - 1;
    }
  }
  memory.fill(stalePtr(segment), 0, <usize>segmentRows >> 3);
  store<u32>(staleCountPtr(segment), 0);
}

/**
 * Gives the segment a centre near the mean of the live rows if that pays, otherwise none. @returns whether it
 * changed.
 */
function chooseCentre(segment: usize, live: u32): bool {
  memory.fill(meanPtr, 0, (<usize>codeDimension) << 3);
  let squares: f64 = 0;
  for (let row: u32 = 0; row < segmentRows; row++) {
    if (!bitAt(livePtr(segment), row)) continue;
    const x = floatsPtr(segment) + <usize>row * strideBytes();
    squares += load<f64>(squaresPtr(segment) + ((<usize>row) << 3));
    for (let j = 0; j < stride; j += 2) {
      const at = meanPtr + ((<usize>j) << 3);
      v128.store(at, f64x2.add(v128.load(at), f64x2.promote_low_f32x4(v128.load64_zero(x + ((<usize>j) << 2)))));
    }
  }
  squares /= <f64>live;
  let meanSquares: f64 = 0;
  for (let j = 0; j < dimension; j++) {
    const at = meanPtr + ((<usize>j) << 3);
    const mean = load<f64>(at) / <f64>live;
    store<f64>(at, mean);
    meanSquares += mean * mean;
  }
  const pays = meanSquares >= CENTRE_SHARE * CENTRE_SHARE * squares && meanSquares > MIN_CODABLE && meanSquares < MAX_CODABLE;
  return pays ? moveCentre(segment, meanPtr, squares - meanSquares) : clearCentre(segment);
}

/** Approximately ‖y' − ŷ‖² for a step. Used only to choose the step. */
function tryStep(step: f32): f64 {
  const inverse = f32x4.splat(1 / step);
  const lowest = f32x4.splat(-64);
  const highest = f32x4.splat(63);
  const scale = f32x4.splat(step);
  let sum = f32x4.splat(0);
  const end = residualPtr + ((<usize>stride) << 2);
  for (let at = residualPtr; at < end; at += 16) {
    const y = v128.load(at);
    const c = f32x4.min(f32x4.max(f32x4.nearest(f32x4.mul(y, inverse)), lowest), highest);
    const e = f32x4.sub(y, f32x4.mul(c, scale));
    sum = f32x4.add(sum, f32x4.mul(e, e));
  }
  return addF32Wide(sum);
}

/** The largest float32 of 4 significant bits that is not above x. */
export function coarse(x: f32): f32 {
  return reinterpret<f32>(reinterpret<u32>(x) & 0xfff00000);
}

/** The next smaller step of the grid. */
function below(step: f32): f32 {
  return reinterpret<f32>(reinterpret<u32>(step) - 0x00100000);
}

/**
 * A smaller step, which clips outliers, is chosen when it reduces the squared loss at least to this share.
 */
const WORTHWHILE: f64 = 0.96;

function chooseStep(largest: f32): f32 {
  let step = coarse((largest / 63.5) * 1.12);
  let loss = tryStep(step);
  // Goes down from the step without clipping. The loss falls, then rises. At most 4 octaves.
  for (let i = 0; i < 32; i++) {
    const smaller = below(step);
    const smallerLoss = tryStep(smaller);
    if (smallerLoss > WORTHWHILE * loss) break;
    step = smaller;
    loss = smallerLoss;
  }
  return step;
}

/** The upper half of a float32 that is not below `x` (≥ 0). */
export function roundUp16(x: f64): u16 {
  const bits = reinterpret<u32>(<f32>(x * 1.0000002));
  if (!(x < 1e38)) return 0x7f80;
  return <u16>((bits + 0xffff) >> 16);
}

/** Whether a row can be coded, given max |y'|, ‖y'‖ and ‖x‖. */
export function isCodable(peak: f64, norm: f64, rowNorm: f64): bool {
  if (peak !== 0 && !(peak >= MIN_CODABLE && peak <= MAX_CODABLE)) return false;
  return rowNorm === 0 || rowNorm >= Math.max(MIN_CODABLE, MIN_NORM_SHARE * norm);
}

/** Codes a row of a segment, f32[stride] at `x`, by the segment's centre. Its Σx² is stored already. */
export function encodeRow(segment: usize, row: u32, x: usize): void {
  const isCentred = centreOf(segment) !== 0;
  const centre = isCentred ? centreOf(segment) : zeroPtr;
  let largest = f32x4.splat(0);
  let absolutes = f32x4.splat(0);
  // First of the head, then of the tail.
  let squares = f64x2.splat(0);
  let headSquares = squares;
  const head = min(headDimension, stride);
  let shift: f64 = 0;
  for (let j = 0; j < stride; j += 4) {
    const at = (<usize>j) << 2;
    const y = f32x4.sub(v128.load(x + at), v128.load(centre + at));
    v128.store(residualPtr + at, y);
    const magnitude = f32x4.abs(y);
    largest = f32x4.max(largest, magnitude);
    absolutes = f32x4.add(absolutes, magnitude);
    squares = f64x2.add(squares, squaresOfF32(y));
    if (j + 4 !== head) continue;
    headSquares = squares;
    squares = f64x2.splat(0);
  }
  if (isCentred) {
    let sums = f64x2.splat(0);
    for (let j = 0; j < stride; j += 2) {
      const at = (<usize>j) << 2;
      const y = f64x2.promote_low_f32x4(v128.load64_zero(residualPtr + at));
      sums = f64x2.add(sums, f64x2.mul(y, f64x2.promote_low_f32x4(v128.load64_zero(centre + at))));
    }
    shift = addF64(sums);
  }
  for (let j = stride; j < codeDimension; j++) store<f32>(residualPtr + ((<usize>j) << 2), 0);

  const peak = <f64>largestF32(largest);
  const words = wordsPtr(segment, row);
  const losses = lossesPtr(segment, row);
  const secondLosses = secondLossesPtr(segment, row);
  const rowSquares = load<f64>(squaresPtr(segment) + ((<usize>row) << 3));
  // While |y'| ≤ 2^40 no square overflows. 1.4e-45 · n is far below what the slack adds to a norm of at least
  // 2^-40.
  const tailSum = addF64(squares);
  const norm = Math.sqrt(addF64(headSquares) + tailSum);
  const rowNorm = Math.sqrt(rowSquares);
  if (!isCodable(peak, norm, rowNorm)) {
    // Not codable. 0x7f80 is the upper half of infinity. The other values are such that nothing else becomes
    // infinite.
    store<f32>(words, 1, NORMS);
    store<f32>(words, 0, RESIDUAL_NORMS);
    store<f32>(words, 0, SHIFTS);
    store<f32>(words, 0, STEPS);
    store<u16>(losses, 0x7f80, LOSS_L2);
    store<u16>(losses, 0x7f80, TAIL_NORM);
    store<u16>(secondLosses, 0x7f80, LOSS_L1);
    store<u16>(secondLosses, 0x7f80, SIX_LOSS_L2);
    return;
  }
  const slack = 1 + <f64>(codeDimension + 64) * 1.1920928955078125e-7;
  store<f32>(words, rowNorm === 0 ? 1 : <f32>rowNorm, NORMS);
  store<f32>(words, <f32>(norm * (1 + 2.384185791015625e-7)), RESIDUAL_NORMS);
  store<f32>(words, <f32>shift, SHIFTS);
  const step = peak === 0 ? latestStep : chooseStep(<f32>peak);
  latestStep = step;
  store<f32>(words, step, STEPS);
  writeCode(segment, row, step);
  const l2Rounding = norm * 2.384185791015625e-7;
  const l1Rounding = addF32Wide(absolutes) * slack * 2.384185791015625e-7;
  store<u16>(losses, roundUp16(Math.sqrt(addF32Wide(lossSquares)) * slack + l2Rounding), LOSS_L2);
  store<u16>(losses, roundUp16(Math.sqrt(tailSum) + l2Rounding), TAIL_NORM);
  store<u16>(secondLosses, roundUp16(addF32Wide(lossAbsolutes) * slack + l1Rounding), LOSS_L1);
  store<u16>(secondLosses, roundUp16(Math.sqrt(addF32Wide(sixLossSquares)) * slack + l2Rounding), SIX_LOSS_L2);
}

// The losses that writeCode measures, four lanes each.
let lossSquares: v128 = f32x4.splat(0);
let lossAbsolutes: v128 = f32x4.splat(0);
let sixLossSquares: v128 = f32x4.splat(0);

/** Codes four residuals, i32x4 in 0..127, and adds their losses. */
function encodeFour(at: usize, inverse: v128, step: v128): v128 {
  const y = v128.load(at);
  const centred = f32x4.min(f32x4.max(f32x4.nearest(f32x4.mul(y, inverse)), f32x4.splat(-64)), f32x4.splat(63));
  const c = i32x4.trunc_sat_f32x4_s(centred);
  const loss = f32x4.abs(f32x4.sub(y, f32x4.mul(centred, step)));
  const middle = f32x4.sub(f32x4.convert_i32x4_s(v128.or(c, i32x4.splat(1))), f32x4.splat(0.5));
  const sixLoss = f32x4.sub(y, f32x4.mul(middle, step));
  lossSquares = f32x4.add(lossSquares, f32x4.mul(loss, loss));
  lossAbsolutes = f32x4.add(lossAbsolutes, loss);
  sixLossSquares = f32x4.add(sixLossSquares, f32x4.mul(sixLoss, sixLoss));
  return i32x4.add(c, i32x4.splat(64));
}

/** Sixteen codes as bytes. */
function encodeSixteen(at: usize, inverse: v128, step: v128): v128 {
  const a = encodeFour(at, inverse, step);
  const b = encodeFour(at + 16, inverse, step);
  const c = encodeFour(at + 32, inverse, step);
  const d = encodeFour(at + 48, inverse, step);
  return i8x16.narrow_i16x8_u(i16x8.narrow_i32x4_u(a, b), i16x8.narrow_i32x4_u(c, d));
}

/**
 * Padding dimensions have y = 0 and code 64, and lose nothing. With 6 bits, up to 15 of them, each of which
 * would lose Δ/2, may be counted as lossy.
 */
function writeCode(segment: usize, row: u32, step: f32): void {
  const inverse = f32x4.splat(1 / step);
  const steps = f32x4.splat(step);
  lossSquares = f32x4.splat(0);
  lossAbsolutes = f32x4.splat(0);
  sixLossSquares = f32x4.splat(0);
  let to = headPtr(segment, row);
  let from = residualPtr;
  let sums = i32x4.splat(0);
  const words = secondWordsPtr(segment, row);
  const middle = residualPtr + (headBytes << 2);
  const used = residualPtr + ((<usize>stride) << 2);
  const end = residualPtr + ((<usize>codeDimension) << 2);
  while (from < end) {
    if (from === middle) {
      to = tailPtr(segment, row);
      store<i32>(words, addI32(sums), HEAD_SUMS);
    }
    const codes = from < used ? encodeSixteen(from, inverse, steps) : i8x16.splat(64);
    v128.store(to, codes);
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(codes)));
    to += 16;
    from += 64;
  }
  store<i32>(words, addI32(sums), CODE_SUMS);
}
