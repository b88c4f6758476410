/**
 * A query's codes for l1, one set for each step Δ that its rows have (kept in a few slots): p = q − centre in units of Δ/16.
 *
 *   high plane  P = clamp(nearest(16 p/Δ) + 128, 0, 240)    against 16 h
 *   both        P = clamp(nearest(16 p/Δ) + 136, 0, 255)    against c
 *
 * With p̂ the clamped but unrounded value, o = ‖p − p̂‖₁ and ε = Σ|p̂ − P's value|: every ŷ lies in the range that p̂ is clamped to, hence
 *   Σ|p − y| ≥ Σ|p − ŷ| − ‖y − ŷ‖₁ = Σ|p̂ − ŷ| + o − ‖y − ŷ‖₁ ≥ (Δ/16) Σ|P − c| − ε + o − ‖y − ŷ‖₁.
 * The slot's offset is o − ε for each plane. Float64 from float32 values; OFFSET_SLACK · (o + ε) covers its roundings and that to float32.
 *
 *   slot: | step f32 | centre u32 | offset of the high plane f32 | offset of both f32 | 16 bytes unused | codes high u8[] | codes full u8[] |
 */
import { MAX_CODABLE } from "./codes";
import { Query, SLOT_HEADER_BYTES, STEP_SLOTS, slotBytes } from "./query";
import { centreOf } from "./query-codes";
import { codeDimension, stride } from "./rows";

const OFFSET_SLACK: f64 = 9.5367431640625e-7; // 2^-20

export function slotHighOffset(slot: usize): f32 {
  return load<f32>(slot, 8);
}

export function slotFullOffset(slot: usize): f32 {
  return load<f32>(slot, 12);
}

export function slotHighCodes(slot: usize): usize {
  return slot + SLOT_HEADER_BYTES;
}

export function slotFullCodes(slot: usize): usize {
  return slot + SLOT_HEADER_BYTES + <usize>codeDimension;
}

/** @returns the slot for a step, made if need be and query.slotMisses allows it, else 0. */
export function slotFor(query: Query, segment: usize, step: f32): usize {
  if (step === 0) return 0;
  const centre = centreOf(segment);
  const size = slotBytes();
  for (let i = 0; i < STEP_SLOTS; i++) {
    const slot = query.stepSlots + <usize>i * size;
    if (load<f32>(slot) === step && <usize>load<u32>(slot, 4) === centre) return slot;
  }
  if (query.slotMisses <= 0) return 0;
  query.slotMisses--;
  const slot = query.stepSlots + <usize>query.nextSlot * size;
  query.nextSlot = (query.nextSlot + 1) % STEP_SLOTS;
  store<f32>(slot, 0);
  if (!fillSlot(slot, query, centre, step)) return 0;
  store<f32>(slot, step);
  store<u32>(slot, <u32>centre, 4);
  return slot;
}

function fillSlot(slot: usize, query: Query, centre: usize, step: f32): bool {
  const unit = <f64>step * 0.0625;
  const inverse = f64x2.splat(1 / unit);
  let largest = f64x2.splat(0);
  let highOffset = f64x2.splat(0);
  let fullOffset = f64x2.splat(0);
  let outside = f64x2.splat(0);
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
    const highCode = f64x2.nearest(high);
    const fullCode = f64x2.nearest(full);
    const highOutside = f64x2.abs(f64x2.sub(scaled, high));
    highOffset = f64x2.add(highOffset, f64x2.sub(highOutside, f64x2.abs(f64x2.sub(high, highCode))));
    fullOffset = f64x2.add(fullOffset, f64x2.sub(f64x2.abs(f64x2.sub(scaled, full)), f64x2.abs(f64x2.sub(full, fullCode))));
    outside = f64x2.add(outside, highOutside);
    storeTwo(highCodes + j, f64x2.add(highCode, f64x2.splat(128)));
    storeTwo(fullCodes + j, f64x2.add(fullCode, f64x2.splat(136)));
  }
  if (!(f64x2.extract_lane(largest, 0) <= MAX_CODABLE && f64x2.extract_lane(largest, 1) <= MAX_CODABLE)) return false;
  for (let j = stride; j < codeDimension; j++) {
    store<u8>(highCodes + <usize>j, 128);
    store<u8>(fullCodes + <usize>j, 136);
  }
  const slack = OFFSET_SLACK * (addLanes(outside) + <f64>stride);
  store<f32>(slot, <f32>((addLanes(highOffset) - slack) * unit), 8);
  store<f32>(slot, <f32>((addLanes(fullOffset) - slack) * unit), 12);
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
