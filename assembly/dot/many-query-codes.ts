/**
 * Codes of a query for many-dots.ts: p = q − centre ≈ p̂ = Q · unit, integers |Q| ≤ largestManyCode(). For
 * relaxed SIMD also Σ|Q| ≤ LANE_LIMIT over a lane of a window: scaled by s/largest, Σ|Q| ≤ (s/largest) Σ|p| +
 * 1/2 for each of 2W values, which is ≤ LANE_LIMIT for the chosen s.
 *
 * In float32, u = 2^-24: let p' = fl(q − c), so |p − p'| ≤ u|p|. Any Q will do. e' = fl(p' − fl(Q · unit)) is
 * within u(|p'| + |Q unit| + |e'|) of p' − Q · unit. So ρ = ‖p − p̂‖ ≤ ‖e'‖ + 2u(2‖p‖ + 2‖e'‖). Sums of
 * squares are computed in float64. Adding 2^-20 ‖p‖ covers this and underflow (‖p‖ ≥ 2^-40 or = 0). Norms
 * have a relative error of u from p' and far less from the sums; NORM_SLACK covers it.
 */

import { MAX_CODABLE, MIN_CODABLE } from "../codes/codes";
import { CodedQuery } from "../exact/coded-query";
import { Query } from "../exact/query";
import { addF32Neighbours, addF64, addI32, largestF32, squaresOfF32 } from "../lanes";
import { codeDimension, stride } from "../rows/rows";
import { SLACK_OF_MANY, setCoefficients } from "./coefficients";
import { codeVectors, headVectors, LANE_LIMIT, largestManyCode, pairBytes, windowVectors } from "./many-dots";

const NORM_SLACK: f64 = 1 + 2.384185791015625e-7; // 1 + 2^-22

/** One of many queries. */
@unmanaged
export class ManyQuery extends CodedQuery {
  query: Query;
  /** Whether it takes part in the current batch and has codes for the current segment. */
  isActive: bool;
  isReady: bool;
  /** Σ Q, and Σ Q over the head. */
  codeSum: i32;
  headSum: i32;
  /** Limit of the costs. */
  limit: f32;
  /** Counts of its rows in the current batch: rows checked with all 7 bits, rows scored. */
  checked: u32;
  scored: u32;
  /** The first vector of its codes. The others follow at intervals of 32 bytes. */
  codes: usize;
  /** Bits of the rows of the first segments that are in its heap from the start. */
  seedBits: usize;

  /** The heap's threshold from which the limit was computed. */
  threshold: f64;
}

/** Distance in bytes from one to the next: whole cache lines. */
export function manyQueryBytes(): usize {
  return (offsetof<ManyQuery>() + 63) & ~63;
}

/**
 * Makes the codes for a centre (address of f32[codeDimension], or 0), and the coefficients of their bounds,
 * unless they are there.
 *
 * @param residuals  f32[codeDimension], overwritten.
 */
export function prepareManyCodes(many: ManyQuery, centre: usize, residuals: usize): void {
  if (many.centre === centre) return;
  many.centre = centre;
  const q = many.query.floats;
  let largest = f32x4.splat(0);
  let squares = f64x2.splat(0);
  let tailSquares = f64x2.splat(0);
  let shift = f64x2.splat(0);
  let centreSquares = f64x2.splat(0);
  const used = (<usize>stride) << 2;
  const tail = min(used, (<usize>headVectors()) << (ASC_FEATURE_RELAXED_SIMD ? 6 : 5));
  for (let at: usize = 0; at < used; at += 16) {
    if (at === tail) tailSquares = squares;
    const x = v128.load(q + at);
    let p = x;
    if (centre !== 0) {
      const c = v128.load(centre + at);
      p = f32x4.sub(x, c);
      const low = f64x2.promote_low_f32x4(c);
      const high = f64x2.promote_low_f32x4(i32x4.shuffle(c, c, 2, 3, 2, 3));
      shift = f64x2.add(shift, f64x2.mul(low, f64x2.promote_low_f32x4(x)));
      shift = f64x2.add(shift, f64x2.mul(high, f64x2.promote_low_f32x4(i32x4.shuffle(x, x, 2, 3, 2, 3))));
      centreSquares = f64x2.add(centreSquares, f64x2.add(f64x2.mul(low, low), f64x2.mul(high, high)));
    }
    v128.store(residuals + at, p);
    largest = f32x4.max(largest, f32x4.abs(p));
    squares = f64x2.add(squares, squaresOfF32(p));
  }
  if (tail >= used) tailSquares = squares;
  for (let at = used; at < (<usize>codeDimension) << 2; at += 16) v128.store(residuals + at, f32x4.splat(0));
  const peak = largestF32(largest);
  many.isCodable = <f64>peak <= MAX_CODABLE && (<f64>peak >= MIN_CODABLE || peak === 0);
  if (!many.isCodable) return;
  many.norm = Math.sqrt(addF64(squares)) * NORM_SLACK;
  // The rest by subtraction, which rounds by at most 2^-52 of the whole for each of fewer than 2^14 terms.
  many.restNorm = Math.sqrt(max(0, addF64(squares) - addF64(tailSquares)) + addF64(squares) * 3.637978807091713e-12) * NORM_SLACK;
  many.centreNorm = Math.sqrt(addF64(centreSquares)) * NORM_SLACK;
  many.shift = addF64(shift);
  let scale = <f32>largestManyCode();
  if (ASC_FEATURE_RELAXED_SIMD) {
    const lane = largestLaneSum(residuals);
    // Rounded down to an integer, so that the largest value is coded without loss.
    if (lane > 0) scale = min(scale, floor((<f32>(LANE_LIMIT - windowVectors()) * peak) / lane));
  }
  writeCodes(many, residuals, peak, scale);
  setCoefficients(many, many.query, ASC_FEATURE_RELAXED_SIMD ? 0.5 : 1, SLACK_OF_MANY);
}

