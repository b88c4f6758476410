/**
 * A query's codes for l1, one set for each step Δ of the rows (kept in a few slots): p = q − centre in units
 * of Δ,
 *
 *   P = clamp(nearest(p/Δ) + 64, 0, 127)
 *
 * Let p̂ be the clamped but unrounded value, o = ‖p − p̂‖₁ and ε = Σ|p̂ − P's value|. Every ŷ lies in the
 * range that p̂ is clamped to, hence
 *   Σ|p − y| ≥ Σ|p − ŷ| − ‖y − ŷ‖₁ = Σ|p̂ − ŷ| + o − ‖y − ŷ‖₁ ≥ Δ Σ|P − c| − ε + o − ‖y − ŷ‖₁.
 * The slot's offset is o − ε. The same over the head bounds the head's share, and the tail adds nothing below
 * 0. All is computed in float64 from float32 values. OFFSET_SLACK · (o + ε) covers these roundings and the
 * one to float32.
 *
 *   slot: | step f32 | centre u32 | offset f32 | Σ P i32 | offset of the head f32 | Σ P of the head i32
 *         | 8 bytes unused | codes u8[codeDimension] |
 */

import { MAX_CODABLE } from "../codes/codes";
import { Query, SLOT_HEADER_BYTES, slotBytes, stepSlots } from "../exact/query";
import { addF64 } from "../lanes";
import { codeDimension, headDimension, stride } from "../rows/rows";

const OFFSET_SLACK: f64 = 9.5367431640625e-7; // 2^-20

/** Offsets of the fields of a slot. */
export const OFFSET: usize = 8;
export const CODE_SUM: usize = 12;
export const HEAD_OFFSET: usize = 16;
export const HEAD_CODE_SUM: usize = 20;

export function slotCodes(slot: usize): usize {
  return slot + SLOT_HEADER_BYTES;
}

/** A slot whose offsets of −infinity give bounds that skip nothing. */
export function noSlot(query: Query): usize {
  return query.slots + <usize>stepSlots * slotBytes();
}

/** Empties the slots (a step of NaN equals none) and prepares noSlot after them. */
export function clearSlots(query: Query): void {
  for (let i: u32 = 0; i < stepSlots; i++) store<f32>(query.slots + <usize>i * slotBytes(), NaN);
  store<f32>(noSlot(query), -Infinity, OFFSET);
  store<f32>(noSlot(query), -Infinity, HEAD_OFFSET);
}

/**
 * The one slot that a step may have. Neighbours on the steps' grid (codes/codes.ts), over two octaves or
 * more, have different slots.
 */
export function slotOf(query: Query, step: f32): usize {
  return query.slots + <usize>((reinterpret<u32>(step) >> 20) & (stepSlots - 1)) * slotBytes();
}

/** Whether a slot has the codes for a step and a centre. */
export function hasCodes(slot: usize, step: f32, centre: usize): bool {
  return load<f32>(slot) === step && <usize>load<u32>(slot, 4) === centre;
}

/**
 * Makes the codes for a step unless they exist, or unless that would be more than query.slotMisses allows.
 */
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
  const unit = <f64>step;
  const inverse = f64x2.splat(1 / unit);
  let largest = f64x2.splat(0);
  let offset = f64x2.splat(0);
  let outside = f64x2.splat(0);
  let sum = f64x2.splat(0);
  let headOffset = f64x2.splat(0);
  let headSum = f64x2.splat(0);
  const head = <usize>headDimension;
  const codes = slotCodes(slot);
  // Two at a time. The query's padding is 0, like the centre's, and gets the codes of 0.
  for (let j: usize = 0; j < <usize>stride; j += 2) {
    if (j === head) {
      headOffset = offset;
      headSum = sum;
    }
    let p = v128.load(query.doubles + (j << 3));
    if (centre !== 0) p = f64x2.sub(p, f64x2.promote_low_f32x4(v128.load64_zero(centre + (j << 2))));
    largest = f64x2.max(largest, f64x2.abs(p));
    const scaled = f64x2.mul(p, inverse);
    const clamped = f64x2.max(f64x2.splat(-64), f64x2.min(f64x2.splat(63), scaled));
    const code = f64x2.nearest(clamped);
    const beyond = f64x2.abs(f64x2.sub(scaled, clamped));
    offset = f64x2.add(offset, f64x2.sub(beyond, f64x2.abs(f64x2.sub(clamped, code))));
    outside = f64x2.add(outside, beyond);
    sum = f64x2.add(sum, code);
    storeTwo(codes + j, f64x2.add(code, f64x2.splat(64)));
  }
  if (!(f64x2.extract_lane(largest, 0) <= MAX_CODABLE && f64x2.extract_lane(largest, 1) <= MAX_CODABLE)) return false;
  for (let j = stride; j < codeDimension; j++) store<u8>(codes + <usize>j, 64);
  const slack = OFFSET_SLACK * (addF64(outside) + <f64>stride);
  store<f32>(slot, <f32>((addF64(offset) - slack) * unit), OFFSET);
  store<i32>(slot, <i32>addF64(sum) + 64 * codeDimension, CODE_SUM);
  store<f32>(slot, <f32>((addF64(headOffset) - slack) * unit), HEAD_OFFSET);
  store<i32>(slot, <i32>addF64(headSum) + 64 * headDimension, HEAD_CODE_SUM);
  return true;
}

/** Two values in 0..127, as bytes. */
function storeTwo(to: usize, values: v128): void {
  const codes = i32x4.trunc_sat_f64x2_s_zero(values);
  store<u8>(to, <u8>i32x4.extract_lane(codes, 0));
  store<u8>(to, <u8>i32x4.extract_lane(codes, 1), 1);
}
