/**
 * The plan for a few rows that lie far apart, except for L1. Their cost is memory latency, so the codes of a
 * batch are read with independent loads that wait for memory together. Then the rows with the best bounds are
 * scored, and those that these do not rule out. If more than half of a batch is left, the rest is scored
 * without codes.
 */

import { codeDotBounds } from "../dot/bounds";
import { codeDotOfFour } from "../dot/dots-of-list";
import { costLimit } from "../exact/cost-limit";
import { beginWanted, wantFloats } from "../exact/fetched";
import { scanFloats, scoreRow } from "../exact/float-scan";
import { Query, queryAt, reserveBounds } from "../exact/query";
import { addSeed, seedLimit, seedRow } from "../exact/seeds";
import {
  centreOf,
  GROUP_BYTES,
  groupPtr,
  headBytes,
  headPtr,
  STEPS,
  segmentCount,
  segmentPtr,
  segmentRows,
  segmentShift,
  TAIL_NORM,
  tailBytes,
  tailPtr,
} from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { filterOf, selected } from "../rows/selection";
import { refreshSegment } from "../sketch/refresh";
import { prepareCodes } from "./cascade";

/** Rows of the first batch, unless more results are wanted. Each further batch has four times as many. */
const FIRST_BATCH_ROWS: u32 = 256;
/**
 * Number of rows whose codes, or float32, are fetched together. They should stay in the L1 cache until they
 * are used.
 */
const GROUP_ROWS: u32 = 8;
/** Coding a query for another centre costs about as much as reading this many rows as floats. */
const CENTRE_CODES_ROWS: u32 = 12;

/** f32x4 and i32x4: bounds and sums of four rows. */
const four = memory.data(32, 16);

let touched: u32 = 0;

// Addresses of three lists: the selected rows, u32; their bounds, f32; the rows to be scored, u32.
let rowList: usize = 0;
let boundList: usize = 0;
let scoreList: usize = 0;

function rowAt(i: u32): u32 {
  return load<u32>(rowList + ((<usize>i) << 2));
}

/**
 * Searches queries 0..count−1 over `most` selected rows. @returns false at the memory limit: use float scans
 * then.
 */
export function searchScattered(count: i32, filterBits: usize, most: u32): bool {
  rowList = reserveBounds(<u64>most * 12);
  if (rowList === 0) return false;
  boundList = rowList + ((<usize>most) << 2);
  scoreList = boundList + ((<usize>most) << 2);
  const rows = listScattered(count, filterBits);
  for (let i = 0; i < count; i++) {
    const query = queryAt(i);
    let batchRows = max<u32>(FIRST_BATCH_ROWS, 4 * <u32>query.heap.capacity);
    let start: u32 = 0;
    while (start < rows) {
      const end = min(rows, start + batchRows);
      batchRows *= 4;
      query.seeds.count = 0;
      for (let group = start; group < end; group += GROUP_ROWS) boundRows(query, group, min(end, group + GROUP_ROWS));
      const isWorthwhile = scoreRows(query, start, end);
      start = end;
      if (isWorthwhile) continue;
      for (; start < rows; start += GROUP_ROWS) scoreGroup(query, start, min(rows, start + GROUP_ROWS));
    }
  }
  return true;
}

/**
 * Lists the selected rows. If a segment with its own centre has only a few of them, they are scored as floats
 * at once. @returns the number of listed rows.
 */
function listScattered(count: i32, filterBits: usize): u32 {
  let end = rowList;
  let codedCentre: usize = 0;
  for (let s: u32 = 0; s < segmentCount; s++) {
    const segment = segmentPtr(s);
    const filter = filterOf(filterBits, s);
    const first = s << segmentShift;
    const start = end;
    for (let w: u32 = 0; w < segmentRows >> 5; w++) {
      let bits = selected(segment, filter, w);
      while (bits !== 0) {
        store<u32>(end, first + (w << 5) + ctz(bits));
        bits &= bits - 1;
        end += 4;
      }
    }
    if (end === start) continue;
    refreshSegment(segment);
    const centre = centreOf(segment);
    const isCoded = centre === 0 || centre === codedCentre || <u32>(end - start) >> 2 >= CENTRE_CODES_ROWS;
    codedCentre = centre;
    if (isCoded) continue;
    end = start;
    for (let i = 0; i < count; i++) scanFloats(queryAt(i), s, filter);
  }
  return <u32>(end - rowList) >> 2;
}

/** Loads what bounding rows start..end−1 of the list will read. */
function touchRows(start: u32, end: u32): void {
  let sum: u32 = 0;
  for (let i = start; i < end; i++) {
    const segment = segmentPtr(rowAt(i) >> segmentShift);
    const row = <usize>(rowAt(i) & (segmentRows - 1));
    sum += touchBytes(headPtr(segment, row), headBytes) + touchBytes(tailPtr(segment, row), tailBytes);
    // At most 64 bytes apart, so that every cache line in between belongs to the row.
    const group = groupPtr(segment, <u32>row);
    sum += load<u8>(group) + load<u8>(group, STEPS) + load<u8>(group, TAIL_NORM);
  }
  touched = sum;
}

