/**
 * A query's codes for l1, one set for each step Δ that its rows have (kept in a few slots): p = q − centre in units of Δ/16.
 *
 *   high plane  P = clamp(2 nearest(8 p/Δ) + 128, 0, 240)   against 16 h; even, as plane-l1.ts wants it
 *   both        P = clamp(nearest(16 p/Δ) + 136, 0, 255)    against c
 *
 * With p̂ the clamped but unrounded value, o = ‖p − p̂‖₁ and ε = Σ|p̂ − P's value|: every ŷ lies in the range that p̂ is clamped to, hence
 *   Σ|p − y| ≥ Σ|p − ŷ| − ‖y − ŷ‖₁ = Σ|p̂ − ŷ| + o − ‖y − ŷ‖₁ ≥ (Δ/16) Σ|P − c| − ε + o − ‖y − ŷ‖₁.
 * The slot's offset is o − ε for each plane. Float64 from float32 values; OFFSET_SLACK · (o + ε) covers its roundings and that to float32.
 *
 *   slot: | step f32 | centre u32 | offset of the high plane f32 | offset of both f32 | Σ P of the high plane i32 | of both i32 | 8 bytes unused | codes high u8[] | codes full u8[] |
 */
import { MAX_CODABLE } from "./codes";
import { Query, SLOT_HEADER_BYTES, slotBytes, stepSlots } from "./query";
import { codeDimension, stride } from "./rows";

const OFFSET_SLACK: f64 = 9.5367431640625e-7; // 2^-20

/** Where a slot has them. */
export const HIGH_OFFSET: usize = 8;
export const FULL_OFFSET: usize = 12;
export const HIGH_SUM: usize = 16;
export const FULL_SUM: usize = 20;

export function slotHighCodes(slot: usize): usize {
  return slot + SLOT_HEADER_BYTES;
}

export function slotFullCodes(slot: usize): usize {
  return slot + SLOT_HEADER_BYTES + <usize>codeDimension;
}

/** A slot whose offsets of −infinity make bounds that skip nothing. */
export function noSlot(query: Query): usize {
  return query.slots + <usize>stepSlots * slotBytes();
}

/** Empties the slots (a step of NaN is equal to none) and readies noSlot behind them. */
export function clearSlots(query: Query): void {
  for (let i: u32 = 0; i < stepSlots; i++) store<f32>(query.slots + <usize>i * slotBytes(), NaN);
  store<f32>(noSlot(query), -Infinity, HIGH_OFFSET);
  store<f32>(noSlot(query), -Infinity, FULL_OFFSET);
}

/** The one slot that a step may have: neighbours on the steps' grid (codes.ts), of two octaves or more, have slots of their own. */
export function slotOf(query: Query, step: f32): usize {
  return query.slots + <usize>((reinterpret<u32>(step) >> 20) & (stepSlots - 1)) * slotBytes();
}

/** Whether a slot has the codes for a step and a centre. */
export function hasCodes(slot: usize, step: f32, centre: usize): bool {
  return load<f32>(slot) === step && <usize>load<u32>(slot, 4) === centre;
}

/** Makes the codes for a step unless they are there; not when that would be more than query.slotMisses allows. */
export function makeCodes(query: Query, step: f32, centre: usize): void {
  const slot = slotOf(query, step);
  if (step === 0 || hasCodes(slot, step, centre) || query.slotMisses <= 0) return;
  query.slotMisses--;
  store<f32>(slot, NaN);
  if (!fillSlot(slot, query, centre, step)) return;
  store<f32>(slot, step);
  store<u32>(slot, <u32>centre, 4);
}

function fillSlot(slot: usize, query: Query, centre: usize, step: f32): bool {
  const unit = <f64>step * 0.0625;
  const inverse = f64x2.splat(1 / unit);
  let largest = f64x2.splat(0);
  let highOffset = f64x2.splat(0);
  let fullOffset = f64x2.splat(0);
  let outside = f64x2.splat(0);
  let highSum = f64x2.splat(0);
  let fullSum = f64x2.splat(0);
  const highCodes = slotHighCodes(slot);
  const fullCodes = slotFullCodes(slot);
  // Two at a time; the query's padding is 0, as the centre's is, and gets the codes of 0.
  for (let j: usize = 0; j < <usize>stride; j += 2) {
    let p = v128.load(query.doubles + (j << 3));
    if (centre !== 0) p = f64x2.sub(p, f64x2.promote_low_f32x4(v128.load64_zero(centre + (j << 2))));
    largest = f64x2.max(largest, f64x2.abs(p));
    const scaled = f64x2.mul(p, inverse);
    const high = f64x2.max(f64x2.splat(-128), f64x2.min(f64x2.splat(112), scaled));
    const full = f64x2.max(f64x2.splat(-136), f64x2.min(f64x2.splat(119), scaled));
    const half = f64x2.nearest(f64x2.mul(high, f64x2.splat(0.5)));
    const highCode = f64x2.add(half, half);
    const fullCode = f64x2.nearest(full);
    const highOutside = f64x2.abs(f64x2.sub(scaled, high));
    highOffset = f64x2.add(highOffset, f64x2.sub(highOutside, f64x2.abs(f64x2.sub(high, highCode))));
    fullOffset = f64x2.add(fullOffset, f64x2.sub(f64x2.abs(f64x2.sub(scaled, full)), f64x2.abs(f64x2.sub(full, fullCode))));
    outside = f64x2.add(outside, highOutside);
    highSum = f64x2.add(highSum, highCode);
    fullSum = f64x2.add(fullSum, fullCode);
    storeTwo(highCodes + j, f64x2.add(highCode, f64x2.splat(128)));
    storeTwo(fullCodes + j, f64x2.add(fullCode, f64x2.splat(136)));
  }
  if (!(f64x2.extract_lane(largest, 0) <= MAX_CODABLE && f64x2.extract_lane(largest, 1) <= MAX_CODABLE)) return false;
  for (let j = stride; j < codeDimension; j++) {
    store<u8>(highCodes + <usize>j, 128);
    store<u8>(fullCodes + <usize>j, 136);
  }
  const slack = OFFSET_SLACK * (addLanes(outside) + <f64>stride);
  store<f32>(slot, <f32>((addLanes(highOffset) - slack) * unit), HIGH_OFFSET);
  store<f32>(slot, <f32>((addLanes(fullOffset) - slack) * unit), FULL_OFFSET);
  store<i32>(slot, <i32>addLanes(highSum) + 128 * codeDimension, HIGH_SUM);
  store<i32>(slot, <i32>addLanes(fullSum) + 136 * codeDimension, FULL_SUM);
  return true;
}

function addLanes(v: v128): f64 {
  return f64x2.extract_lane(v, 0) + f64x2.extract_lane(v, 1);
}

/** Two values in 0..255, as bytes. */
function storeTwo(to: usize, values: v128): void {
  const codes = i32x4.trunc_sat_f64x2_s_zero(values);
  store<u8>(to, <u8>i32x4.extract_lane(codes, 0));
  store<u8>(to, <u8>i32x4.extract_lane(codes, 1), 1);
}
