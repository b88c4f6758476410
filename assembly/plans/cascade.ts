/**
 * The cascade. It bounds the rows of a batch of segments by their codes, or by sketches or the heads of codes
 * where that suffices. It scores the rows with the best bounds. Then it goes over the bounds and scores the
 * rows that they do not rule out.
 *
 * The cost of a query's batch depends on its data. If more than half of the rows had to be read as float32,
 * the codes are not worth reading: the next segments are scanned as floats, twice as many each time, before
 * the cascade is tried again on a small batch.
 */

import { codeDotBounds, codeDotBoundsOf32 } from "../dot/bounds";
import { HEAD, TAIL, WHOLE } from "../dot/dot-of-four";
import { codeDots, touchCodes } from "../dot/dots-of-list";
import { areCodesShort, dotsOfRun } from "../dot/dots-of-run";
import { prepareDotCodes } from "../dot/query-codes";
import { costLimit } from "../exact/cost-limit";
import { scanFloats } from "../exact/float-scan";
import { Query, queryAt, reserveBounds } from "../exact/query";
import { addSeeds, seedRow } from "../exact/seeds";
import { L1 } from "../exact/similarity";
import { raiseThreshold } from "../exact/top-k";
import { sharedFloor, tellScores } from "../host";
import { l1Bounds } from "../l1/bounds";
import { clearSlots } from "../l1/slots";
import { lanesOf, rowsAbove } from "../lanes";
import { groupBytes, MAX_SEGMENT_ROWS, segmentCount, segmentPtr, segmentRows, segmentShift } from "../rows/rows";
import { countBytes, countExactRows, countFullRows } from "../rows/scan-counts";
import { filterOf, listRows, selected } from "../rows/selection";
import { sketchDimension } from "../sketch/basis";
import { reserveQuerySketches, sketchQuery } from "../sketch/query-sketch";
import { refreshSegment } from "../sketch/refresh";
import { boundBySketches, keepBySketches, raiseBySeeds, usesSketches, widenSeeds } from "./by-sketches";
import { addTails, isHeadWorthTrying, keepByHeads } from "./heads";
import { beginSurvivors, listSurvivor, scoredRows, scoreListed } from "./survivors";

/** Limit of the (row, query) pairs whose bounds and sums are held at a time: 8 MiB. */
const MAX_BOUNDS: u32 = 1 << 20;
/** A small batch is this share of the segments. */
const SMALL_BATCH: u32 = 32;

/** If at least one row in this many is selected, all rows of a segment are read. */
const DENSE: u32 = 3;

/** u16[segmentRows + LIST_PADDING], with room for listRows: rows of the current segment. */
const rowList = memory.data(2 * (<i32>MAX_SEGMENT_ROWS + 32), 16);
/** u32[segmentRows / 32]: the same as bits. */
const rowBits = memory.data(<i32>MAX_SEGMENT_ROWS / 8, 16);
/** i32[segmentRows]: Σ Q (c − 64) over the code, or its head; and over its tail. */
const sums = memory.data(<i32>MAX_SEGMENT_ROWS * 4, 16);
const tailSums = memory.data(<i32>MAX_SEGMENT_ROWS * 4, 16);

/** Address of the bounds of segment `s`; `bounds` are those of a batch that starts with segment `start`. */
function boundsOf(bounds: usize, s: u32, start: u32): usize {
  return bounds + ((<usize>((s - start) << segmentShift)) << 2);
}

/**
 * Searches queries 0..count−1 over all segments. @returns false at the memory limit: use float scans then.
 */
