/**
 * Lower bounds of a row's cost, from its codes. Cost is what a search makes small: −cos·‖q‖ for COSINE, Σ(x−q)² for L2, Σ|x−q| for L1.
 * A row whose bound is above the limit that costLimit makes of the k-th best score scores below it, surely, and is skipped.
 *
 * Exact arithmetic first. x = centre + y, q = centre + p, p̂ and ŷ the values of the codes, r = ‖y − ŷ‖₂, ρ = ‖p − p̂‖₂:
 *   p·y = p̂·ŷ + p̂·(y − ŷ) + (p − p̂)·y ≤ p̂·ŷ + ‖p̂‖ r + ρ ‖y‖                     (Cauchy–Schwarz)
 *   q·x = p·y + centre·y + q·centre                  cost = −q·x / ‖x‖            (0 for x = 0, where q·x = 0 ≤ any upper bound used)
 *   Σ(x − q)² = ‖p − y‖² = ‖p‖² + ‖y‖² − 2 p·y
 *   Σ|x − q| ≥ (Δ/16) Σ|P − c| + o − ε − ‖y − ŷ‖₁     l1-slots.ts
 * and p̂·ŷ = unit · Δ · (Σ Q h − 8 Σ Q) for the high plane, unit · Δ/16 · (16 Σ Q h + Σ Q l − 136 Σ Q) for both; the sums are exact integers.
 *
 * Float32 roundings, u = 2^-24. Every bound is a sum of at most six terms, each the product of at most four rounded factors, so what is
 * computed is within 16 u = 2^-20 of the sum of the terms' magnitudes M. The magnitudes: |p̂·ŷ| ≤ ‖p̂‖ (‖y‖ + r), |centre·y| ≤ ‖centre‖ ‖y‖,
 * the rest are terms themselves. So the coefficients of r and ‖y‖ and the constants are enlarged by SLACK = 2^-19 of those magnitudes, twice what is needed; that
 * also covers the stored ‖y‖ (2^-21), ‖x‖ (u), centre·y (3 u ‖centre‖ ‖y‖) and the float64 sum that defines the score (2^-39 of its terms;
 * for COSINE relative to ‖q‖, which costLimit adds). Losses are stored rounded up. Magnitudes stay below 2^100 and, where they matter, above
 * 2^-100, since codes.ts and query-codes.ts refuse others; a bound of −infinity or NaN skips nothing.
 */
import { FULL_L1, FULL_L2, HIGH_L1, HIGH_L2 } from "./codes";
import { slotFor, slotFullCodes, slotFullOffset, slotHighCodes, slotHighOffset } from "./l1-slots";
import { addLanes, addLanesOfFour, planeDot, planeDotOfFour } from "./plane-dot";
import { fullL1, planeL1 } from "./plane-l1";
import { Query } from "./query";
import { codeDimension, highPtr, lossesPtr, lowPtr, normsPtr, residualNormsPtr, shiftsPtr, stepsPtr } from "./rows";
import { COSINE, cosineFloor, distanceCeiling, L1 } from "./similarity";

const SLACK: f64 = 1.9073486328125e-6; // 2^-19

/** The cost above which a row scores below `score`, rounded up to float32; at most the largest float32, so that an infinite bound is above it. */
export function costLimit(similarity: i32, score: f64, query: Query): f32 {
  if (score < 0) return f32.MAX_VALUE;
  let limit: f64;
  if (similarity === COSINE) {
    const norm = Math.sqrt(query.squares);
    limit = norm * (1e-9 - cosineFloor(score));
  } else {
    limit = distanceCeiling(score);
  }
  return min(<f32>(limit + Math.abs(limit) * 2.384185791015625e-7 + 1e-44), f32.MAX_VALUE);
}

/** Four u16 losses at `ptr` as float32. */
function fourLosses(ptr: usize): v128 {
  return i32x4.shl(i32x4.extend_low_i16x8_u(v128.load64_zero(ptr)), 16);
}