/** Relaxed SIMD: the largest Σ|p'| over the values of one lane of one window, rounded up. */
function largestLaneSum(residuals: usize): f32 {
  const end = residuals + ((<usize>codeDimension) << 2);
  const windowBytes = (<usize>windowVectors()) << 6;
  let largest = f32x4.splat(0);
  for (let at = residuals; at < end; ) {
    const stop = min(end, at + windowBytes);
    let a = f32x4.splat(0);
    let b = f32x4.splat(0);
    let c = f32x4.splat(0);
    let d = f32x4.splat(0);
    while (at < stop) {
      a = f32x4.add(a, f32x4.abs(v128.load(at)));
      b = f32x4.add(b, f32x4.abs(v128.load(at, 16)));
      c = f32x4.add(c, f32x4.abs(v128.load(at, 32)));
      d = f32x4.add(d, f32x4.abs(v128.load(at, 48)));
      at += 64;
    }
    largest = f32x4.max(largest, f32x4.max(addF32Neighbours(a, b), addF32Neighbours(c, d)));
  }
  return largestF32(largest) * <f32>1.00001;
}

// The sums of four codes at a time.
let sums: v128 = i32x4.splat(0);
let losses: v128 = f64x2.splat(0);

/** Four codes, i32x4. */
function codeFour(at: usize, inverse: v128, unit: v128): v128 {
  const p = v128.load(at);
  const rounded = f32x4.nearest(f32x4.mul(p, inverse));
  const code = i32x4.trunc_sat_f32x4_s(rounded);
  sums = i32x4.add(sums, code);
  losses = f64x2.add(losses, squaresOfF32(f32x4.sub(p, f32x4.mul(rounded, unit))));
  return code;
}

function writeCodes(many: ManyQuery, residuals: usize, peak: f32, scale: f32): void {
  const unit = peak / scale;
  const inverses = f32x4.splat(peak === 0 ? 0 : scale / peak);
  const units = f32x4.splat(unit);
  sums = i32x4.splat(0);
  losses = f64x2.splat(0);
  const vectors = codeVectors();
  const window = windowVectors();
  const head = headVectors();
  let to = many.codes;
  let from = residuals;
  for (let first = 0; first < vectors; first += window) {
    const start = to;
    if (ASC_FEATURE_RELAXED_SIMD) to += 32;
    let lanes = i16x8.splat(0);
    for (let v = first; v < min(vectors, first + window); v++) {
      if (v === head) many.headSum = addI32(sums);
      const a = codeFour(from, inverses, units);
      const b = codeFour(from + 16, inverses, units);
      if (ASC_FEATURE_RELAXED_SIMD) {
        const c = codeFour(from + 32, inverses, units);
        const d = codeFour(from + 48, inverses, units);
        const codes = i8x16.narrow_i16x8_s(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d));
        v128.store(to, codes);
        lanes = i16x8.sub(lanes, i16x8.relaxed_dot_i8x16_i7x16_s(codes, i8x16.splat(32)));
        from += 64;
      } else {
        v128.store(to, i16x8.narrow_i32x4_s(a, b));
        from += 32;
      }
      to += 32;
    }
    if (ASC_FEATURE_RELAXED_SIMD) v128.store(start, lanes);
  }
  many.unit = <f64>unit;
  many.codeSum = addI32(sums);
  many.codeLoss = Math.sqrt(addF64(losses)) * NORM_SLACK + many.norm * 9.5367431640625e-7;
  many.codedNorm = many.norm + many.codeLoss;
}

/** Size of the codes of one pair of queries. */
export function manyCodeBytes(): usize {
  return pairBytes(codeVectors());
}
