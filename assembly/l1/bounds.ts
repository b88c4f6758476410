/**
 * Lower bounds of a row's cost for L1, Σ|x−q|; costLimit (exact/cost-limit.ts) says which of them rule out a
 * row.
 *
 *   Σ|x − q| ≥ Δ Σ|P − c| + o − ε − ‖y − ŷ‖₁     slots.ts; the sum is an exact integer, below 2^24
 *
 * This also holds with the sum, o and ε over the head alone.
 *
 * Float32 roundings, u = 2^-24: there are three terms, each the product of at most four rounded factors.
 * L1_SLACK = 2^-19 of each term covers them. Losses are stored rounded up. A bound of −infinity or NaN skips
 * nothing.
 *
 * The query's codes depend on a row's step, of which a segment's rows have about six. Rows are not processed
 * step by step, because memory is read fastest in the rows' order: as four streams, see dot/dots-of-list.ts.
 */

import { Query } from "../exact/query";
import { gather32, lanesOf, loadHalves } from "../lanes";
import {
  CODE_SUMS,
  centreOf,
  groupBytes,
  groupPtr,
  HEAD_SUMS,
  headBytes,
  LOSS_L1,
  MAX_SEGMENT_ROWS,
  SECOND_GROUP_BYTES,
  STEPS,
  secondGroupPtr,
  segmentRows,
  tailBytes,
  wordsPtr,
} from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { padToStreams } from "../rows/selection";
import { maximaOfFour } from "./maxima-of-four";
import { CODE_SUM, HEAD_CODE_SUM, HEAD_OFFSET, hasCodes, makeCodes, noSlot, OFFSET, slotCodes, slotOf } from "./slots";

/** Relative slack for float32 roundings: 2^-19. */
const L1_SLACK: f64 = 1.9073486328125e-6;

/**
 * Maximum number of steps for which codes are made in one segment. The segment's other rows then count as
 * survivors.
 */
const MAX_SLOT_MISSES: i32 = 16;

/** Σ|P − c| without the term Σ c, i32[segmentRows], and o − ε, f32[segmentRows]. */
const sums = memory.data(<i32>MAX_SEGMENT_ROWS * 4, 16);
const rowOffsets = memory.data(<i32>MAX_SEGMENT_ROWS * 4, 16);

/**
 * Stores at bounds[row], f32, the bound of each row listed, by its code or its head.
 *
 * @param rows  u16[count], with room for LIST_PADDING more, which are overwritten.
 * @param rowBits  u32[segmentRows / 32]: the bounds of other rows are left unchanged.
 */
export function l1Bounds(query: Query, segment: usize, rows: usize, count: u32, isHead: bool, rowBits: usize, bounds: usize): void {
  if (count === 0) return;
  // The steps, one group of either metadata for every four rows, and the codes.
  countBytes(
    groupBytes(count) + <u64>((count + 3) >> 2) * <u64>SECOND_GROUP_BYTES + <u64>count * (isHead ? headBytes : headBytes + tailBytes),
  );
  query.slotMisses = MAX_SLOT_MISSES;
  const centre = centreOf(segment);
  const codeSumAt = isHead ? HEAD_CODE_SUM : CODE_SUM;
  const offsetAt = isHead ? HEAD_OFFSET : OFFSET;
  const quarter = padToStreams(rows, count);
  for (let at = rows; at < rows + quarter; at += 2) {
    const row0 = <usize>load<u16>(at);
    const row1 = <usize>load<u16>(at + quarter);
    const row2 = <usize>load<u16>(at + 2 * quarter);
    const row3 = <usize>load<u16>(at + 3 * quarter);
    const step0 = load<f32>(wordsPtr(segment, <u32>row0), STEPS);
    const step1 = load<f32>(wordsPtr(segment, <u32>row1), STEPS);
    const step2 = load<f32>(wordsPtr(segment, <u32>row2), STEPS);
    const step3 = load<f32>(wordsPtr(segment, <u32>row3), STEPS);
    let slot0 = slotOf(query, step0);
    let slot1 = slotOf(query, step1);
    let slot2 = slotOf(query, step2);
    let slot3 = slotOf(query, step3);
    if (
      !(
        hasCodes(slot0, step0, centre) &&
        hasCodes(slot1, step1, centre) &&
        hasCodes(slot2, step2, centre) &&
        hasCodes(slot3, step3, centre)
      )
    ) {
      makeCodes(query, step0, centre);
      makeCodes(query, step1, centre);
      makeCodes(query, step2, centre);
      makeCodes(query, step3, centre);
      // Some rows may not have got codes, or may have lost them again.
      if (!hasCodes(slot0, step0, centre)) slot0 = noSlot(query);
      if (!hasCodes(slot1, step1, centre)) slot1 = noSlot(query);
      if (!hasCodes(slot2, step2, centre)) slot2 = noSlot(query);
      if (!hasCodes(slot3, step3, centre)) slot3 = noSlot(query);
    }
    // Σ|P − c| = 2 Σ max(P, c) − Σ P − Σ c
    const maxima = maximaOfFour(
      segment,
      row0,
      row1,
      row2,
      row3,
      slotCodes(slot0),
      slotCodes(slot1),
      slotCodes(slot2),
      slotCodes(slot3),
      isHead,
    );
    const distances = i32x4.sub(i32x4.shl(maxima, 1), gather32(slot0, slot1, slot2, slot3, codeSumAt));
    v128.store32_lane(sums + (row0 << 2), distances, 0);
    v128.store32_lane(sums + (row1 << 2), distances, 1);
    v128.store32_lane(sums + (row2 << 2), distances, 2);
    v128.store32_lane(sums + (row3 << 2), distances, 3);
    const offsets = gather32(slot0, slot1, slot2, slot3, offsetAt);
    v128.store32_lane(rowOffsets + (row0 << 2), offsets, 0);
    v128.store32_lane(rowOffsets + (row1 << 2), offsets, 1);
    v128.store32_lane(rowOffsets + (row2 << 2), offsets, 2);
    v128.store32_lane(rowOffsets + (row3 << 2), offsets, 3);
  }
  finishBounds(segment, isHead ? HEAD_SUMS : CODE_SUMS, rowBits, bounds);
}

/** Computes the bounds from what l1Bounds stored, in row order. */
function finishBounds(segment: usize, rowSumsAt: usize, rowBits: usize, bounds: usize): void {
  const unit = f32x4.splat(<f32>(1 - L1_SLACK));
  const lossFactor = f32x4.splat(<f32>(1 + L1_SLACK));
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = load<u32>(rowBits + ((<usize>w) << 2));
    if (bits === 0) continue;
    for (let group: u32 = 0; group < 8; group++) {
      const row = (w << 5) + (group << 2);
      const at = (<usize>row) << 2;
      const second = secondGroupPtr(segment, row);
      const distances = f32x4.convert_i32x4_s(i32x4.sub(v128.load(sums + at), v128.load(second + rowSumsAt)));
      const steps = f32x4.mul(v128.load(groupPtr(segment, row), STEPS), unit);
      const loss = loadHalves(second + LOSS_L1);
      const bound = f32x4.sub(f32x4.add(f32x4.mul(distances, steps), v128.load(rowOffsets + at)), f32x4.mul(loss, lossFactor));
      v128.store(bounds + at, v128.bitselect(bound, v128.load(bounds + at), lanesOf((bits >> (group << 2)) & 15)));
    }
  }
}
