/** The sample that a basis is learnt from: live rows, the last QUERIES of which are kept for the trial. */
import { allocate } from "../rows/memory";
import { bitAt, livePtr, liveRows, rowPtr, segmentCount, segmentPtr, segmentRows, segmentShift } from "../rows/rows";

export const MAX_SAMPLE: u32 = 4096;
/** Rows of the sample that are queries of the trial; a multiple of 8. */
export const QUERIES: i32 = 24;

export let sampleCount: i32 = 0;
/** u32[MAX_SAMPLE] */
let sample: usize = 0;

/** @returns false at the memory limit. */
export function reserveSample(): bool {
  if (sample === 0) sample = allocate((<u64>MAX_SAMPLE) << 2);
  return sample !== 0;
}

let random: u32 = 1;

/** xorshift32 */
export function nextRandom(): u32 {
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  return random;
}

/** Address of the f32[stride] of row `i` of the sample. */
export function sampleRow(i: i32): usize {
  return rowPtr(load<u32>(sample + ((<usize>i) << 2)));
}

/** Draws rows evenly from all live ones, one from each of sampleCount parts; those that are to be queries, evenly too, go to the end. */
export function drawSample(): void {
  sampleCount = <i32>min(liveRows, MAX_SAMPLE);
  let seen: u64 = 0;
  let drawn: u64 = 0;
  const rows = <u64>liveRows;
  let next = <u64>nextRandom() % ((rows / <u64>sampleCount) | 1);
  for (let s: u32 = 0; s < segmentCount; s++) {
    for (let row: u32 = 0; row < segmentRows; row++) {
      if (!bitAt(livePtr(segmentPtr(s)), row)) continue;
      if (seen++ !== next) continue;
      store<u32>(sample + ((<usize>drawn) << 2), (s << segmentShift) + row);
      if (++drawn === <u64>sampleCount) break;
      // Somewhere in the next part.
      const from = (drawn * rows) / <u64>sampleCount;
      const to = ((drawn + 1) * rows) / <u64>sampleCount;
      next = max(seen, from + (<u64>nextRandom() % max<u64>(1, to - from)));
    }
    if (drawn === <u64>sampleCount) break;
  }
  sampleCount = <i32>drawn;
  for (let i = 0; i < QUERIES; i++) {
    const last = sample + ((<usize>(sampleCount - 1 - i)) << 2);
    const other = sample + ((<usize>(((sampleCount - QUERIES) * i) / QUERIES)) << 2);
    const row = load<u32>(last);
    store<u32>(last, load<u32>(other));
    store<u32>(other, row);
  }
}
