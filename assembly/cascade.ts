/**
 * The cascade: reads the high planes of a batch of segments and bounds every row; scores the rows with the best bounds; then goes over the
 * bounds, reads both planes of the rows that they do not rule out, and float32 of those that these do not.
 *
 * What a query's batch costs depends on its data. When more than half of the rows came down to float32, the codes are not worth reading: the next
 * segments are scanned as floats, twice as many each time, before the cascade is tried again on a small batch.
 */
import { costLimit, dotBounds, fullBound, l1Bounds, setDotCoefficients } from "./bounds";
import { encodeSegment } from "./codes";
import { exactScore, scanFloats } from "./float-scan";
import { Query, queryAt, reserveBounds } from "./query";
import { prepareDotCodes } from "./query-codes";
import { livePtr, segmentCount, segmentPtr, segmentRows, segmentShift } from "./rows";
import { addSeed, seedLimit, seedRow } from "./seeds";
import { L1 } from "./similarity";
import { offer } from "./top-k";

/** Bounds and sums of at most this many (row, query) pairs are held at a time: 8 MiB. */
const MAX_BOUNDS: u32 = 1 << 20;
/** A small batch is this share of the segments. */
const SMALL_BATCH: u32 = 32;
/** Steps for which l1 codes are made in one segment, before its other rows are taken as survivors. */
const MAX_SLOT_MISSES: i32 = 16;

// What the last search did, for measurements: rows whose both planes were read, rows scored exactly.
let fullRows: u64 = 0;
let exactRows: u64 = 0;

export function fullRowCount(): f64 {
  return <f64>fullRows;
}

export function exactRowCount(): f64 {
  return <f64>exactRows;
}

/** Address of segment `s`'s words of the mask at `filterBits`, or 0 for no mask. */
export function filterOf(filterBits: usize, s: u32): usize {
  return filterBits === 0 ? 0 : filterBits + <usize>s * <usize>(segmentRows >> 3);
}

/** Bytes of a bound and a sum; four rows lie as | bounds f32x4 | sums i32x4 |. */
const BOUND_BYTES: usize = 8;

/** Address of the bound of row `n` of the rows that start at `bounds`; its sum lies 16 bytes on. */
function boundAt(bounds: usize, n: u32): usize {
  return bounds + ((<usize>n & ~3) << 3) + ((<usize>n & 3) << 2);
}

function selected(segment: usize, filter: usize, w: u32): u32 {
  const bits = load<u32>(livePtr(segment) + ((<usize>w) << 2));
  return filter === 0 ? bits : bits & load<u32>(filter + ((<usize>w) << 2));
}

/** Searches queries 0..count−1 over all segments. @returns false at the memory limit; then float scans are to be used. */
export function cascade(count: i32, similarity: i32, filterBits: usize): bool {
  fullRows = 0;
  exactRows = 0;
  const small = max<u32>(1, segmentCount / SMALL_BATCH);
  const large = max<u32>(1, min<u32>(segmentCount, MAX_BOUNDS / (<u32>count * segmentRows)));
  const bounds = reserveBounds(<u64>max(small, large) * segmentRows * <u64>count * BOUND_BYTES);
  if (bounds === 0) return false;
  let start: u32 = 0;
  let isProbe = true;
  while (start < segmentCount) {
    const end = min(segmentCount, start + (isProbe ? min(small, large) : large));
    isProbe = false;
    const batchBytes = <usize>((end - start) << segmentShift) * BOUND_BYTES;
    for (let i = 0; i < count; i++) {
      const query = queryAt(i);
      query.isActive = start >= query.floatsUntilSegment;
      query.seeds.count = 0;
    }
    let rows: u32 = 0;
    for (let s = start; s < end; s++) {
      const filter = filterOf(filterBits, s);
      encodeSegment(segmentPtr(s));
      let selectedRows: u32 = 0;
      // Query by query over one segment: its high plane is read from memory once.
      for (let i = 0; i < count; i++) {
        const query = queryAt(i);
        if (query.isActive) selectedRows = boundSegment(query, similarity, s, filter, bounds + <usize>i * batchBytes, start);
        else scanFloats(query, similarity, s, filter);
      }
      rows += selectedRows;
    }
    for (let i = 0; i < count; i++) {
      const query = queryAt(i);
      if (!(query.isActive && finishBatch(query, similarity, start, end, filterBits, bounds + <usize>i * batchBytes, rows))) isProbe = true;
    }
    start = end;
  }
  return true;
}

