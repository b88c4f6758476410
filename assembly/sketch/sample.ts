/**
 * The sample that a basis is learnt from: live rows, the last QUERIES of which are reserved for the trial.
 */
import { beginWanted, MAX_WANTED, rowFloats, wantFloats } from "../exact/fetched";
import {
  bitAt,
  floatsPtr,
  isOutside,
  livePtr,
  liveRows,
  segmentCount,
  segmentPtr,
  segmentRows,
  segmentShift,
  strideBytes,
} from "../rows/rows";

/** Number of sample rows used as queries of the trial; a multiple of 8. */
export const QUERIES: i32 = 24;

export let sampleCount: i32 = 0;
/** u32[sampleCount] */
let sample: usize = 0;
/** f32[sampleCount × stride]: copies of rows whose float32 are outside. */
let copies: usize = 0;

function listBytes(rows: u32): u64 {
  return (((<u64>rows) << 2) + 63) & ~63;
}

/** Size of the list of `rows` rows, and of their copies where float32 are outside. */
export function sampleBytes(rows: u32): u64 {
  return listBytes(rows) + (isOutside ? (<u64>rows * <u64>strideBytes() + 63) & ~63 : 0);
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
  if (isOutside) return copies + <usize>i * strideBytes();
  const row = load<u32>(sample + ((<usize>i) << 2));
  return floatsPtr(segmentPtr(row >> segmentShift)) + <usize>(row & (segmentRows - 1)) * strideBytes();
}

/**
 * Draws rows evenly from all live ones, one from each of sampleCount parts. The future queries, also drawn
 * evenly, go to the end.
 *
 * @param count  at most liveRows.
 * @param to  where the list goes, sampleBytes(count).
 */
export function drawSample(count: u32, to: usize): void {
  sample = to;
  sampleCount = <i32>count;
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
      // A random row of the next part.
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
  copies = sample + <usize>listBytes(count);
  if (isOutside) copyRows();
}

/** Copies the rows of the sample, so that learning need not read them again. */
function copyRows(): void {
  const rows = <u32>sampleCount;
  for (let first: u32 = 0; first < rows; first += MAX_WANTED) {
    const end = min(rows, first + MAX_WANTED);
    beginWanted();
    for (let i = first; i < end; i++) wantFloats(segmentOf(i), localRow(i));
    for (let i = first; i < end; i++) memory.copy(copies + <usize>i * strideBytes(), rowFloats(segmentOf(i), localRow(i)), strideBytes());
  }
}

function segmentOf(i: u32): usize {
  return segmentPtr(load<u32>(sample + ((<usize>i) << 2)) >> segmentShift);
}

function localRow(i: u32): u32 {
  return load<u32>(sample + ((<usize>i) << 2)) & (segmentRows - 1);
}