export function cascade(count: i32, filterBits: usize): bool {
  const small = max<u32>(1, segmentCount / SMALL_BATCH);
  const large = max<u32>(1, min<u32>(segmentCount, MAX_BOUNDS / (<u32>count * segmentRows)));
  const bounds = reserveBounds((<u64>max(small, large) * segmentRows * <u64>count) << 2);
  if (bounds === 0) return false;
  const isL1 = queryAt(0).similarity === L1;
  if (isL1) {
    for (let i = 0; i < count; i++) clearSlots(queryAt(i));
  }
  let start: u32 = 0;
  let size = min(small, large);
  if (!isL1 && sketchDimension > 0 && reserveQuerySketches(count)) {
    // Sketches give a limit before anything else is read, so no batch has to be small.
    size = large;
    for (let i = 0; i < count; i++) sketchQuery(queryAt(i));
  }
  while (start < segmentCount) {
    const end = min(segmentCount, start + size);
    const batchBytes = (<usize>((end - start) << segmentShift)) << 2;
    for (let i = 0; i < count; i++) {
      const query = queryAt(i);
      query.isActive = start >= query.floatsUntilSegment;
      query.seeds.count = 0;
      raiseThreshold(query.heap, sharedFloor());
    }
    for (let i = 0; i < count; i++) widenSeeds(queryAt(i), (end - start) << segmentShift);
    for (let s = start; s < end; s++) {
      refreshSegment(segmentPtr(s));
      for (let i = 0; i < count; i++) {
        const query = queryAt(i);
        if (query.isActive && usesSketches(query, segmentPtr(s))) {
          const filter = filterOf(filterBits, s);
          const listed = listSelected(selectRows(segmentPtr(s), filter) * DENSE >= segmentRows);
          boundBySketches(query, s, filter, rowList, listed, boundsOf(bounds + <usize>i * batchBytes, s, start));
        }
      }
    }
    for (let i = 0; i < count; i++) raiseBySeeds(queryAt(i));
    let rows: u32 = 0;
    for (let s = start; s < end; s++) {
      const filter = filterOf(filterBits, s);
      let selectedRows: u32 = 0;
      // Query by query over one segment, so that its codes are read from memory once.
      for (let i = 0; i < count; i++) {
        const query = queryAt(i);
        if (query.isActive) {
          selectedRows = boundSegment(query, s, filter, boundsOf(bounds + <usize>i * batchBytes, s, start));
        } else scanFloats(query, s, filter);
      }
      rows += selectedRows;
    }
    // Batches grow. The limit that heads are compared with then comes from a good share of the rows
    // (clusters), and there are few batches.
    let next = min(large, 4 * size);
    for (let i = 0; i < count; i++) {
      const query = queryAt(i);
      if (!(query.isActive && finishBatch(query, start, end, filterBits, bounds + <usize>i * batchBytes, rows))) {
        next = min(small, large);
      }
    }
    size = next;
    start = end;
  }
  return true;
}

/**
 * Scores what the bounds of a batch of `rows` rows leave. @returns false when the codes did not help;
 * query.floatsUntilSegment then says from where to try again.
 */
function finishBatch(query: Query, start: u32, end: u32, filterBits: usize, bounds: usize, rows: u32): bool {
  const seeds = query.seeds;
  beginSurvivors();
  for (let i = 0; i < seeds.count; i++) {
    const row = seedRow(seeds, i);
    const bound = boundsOf(bounds, row >> segmentShift, start) + ((<usize>(row & (segmentRows - 1))) << 2);
    listSurvivor(query, row, load<f32>(bound));
    store<f32>(bound, Infinity);
  }
  scoreListed(query);
  countExactRows(scoredRows);
  beginSurvivors();
  tellScores(query.heap.ptr, query.heap.count);
  for (let s = start; s < end; s++) scoreSurvivors(query, s, filterOf(filterBits, s), boundsOf(bounds, s, start));
  scoreListed(query);
  countExactRows(scoredRows);
  // The best k of a batch are always scored; only the number beyond them tells how good the codes are.
  if (scoredRows * 2 <= rows) {
    query.backoff = 0;
    return true;
  }
  query.backoff = max<u32>(4 * (end - start), 2 * query.backoff);
  query.floatsUntilSegment = end + query.backoff;
  return false;
}

/** Prepares a query for the codes of a segment. @returns whether it has bounds there. */
export function prepareCodes(query: Query, segment: usize): bool {
  if (query.similarity === L1) return true;
  prepareDotCodes(query, segment);
  return query.isCodable;
}

/** Stores the selected rows as rowBits. @returns their number. */
function selectRows(segment: usize, filter: usize): u32 {
  let rows: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = selected(segment, filter, w);
    store<u32>(rowBits + ((<usize>w) << 2), bits);
    rows += popcnt(bits);
  }
  return rows;
}

