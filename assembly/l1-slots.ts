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
import { codeDimension, dimension } from "./rows";

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
  const inverse = 1 / unit;
  let highOffset: f64 = 0;
  let fullOffset: f64 = 0;
  let magnitude: f64 = 0;
  const highCodes = slotHighCodes(slot);
  const fullCodes = slotFullCodes(slot);
  for (let j = 0; j < dimension; j++) {
    let p = load<f64>(query.doubles + ((<usize>j) << 3));
    if (centre !== 0) p -= <f64>load<f32>(centre + ((<usize>j) << 2));
    if (!(Math.abs(p) <= MAX_CODABLE)) return false;
    const scaled = p * inverse;
    const high = Math.max(-128, Math.min(112, scaled));
    const full = Math.max(-136, Math.min(119, scaled));
    const highCode = nearest(high);
    const fullCode = nearest(full);
    highOffset += Math.abs(scaled - high) - Math.abs(high - highCode);
    fullOffset += Math.abs(scaled - full) - Math.abs(full - fullCode);
    magnitude += Math.abs(scaled - high) + 1;
    store<u8>(highCodes + <usize>j, <u8>(<i32>highCode + 128));
    store<u8>(fullCodes + <usize>j, <u8>(<i32>fullCode + 136));
  }
  for (let j = dimension; j < codeDimension; j++) {
    store<u8>(highCodes + <usize>j, 128);
    store<u8>(fullCodes + <usize>j, 136);
  }
  const slack = OFFSET_SLACK * magnitude;
  store<f32>(slot, <f32>((highOffset - slack) * unit), 8);
  store<f32>(slot, <f32>((fullOffset - slack) * unit), 12);
  return true;
}
