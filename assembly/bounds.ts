/**
 * The limit that bounds are held against, and lower bounds of a row's cost for L1, Σ|x−q|; for the other costs see dot-bounds.ts.
 *
 *   Σ|x − q| ≥ (Δ/16) Σ|P − c| + o − ε − ‖y − ŷ‖₁     l1-slots.ts; the sum is an exact integer
 *
 * Float32 roundings, u = 2^-24: each term is the product of at most four rounded factors, and there are three. SLACK = 2^-19 of each term covers
 * them. Losses are stored rounded up. A bound of −infinity or NaN skips nothing.
 */
import { FULL_L1, HIGH_L1 } from "./codes";
import { slotFor, slotFullCodes, slotFullOffset, slotHighCodes, slotHighOffset } from "./l1-slots";
import { addLanes, addLanesOfFour } from "./plane-dot";
import { fullL1, planeL1 } from "./plane-l1";
import { Query } from "./query";
import { codeDimension, highPtr, lossesPtr, lowPtr, stepsPtr } from "./rows";
import { COSINE, cosineFloor, distanceCeiling } from "./similarity";

/** Relative slack for float32 roundings. */
export const SLACK: f64 = 1.9073486328125e-6; // 2^-19

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

/** The l1 bound of one row from both planes. */
export function fullL1Bound(query: Query, segment: usize, row: u32): f64 {
  const planeOffset = <usize>row * (<usize>codeDimension >> 1);
  const step = load<f32>(stepsPtr(segment) + ((<usize>row) << 2));
  const slot = slotFor(query, segment, step);
  if (slot === 0) return -Infinity;
  const sum = <f64>addLanes(fullL1(slotFullCodes(slot), highPtr(segment) + planeOffset, lowPtr(segment) + planeOffset));
  const loss = oneLoss(lossesPtr(segment, FULL_L1) + ((<usize>row) << 1));
  return sum * <f64>step * 0.0625 * (1 - SLACK) + <f64>slotFullOffset(slot) - loss * (1 + SLACK);
}

/** The l1 bounds of rows first..first+3 from both planes, rounded down to float32, for those whose bit is set in `four`; 0 for others. */
export function fullL1Bounds(query: Query, segment: usize, first: u32, four: u32): v128 {
  let bounds = f32x4.splat(0);
  if (four & 1) bounds = f32x4.replace_lane(bounds, 0, roundDown(fullL1Bound(query, segment, first)));
  if (four & 2) bounds = f32x4.replace_lane(bounds, 1, roundDown(fullL1Bound(query, segment, first + 1)));
  if (four & 4) bounds = f32x4.replace_lane(bounds, 2, roundDown(fullL1Bound(query, segment, first + 2)));
  if (four & 8) bounds = f32x4.replace_lane(bounds, 3, roundDown(fullL1Bound(query, segment, first + 3)));
  return bounds;
}

/** A float32 that is not above `x`: two units in the last place below, at most. */
function roundDown(x: f64): f32 {
  return <f32>(x - Math.abs(x) * 1.1920928955078125e-7 - 1e-44);
}