/** Scores what the bounds of a batch of `rows` rows leave. @returns false when the codes did not help; then query.floatsUntilSegment says from where to try again. */
function finishBatch(query: Query, similarity: i32, start: u32, end: u32, filterBits: usize, bounds: usize, rows: u32): bool {
  const firstRow = start << segmentShift;
  const seeds = query.seeds;
  for (let i = 0; i < seeds.count; i++) {
    const row = seedRow(seeds, i);
    store<f32>(boundAt(bounds, row - firstRow), Infinity);
    offer(query.heap, exactScore(query, similarity, segmentPtr(row >> segmentShift), row & (segmentRows - 1)), row);
  }
  let scored: u32 = 0;
  for (let s = start; s < end; s++) scored += scoreSurvivors(query, similarity, s, filterOf(filterBits, s), bounds, start);
  exactRows += scored + <u32>seeds.count;
  // The best k of a batch are always scored; only what comes on top tells of the codes.
  if (scored * 2 <= rows) {
    query.backoff = 0;
    return true;
  }
  query.backoff = max<u32>(4 * (end - start), 2 * query.backoff);
  query.floatsUntilSegment = end + query.backoff;
  return false;
}

/** Bounds the selected rows of segment `s`. @returns how many they are. */
function boundSegment(query: Query, similarity: i32, s: u32, filter: usize, bounds: usize, start: u32): u32 {
  const segment = segmentPtr(s);
  const firstRow = s << segmentShift;
  const own = bounds + <usize>((s - start) << segmentShift) * BOUND_BYTES;
  if (similarity === L1) query.slotMisses = MAX_SLOT_MISSES;
  else prepareDotCodes(query, segment);
  const isCodable = similarity === L1 || query.isCodable;
  if (isCodable && similarity !== L1) setDotCoefficients(query, similarity);
  let rows: u32 = 0;
  let limit = f32x4.splat(seedLimit(query.seeds));
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = selected(segment, filter, w);
    if (bits === 0) continue;
    rows += popcnt(bits);
    for (let group: u32 = 0; group < 8; group++) {
      const four = (bits >> (group << 2)) & 15;
      if (four === 0) continue;
      const row = (w << 5) + (group << 2);
      const at = boundAt(own, row);
      if (!isCodable) {
        v128.store(at, f32x4.splat(-Infinity));
        continue;
      }
      const bound = similarity === L1 ? l1Bounds(query, segment, row) : dotBounds(query, segment, row, at + 16);
      v128.store(at, bound);
      let seeds = i32x4.bitmask(f32x4.lt(bound, limit)) & four;
      if (seeds !== 0) {
        while (seeds !== 0) {
          const i = ctz(seeds);
          seeds &= seeds - 1;
          const value = load<f32>(at + ((<usize>i) << 2));
          if (value < seedLimit(query.seeds)) addSeed(query.seeds, value, firstRow + row + i);
        }
        limit = f32x4.splat(seedLimit(query.seeds));
      }
    }
  }
  return rows;
}

/** Scores the rows of segment `s` that their bounds do not rule out. @returns how many were scored exactly. */
function scoreSurvivors(query: Query, similarity: i32, s: u32, filter: usize, bounds: usize, start: u32): u32 {
  const segment = segmentPtr(s);
  const firstRow = s << segmentShift;
  const own = bounds + <usize>((s - start) << segmentShift) * BOUND_BYTES;
  const heap = query.heap;
  let isPrepared = false;
  let isCodable = true;
  let checked: u32 = 0;
  let scored: u32 = 0;
  let limit = costLimit(similarity, heap.threshold, query);
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = selected(segment, filter, w);
    if (bits === 0) continue;
    const limits = f32x4.splat(limit);
    const at = boundAt(own, w << 5);
    let skipped: u32 = 0;
    for (let group: u32 = 0; group < 8; group++) {
      skipped |= i32x4.bitmask(f32x4.gt(v128.load(boundAt(at, group << 2)), limits)) << (group << 2);
    }
    bits &= ~skipped;
    while (bits !== 0) {
      const row = (w << 5) + ctz(bits);
      bits &= bits - 1;
      if (!isPrepared) {
        isPrepared = true;
        if (similarity === L1) {
          query.slotMisses = MAX_SLOT_MISSES;
        } else {
          prepareDotCodes(query, segment);
          isCodable = query.isCodable;
          if (isCodable) setDotCoefficients(query, similarity);
        }
      }
      // When nearly all that get here are scored anyway, both planes are not read first.
      if (isCodable && (checked < 64 || 4 * scored <= 3 * checked)) {
        checked++;
        if (fullBound(query, similarity, segment, row, load<i32>(boundAt(own, row), 16)) > <f64>limit) continue;
      }
      const threshold = heap.threshold;
      offer(heap, exactScore(query, similarity, segment, row), firstRow + row);
      scored++;
      if (heap.threshold !== threshold) limit = costLimit(similarity, heap.threshold, query);
    }
  }
  fullRows += checked;
  return scored;
}