function touchBytes(ptr: usize, bytes: usize): u32 {
  let sum: u32 = 0;
  for (let at: usize = 0; at < bytes; at += 64) sum += load<u8>(ptr + at);
  return sum;
}

/** Bounds rows start..end−1 of the list. The best become seeds. */
function boundRows(query: Query, start: u32, end: u32): void {
  touchRows(start, end);
  const seeds = query.seeds;
  while (start < end) {
    // Rows with the same centre use the same codes of the query.
    const centre = centreOf(segmentPtr(rowAt(start) >> segmentShift));
    const isCodable = prepareCodes(query, segmentPtr(rowAt(start) >> segmentShift));
    while (start < end && centreOf(segmentPtr(rowAt(start) >> segmentShift)) === centre) {
      let n: u32 = 1;
      while (n < 4 && start + n < end && centreOf(segmentPtr(rowAt(start + n) >> segmentShift)) === centre) n++;
      if (isCodable) boundFour(query, start, n);
      for (let i: u32 = 0; i < n; i++) {
        const bound = isCodable ? load<f32>(boundList + ((<usize>(start + i)) << 2)) : -Infinity;
        store<f32>(boundList + ((<usize>(start + i)) << 2), bound);
        if (bound < seedLimit(seeds)) addSeed(seeds, bound, start + i);
      }
      start += n;
    }
  }
}

/** Stores the bounds of rows i..i+n−1 of the list, at most four. */
function boundFour(query: Query, i: u32, n: u32): void {
  countBytes(<u64>n * (headBytes + tailBytes + GROUP_BYTES));
  const row0 = rowAt(i);
  const row1 = n > 1 ? rowAt(i + 1) : row0;
  const row2 = n > 2 ? rowAt(i + 2) : row0;
  const row3 = n > 3 ? rowAt(i + 3) : row0;
  const segment0 = segmentPtr(row0 >> segmentShift);
  const segment1 = segmentPtr(row1 >> segmentShift);
  const segment2 = segmentPtr(row2 >> segmentShift);
  const segment3 = segmentPtr(row3 >> segmentShift);
  const mask = segmentRows - 1;
  const sums = codeDotOfFour(query, segment0, row0 & mask, segment1, row1 & mask, segment2, row2 & mask, segment3, row3 & mask);
  v128.store(four, sums, 16);
  for (let j: u32 = 0; j < n; j++) {
    const row = rowAt(i + j);
    const local = row & (segmentRows - 1);
    v128.store(four, codeDotBounds(query, segmentPtr(row >> segmentShift), local & ~3, v128.load32_splat(four + ((<usize>j) << 2), 16)));
    store<f32>(boundList + ((<usize>(i + j)) << 2), load<f32>(four + ((<usize>(local & 3)) << 2)));
  }
}

/** Scores rows start..end−1 of the list. */
function scoreGroup(query: Query, start: u32, end: u32): void {
  beginWanted();
  for (let i = start; i < end; i++) wantListed(i);
  for (let i = start; i < end; i++) scoreListed(query, i);
}

function wantListed(i: u32): void {
  wantFloats(segmentPtr(rowAt(i) >> segmentShift), rowAt(i) & (segmentRows - 1));
}

function scoreListed(query: Query, i: u32): void {
  const row = rowAt(i);
  const local = row & (segmentRows - 1);
  scoreRow(query, segmentPtr(row >> segmentShift), local, row - local);
}

/**
 * Scores the seeds, then what they leave of rows start..end−1. @returns whether the bounds paid: whether they
 * left less than half.
 */
function scoreRows(query: Query, start: u32, end: u32): bool {
  const seeds = query.seeds;
  for (let i = 0; i < seeds.count; i++) store<u32>(scoreList + ((<usize>i) << 2), seedRow(seeds, i));
  scoreWhatBoundsLeave(query, seeds.count);
  for (let i = 0; i < seeds.count; i++) store<f32>(boundList + ((<usize>seedRow(seeds, i)) << 2), Infinity);
  const limit = costLimit(query, query.heap.threshold);
  let left: u32 = 0;
  for (let i = start; i < end; i++) {
    if (load<f32>(boundList + ((<usize>i) << 2)) > limit) continue;
    store<u32>(scoreList + ((<usize>left) << 2), i);
    left++;
  }
  return scoreWhatBoundsLeave(query, left) * 2 <= end - start;
}

/**
 * Scores those of the first `count` rows of the score list that their bounds do not rule out. @returns their
 * number.
 */
function scoreWhatBoundsLeave(query: Query, count: u32): u32 {
  const heap = query.heap;
  let threshold = heap.threshold;
  let limit = costLimit(query, threshold);
  let scored: u32 = 0;
  for (let start: u32 = 0; start < count; start += GROUP_ROWS) {
    const end = min(count, start + GROUP_ROWS);
    beginWanted();
    for (let i = start; i < end; i++) wantListed(load<u32>(scoreList + ((<usize>i) << 2)));
    for (let i = start; i < end; i++) {
      const listed = load<u32>(scoreList + ((<usize>i) << 2));
      if (load<f32>(boundList + ((<usize>listed) << 2)) > limit) continue;
      scored++;
      scoreListed(query, listed);
      if (heap.threshold === threshold) continue;
      threshold = heap.threshold;
      limit = costLimit(query, threshold);
    }
  }
  return scored;
}