function oneLoss(ptr: usize): f64 {
  return <f64>reinterpret<f32>((<u32>load<u16>(ptr)) << 16);
}

// Coefficients for one query and segment: cost ≥ (constant − unit·Δ·(ΣQh − 8ΣQ)·factor − …); see setDotCoefficients.
let lossFactor: f64 = 0;
let normFactor: f64 = 0;
let constant: f64 = 0;
let squareFactor: f64 = 0;
let isCosine: bool = true;

/** To be called before dotBounds and fullBound, for each query and segment. */
export function setDotCoefficients(query: Query, similarity: i32): void {
  isCosine = similarity === COSINE;
  lossFactor = query.codedNorm * (1 + SLACK);
  normFactor = query.codeLoss * (1 + SLACK) + SLACK * (query.codedNorm + query.centreNorm);
  if (isCosine) {
    constant = query.shift + SLACK * Math.abs(query.shift) + 1e-11 * Math.sqrt(query.squares) * query.centreNorm;
  } else {
    constant = query.norm * query.norm * (1 - SLACK);
    squareFactor = 1 - SLACK;
  }
}

/** Bounds of rows first..first+3 of a segment from their high planes, f32x4. Their Σ Q h, i32x4, are stored at `sumsPtr` for fullBound. */
export function dotBounds(query: Query, segment: usize, first: u32, sumsPtr: usize): v128 {
  const plane = highPtr(segment) + <usize>first * (<usize>codeDimension >> 1);
  const sums = planeDotOfFour(query.dotCodes, plane);
  v128.store(sumsPtr, sums);
  const at = (<usize>first) << 2;
  const product = f32x4.mul(
    f32x4.mul(f32x4.convert_i32x4_s(i32x4.sub(sums, i32x4.splat(8 * query.dotCodeSum))), f32x4.splat(<f32>query.dotUnit)),
    v128.load(stepsPtr(segment) + at),
  );
  const loss = f32x4.mul(fourLosses(lossesPtr(segment, HIGH_L2) + ((<usize>first) << 1)), f32x4.splat(<f32>lossFactor));
  const norm = v128.load(residualNormsPtr(segment) + at);
  const upper = f32x4.add(f32x4.add(product, loss), f32x4.mul(norm, f32x4.splat(<f32>normFactor)));
  if (isCosine) {
    const dot = f32x4.add(f32x4.add(upper, v128.load(shiftsPtr(segment) + at)), f32x4.splat(<f32>constant));
    return f32x4.neg(f32x4.div(dot, v128.load(normsPtr(segment) + at)));
  }
  const squares = f32x4.add(f32x4.mul(f32x4.mul(norm, norm), f32x4.splat(<f32>squareFactor)), f32x4.splat(<f32>constant));
  return f32x4.sub(squares, f32x4.add(upper, upper));
}

/** Bounds of four rows for l1; −infinity for a row whose step has no slot left. */
export function l1Bounds(query: Query, segment: usize, first: u32): v128 {
  const planeBytes = <usize>codeDimension >> 1;
  const plane = highPtr(segment) + <usize>first * planeBytes;
  const steps = v128.load(stepsPtr(segment) + ((<usize>first) << 2));
  const unit = f32x4.mul(steps, f32x4.splat(<f32>(0.0625 * (1 - SLACK))));
  const loss = f32x4.mul(fourLosses(lossesPtr(segment, HIGH_L1) + ((<usize>first) << 1)), f32x4.splat(<f32>(1 + SLACK)));
  const step = f32x4.extract_lane(steps, 0);
  if (v128.any_true(f32x4.ne(steps, f32x4.splat(step)))) return mixedL1Bounds(query, segment, plane, steps, unit, loss);
  const slot = slotFor(query, segment, step);
  if (slot === 0) return f32x4.splat(-Infinity);
  const codes = slotHighCodes(slot);
  const sums = addLanesOfFour(
    planeL1(codes, plane),
    planeL1(codes, plane + planeBytes),
    planeL1(codes, plane + 2 * planeBytes),
    planeL1(codes, plane + 3 * planeBytes),
  );
  return f32x4.sub(f32x4.add(f32x4.mul(f32x4.convert_i32x4_s(sums), unit), f32x4.splat(slotHighOffset(slot))), loss);
}