/** Bounds the selected rows of segment `s`. @returns their number. */
function boundSegment(query: Query, s: u32, filter: usize, bounds: usize): u32 {
  const segment = segmentPtr(s);
  const rows = selectRows(segment, filter);
  if (rows === 0) return 0;
  const listed = listSelected(rows * DENSE >= segmentRows);
  if (!prepareCodes(query, segment)) {
    for (let at: usize = 0; at < (<usize>segmentRows) << 2; at += 16) v128.store(bounds + at, f32x4.splat(-Infinity));
    return rows;
  }
  const isL1 = query.similarity === L1;
  let read = rows;
  if (isL1) {
    let left = listed;
    if (isHeadWorthTrying(query, segment, rowList, listed)) {
      touchIfApart(segment, listed, HEAD);
      l1Bounds(query, segment, rowList, listed, true, rowBits, bounds);
      read = keepByHeads(query, segment, rowBits, rowList, rows, bounds);
      left = read;
    }
    touchIfApart(segment, left, WHOLE);
    l1Bounds(query, segment, rowList, left, false, rowBits, bounds);
  } else if (usesSketches(query, segment)) {
    read = keepBySketches(query, rowBits, rowList, bounds);
    readCodes(query, segment, read, sums, WHOLE);
  } else if (isHeadWorthTrying(query, segment, rowList, listed)) {
    for (let at: usize = 0; at < (<usize>segmentRows) << 2; at += 16) v128.store(bounds + at, f32x4.splat(Infinity));
    readCodes(query, segment, listed, sums, HEAD);
    read = keepByHeads(query, segment, rowBits, rowList, rows, sums);
    readCodes(query, segment, read, tailSums, TAIL);
    addTails(rowBits, sums, tailSums);
  } else {
    readCodes(query, segment, listed, sums, WHOLE);
  }
  countFullRows(read);
  const seeds = query.seeds;
  const firstRow = s << segmentShift;
  let groups: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = load<u32>(rowBits + ((<usize>w) << 2));
    if (bits === 0) continue;
    const at = bounds + ((<usize>w) << 7);
    if (!isL1) groups += storeCodeBounds(query, segment, w, bits, at);
    addSeeds(seeds, at, bits, firstRow + (w << 5));
  }
  countBytes(groupBytes(groups << 2));
  return rows;
}

/**
 * Stores at `to`, f32[32], the bounds of the rows `bits` of word `w` by the sums over their codes. Other rows
 * of the same group of four, which sketch or head ruled out, get infinite bounds.
 *
 * @returns the number of groups read.
 */
function storeCodeBounds(query: Query, segment: usize, w: u32, bits: u32, to: usize): u32 {
  const first = w << 5;
  const from = sums + ((<usize>w) << 7);
  if (bits === 0xffffffff) {
    codeDotBoundsOf32(query, segment, first, from, to);
    return 8;
  }
  let groups: u32 = 0;
  for (let at: u32 = 0; at < 32; at += 4) {
    const four = (bits >> at) & 15;
    if (four === 0) continue;
    groups++;
    const offset = (<usize>at) << 2;
    const bound = codeDotBounds(query, segment, first + at, v128.load(from + offset));
    v128.store(to + offset, v128.bitselect(bound, f32x4.splat(Infinity), lanesOf(four)));
  }
  return groups;
}

/**
 * Lists the rows of rowBits. `isDense`: lists all rows of every non-empty word, because reading on is faster
 * than jumping over a few.
 *
 * @returns the number of listed rows.
 */
function listSelected(isDense: bool): u32 {
  let list = rowList;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = load<u32>(rowBits + ((<usize>w) << 2));
    // The last segment ends with empty words if it is not full.
    list = listRows(list, w, isDense && bits !== 0 ? 0xffffffff : bits);
  }
  return <u32>(list - rowList) >> 1;
}

/** Sums over the codes, or a part of them, of the listed rows. */
function readCodes(query: Query, segment: usize, rows: u32, to: usize, part: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD && areCodesShort() && rows > 0 && spanOfList(rows) === rows) {
    dotsOfRun(query, segment, <usize>load<u16>(rowList), <usize>rows, to, part);
    return;
  }
  touchIfApart(segment, rows, part);
  codeDots(query, segment, rowList, rows, to, part);
}

/** Number of rows from the first listed one to the last. */
function spanOfList(rows: u32): u32 {
  return <u32>load<u16>(rowList + ((<usize>rows - 1) << 1)) - <u32>load<u16>(rowList) + 1;
}

/** Prefetches listed rows with gaps between them. */
function touchIfApart(segment: usize, rows: u32, part: i32): void {
  if (rows > 0 && rows * 8 < spanOfList(rows) * 7) touchCodes(segment, rowList, rows, part);
}

/** Scores the rows of segment `s` that their bounds do not rule out. The last of them remain listed. */
function scoreSurvivors(query: Query, s: u32, filter: usize, bounds: usize): void {
  const segment = segmentPtr(s);
  const firstRow = s << segmentShift;
  const heap = query.heap;
  raiseThreshold(heap, sharedFloor());
  let threshold = heap.threshold;
  let limit = costLimit(query, threshold);
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = selected(segment, filter, w);
    if (bits === 0) continue;
    const at = bounds + ((<usize>w) << 7);
    let left = bits & ~rowsAbove(at, limit);
    if (left === 0) continue;
    while (left !== 0) {
      const i = <u32>ctz(left);
      left &= left - 1;
      listSurvivor(query, firstRow + (w << 5) + i, load<f32>(at + ((<usize>i) << 2)));
    }
    if (heap.threshold === threshold) continue;
    threshold = heap.threshold;
    limit = costLimit(query, threshold);
  }
}