/** One row after the other: making the slot of one may take that of another. */
function mixedL1Bounds(query: Query, segment: usize, plane: usize, steps: v128, unit: v128, loss: v128): v128 {
  const planeBytes = <usize>codeDimension >> 1;
  let sums = i32x4.splat(0);
  let offsets = f32x4.splat(-Infinity);
  let slot = slotFor(query, segment, f32x4.extract_lane(steps, 0));
  if (slot !== 0) {
    sums = i32x4.replace_lane(sums, 0, addLanes(planeL1(slotHighCodes(slot), plane)));
    offsets = f32x4.replace_lane(offsets, 0, slotHighOffset(slot));
  }
  slot = slotFor(query, segment, f32x4.extract_lane(steps, 1));
  if (slot !== 0) {
    sums = i32x4.replace_lane(sums, 1, addLanes(planeL1(slotHighCodes(slot), plane + planeBytes)));
    offsets = f32x4.replace_lane(offsets, 1, slotHighOffset(slot));
  }
  slot = slotFor(query, segment, f32x4.extract_lane(steps, 2));
  if (slot !== 0) {
    sums = i32x4.replace_lane(sums, 2, addLanes(planeL1(slotHighCodes(slot), plane + 2 * planeBytes)));
    offsets = f32x4.replace_lane(offsets, 2, slotHighOffset(slot));
  }
  slot = slotFor(query, segment, f32x4.extract_lane(steps, 3));
  if (slot !== 0) {
    sums = i32x4.replace_lane(sums, 3, addLanes(planeL1(slotHighCodes(slot), plane + 3 * planeBytes)));
    offsets = f32x4.replace_lane(offsets, 3, slotHighOffset(slot));
  }
  return f32x4.sub(f32x4.add(f32x4.mul(f32x4.convert_i32x4_s(sums), unit), offsets), loss);
}

/** Bound of one row from both planes. `highSum` is the Σ Q h that dotBounds found; l1 does not use it. */
export function fullBound(query: Query, similarity: i32, segment: usize, row: u32, highSum: i32): f64 {
  const planeOffset = <usize>row * (<usize>codeDimension >> 1);
  const high = highPtr(segment) + planeOffset;
  const low = lowPtr(segment) + planeOffset;
  const at = (<usize>row) << 2;
  const step = load<f32>(stepsPtr(segment) + at);
  if (similarity === L1) {
    const slot = slotFor(query, segment, step);
    if (slot === 0) return -Infinity;
    const sum = <f64>addLanes(fullL1(slotFullCodes(slot), high, low));
    const loss = oneLoss(lossesPtr(segment, FULL_L1) + ((<usize>row) << 1));
    return sum * <f64>step * 0.0625 * (1 - SLACK) + <f64>slotFullOffset(slot) - loss * (1 + SLACK);
  }
  const sum = 16 * <f64>highSum + <f64>planeDot(query.dotCodes, low) - 136 * <f64>query.dotCodeSum;
  const product = sum * query.dotUnit * <f64>step * 0.0625;
  const norm = <f64>load<f32>(residualNormsPtr(segment) + at);
  const upper = product + oneLoss(lossesPtr(segment, FULL_L2) + ((<usize>row) << 1)) * lossFactor + norm * normFactor;
  if (isCosine) return -(upper + <f64>load<f32>(shiftsPtr(segment) + at) + constant) / <f64>load<f32>(normsPtr(segment) + at);
  return norm * norm * squareFactor + constant - 2 * upper;
}
