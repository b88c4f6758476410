/**
 * The cascade: reads the high planes of a batch of segments and bounds every row; scores the rows with the best bounds; then goes over the
 * bounds, reads the low planes of the rows that they do not rule out, and float32 of those that these do not.
 *
 * What a query's batch costs depends on its data. When more than half of the rows came down to float32, the codes are not worth reading: the next
 * segments are scanned as floats, twice as many each time, before the cascade is tried again on a small batch.
 */
import { costLimit } from "./bounds";
import { beginMany, MANY_QUERIES, manyExactRows, manyFullRows, searchMany } from "./cascade-many";
import { encodeSegment } from "./codes";
import { fullDotBounds, highDotBounds, setDotCoefficients } from "./dot-bounds";
import { HEAD, TAIL, WHOLE } from "./dot-of-four";
import { scanFloats } from "./float-scan";
import { addTails, isHeadWorthTrying, keepByHeads } from "./heads";
import { sharedFloor, tellScores } from "./host";
import { chooseL1Planes, l1Bounds } from "./l1-bounds";
import { clearSlots } from "./l1-slots";
import { highDots, lowDots, touchHigh, touchLow } from "./plane-dot";
import { Query, queryAt, reserveBounds } from "./query";
import { prepareDotCodes } from "./query-codes";
import { MAX_SEGMENT_ROWS, segmentCount, segmentPtr, segmentRows, segmentShift } from "./rows";
import { addSeed, seedLimit, seedRow } from "./seeds";
import { filterOf, listRows, selected } from "./selection";
import { L1 } from "./similarity";
import { beginSurvivors, listSurvivor, scoredRows, scoreListed } from "./survivors";
import { raiseThreshold } from "./top-k";

/** Bounds and sums of at most this many (row, query) pairs are held at a time: 8 MiB. */
const MAX_BOUNDS: u32 = 1 << 20;
/** A small batch is this share of the segments. */
const SMALL_BATCH: u32 = 32;

/** Fewer rows than one in this many lie far apart. */
const SPARSE: u32 = 4;

/** u16[segmentRows + 3]: rows of the segment in hand. */
const rowList = memory.data(2 * (<i32>MAX_SEGMENT_ROWS + 32), 16);
/** u32[segmentRows / 32]: the same as bits. */
const rowBits = memory.data(<i32>MAX_SEGMENT_ROWS / 8, 16);
/** i32[segmentRows]: Σ Q (h − 8) over the tail. */
const tailSums = memory.data(<i32>MAX_SEGMENT_ROWS * 4, 16);
/** Of the second pass: i32[segmentRows], Σ Q (l − 8); for l1 f32[segmentRows], the bounds. */
const lowSums = memory.data(<i32>MAX_SEGMENT_ROWS * 4, 16);

/** f32x4: bounds of four rows. */
const fourBounds = memory.data(16, 16);

// What the last search did, for measurements: rows whose both planes were read, rows scored exactly.
let fullRows: u64 = 0;
let exactRows: u64 = 0;

// What the batch in hand did.
let batchFullRows: u32 = 0;

export function fullRowCount(): f64 {
  return <f64>fullRows;
}

export function exactRowCount(): f64 {
  return <f64>exactRows;
}

/** Bytes of a bound and a sum; a segment's lie as | bounds f32[segmentRows] | sums i32[segmentRows] |. */
const BOUND_BYTES: usize = 8;

/** Address of the bounds of segment `s`; `bounds` are those of a batch that begins with segment `start`. */
function boundsOf(bounds: usize, s: u32, start: u32): usize {
  return bounds + <usize>((s - start) << segmentShift) * BOUND_BYTES;
}

/** Address of a segment's sums, for that of its bounds. */
function sumsOf(bounds: usize): usize {
  return bounds + ((<usize>segmentRows) << 2);
}

/** Searches queries 0..count−1 over all segments. @returns false at the memory limit; then float scans are to be used. */
export function cascade(count: i32, similarity: i32, filterBits: usize): bool {
  fullRows = 0;
  exactRows = 0;
  const small = max<u32>(1, segmentCount / SMALL_BATCH);
  const large = max<u32>(1, min<u32>(segmentCount, MAX_BOUNDS / (<u32>count * segmentRows)));
  const bounds = reserveBounds(<u64>max(small, large) * segmentRows * <u64>count * BOUND_BYTES);
  if (bounds === 0) return false;
  const isMany = count >= MANY_QUERIES && similarity !== L1 && beginMany(count, bounds, max(small, large));
  if (similarity === L1) {
    for (let i = 0; i < count; i++) clearSlots(queryAt(i));
  }
  let start: u32 = 0;
  let size = min(small, large);
  while (start < segmentCount) {
    if (isMany) {
      const end = min(segmentCount, start + small);
      searchMany(count, similarity, start, end, filterBits);
      start = end;
      continue;
    }
    const end = min(segmentCount, start + size);
    const batchBytes = <usize>((end - start) << segmentShift) * BOUND_BYTES;
    for (let i = 0; i < count; i++) {
      const query = queryAt(i);
      query.isActive = start >= query.floatsUntilSegment;
      query.seeds.count = 0;
      query.readsBothPlanes = false;
      raiseThreshold(query.heap, sharedFloor());
    }
    let rows: u32 = 0;
    for (let s = start; s < end; s++) {
      const filter = filterOf(filterBits, s);
      encodeSegment(segmentPtr(s));
      let selectedRows: u32 = 0;
      // Query by query over one segment: its high plane is read from memory once.
      for (let i = 0; i < count; i++) {
        const query = queryAt(i);
        if (query.isActive) {
          selectedRows = boundSegment(query, similarity, s, filter, boundsOf(bounds + <usize>i * batchBytes, s, start), s === start);
        } else scanFloats(query, similarity, s, filter);
      }
      rows += selectedRows;
    }
    // For l1 each batch chooses which planes to read, by what is known of the best by then.
    let next = similarity === L1 ? min(large, 2 * size) : large;
    for (let i = 0; i < count; i++) {
      const query = queryAt(i);
      if (!(query.isActive && finishBatch(query, similarity, start, end, filterBits, bounds + <usize>i * batchBytes, rows))) {
        next = min(small, large);
      }
    }
    size = next;
    start = end;
  }
  if (isMany) {
    fullRows += manyFullRows;
    exactRows += manyExactRows;
  }
  return true;
}

/** Scores what the bounds of a batch of `rows` rows leave. @returns false when the codes did not help; then query.floatsUntilSegment says from where to try again. */
function finishBatch(query: Query, similarity: i32, start: u32, end: u32, filterBits: usize, bounds: usize, rows: u32): bool {
  const seeds = query.seeds;
  batchFullRows = 0;
  beginSurvivors();
  for (let i = 0; i < seeds.count; i++) {
    const row = seedRow(seeds, i);
    const bound = boundsOf(bounds, row >> segmentShift, start) + ((<usize>(row & (segmentRows - 1))) << 2);
    listSurvivor(query, similarity, row, load<f32>(bound));
    store<f32>(bound, Infinity);
  }
  scoreListed(query, similarity);
  exactRows += scoredRows;
  beginSurvivors();
  tellScores(query.heap.ptr, query.heap.count);
  for (let s = start; s < end; s++) scoreSurvivors(query, similarity, s, filterOf(filterBits, s), boundsOf(bounds, s, start));
  scoreListed(query, similarity);
  fullRows += batchFullRows;
  exactRows += scoredRows;
  // The best k of a batch are always scored; only what comes on top tells of the codes.
  if (scoredRows * 2 <= rows) {
    query.backoff = 0;
    return true;
  }
  query.backoff = max<u32>(4 * (end - start), 2 * query.backoff);
  query.floatsUntilSegment = end + query.backoff;
  return false;
}

/** Readies a query for the codes of a segment. @returns whether it has bounds there. */
export function prepareCodes(query: Query, similarity: i32, segment: usize): bool {
  if (similarity === L1) return true;
  prepareDotCodes(query, segment);
  if (query.isCodable) setDotCoefficients(query, similarity);
  return query.isCodable;
}

/** Bounds the selected rows of segment `s`, the first of its batch or not, from its high plane (for l1 perhaps from both). @returns how many they are. */
function boundSegment(query: Query, similarity: i32, s: u32, filter: usize, bounds: usize, isFirst: bool): u32 {
  const segment = segmentPtr(s);
  let list = rowList;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = selected(segment, filter, w);
    store<u32>(rowBits + ((<usize>w) << 2), bits);
    list = listRows(list, w, bits);
  }
  const rows = <u32>(list - rowList) >> 1;
  if (rows === 0) return 0;
  if (!prepareCodes(query, similarity, segment)) {
    for (let at: usize = 0; at < (<usize>segmentRows) << 2; at += 16) v128.store(bounds + at, f32x4.splat(-Infinity));
    return rows;
  }
  const sums = sumsOf(bounds);
  if (similarity !== L1 && isHeadWorthTrying(query, similarity, segment, rowList, rows)) {
    for (let at: usize = 0; at < (<usize>segmentRows) << 2; at += 16) v128.store(bounds + at, f32x4.splat(Infinity));
    readHigh(query, segment, rows, sums, HEAD);
    const left = keepByHeads(query, similarity, segment, rowBits, rowList, rows, sums);
    readHigh(query, segment, left, tailSums, TAIL);
    addTails(rowBits, sums, tailSums);
  } else if (similarity !== L1) {
    if (rows * SPARSE < segmentRows) touchLow(segment, rowList, rows);
    readHigh(query, segment, rows, sums, WHOLE);
  } else {
    if (rows * SPARSE < segmentRows) {
      touchHigh(segment, rowList, rows, WHOLE);
      touchLow(segment, rowList, rows);
    }
    if (isFirst) chooseL1Planes(query, segment, rowList, rows, bounds);
    else l1Bounds(query, segment, rowList, rows, query.readsBothPlanes, bounds);
  }
  const firstRow = s << segmentShift;
  let limit = f32x4.splat(seedLimit(query.seeds));
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = load<u32>(rowBits + ((<usize>w) << 2));
    if (bits === 0) continue;
    for (let group: u32 = 0; group < 8; group++) {
      const four = (bits >> (group << 2)) & 15;
      if (four === 0) continue;
      const row = (w << 5) + (group << 2);
      const at = (<usize>row) << 2;
      let bound = v128.load(bounds + at);
      if (similarity !== L1) {
        // Rows of the four that the head ruled out keep their infinite bounds.
        bound = v128.bitselect(highDotBounds(segment, row, v128.load(sums + at)), f32x4.splat(Infinity), lanesOf(four));
        v128.store(bounds + at, bound);
      }
      let best = i32x4.bitmask(f32x4.lt(bound, limit)) & four;
      if (best === 0) continue;
      while (best !== 0) {
        const i = ctz(best);
        best &= best - 1;
        const value = load<f32>(bounds + at + ((<usize>i) << 2));
        if (value < seedLimit(query.seeds)) addSeed(query.seeds, value, firstRow + row + i);
      }
      limit = f32x4.splat(seedLimit(query.seeds));
    }
  }
  return rows;
}

/** Sums over the high plane, or a part of it, of the listed rows. */
function readHigh(query: Query, segment: usize, rows: u32, sums: usize, part: i32): void {
  if (rows * 8 < segmentRows * 7) touchHigh(segment, rowList, rows, part);
  highDots(query, segment, rowList, rows, sums, part);
}

/** The lanes of four bits. */
function lanesOf(four: u32): v128 {
  const bits = i32x4(1, 2, 4, 8);
  return i32x4.eq(v128.and(i32x4.splat(four), bits), bits);
}

/** Scores the rows of segment `s` that their bounds do not rule out; the last of them stay listed. */
function scoreSurvivors(query: Query, similarity: i32, s: u32, filter: usize, bounds: usize): void {
  const segment = segmentPtr(s);
  raiseThreshold(query.heap, sharedFloor());
  const limits = f32x4.splat(costLimit(similarity, query.heap.threshold, query));
  let list = rowList;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = selected(segment, filter, w);
    if (bits !== 0) {
      const at = bounds + ((<usize>w) << 7);
      let skipped = 0;
      for (let group = 0; group < 8; group++) {
        skipped |= i32x4.bitmask(f32x4.gt(v128.load(at + ((<usize>group) << 4)), limits)) << (group << 2);
      }
      bits &= ~skipped;
      list = listRows(list, w, bits);
    }
    store<u32>(rowBits + ((<usize>w) << 2), bits);
  }
  const rows = <u32>(list - rowList) >> 1;
  if (rows === 0) return;
  // When nearly all that get here are scored anyway, both planes are not read first.
  let isBounded = batchFullRows < 256 || 4 * scoredRows <= 3 * batchFullRows;
  isBounded = isBounded && !query.readsBothPlanes && prepareCodes(query, similarity, segment);
  if (isBounded) {
    batchFullRows += rows;
    if (rows * 8 < segmentRows * 7) touchLow(segment, rowList, rows);
    if (similarity === L1) l1Bounds(query, segment, rowList, rows, true, lowSums);
    else lowDots(query, segment, rowList, rows, lowSums);
  }
  const firstRow = s << segmentShift;
  const heap = query.heap;
  let threshold = heap.threshold;
  let limit = costLimit(similarity, threshold, query);
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = load<u32>(rowBits + ((<usize>w) << 2));
    if (bits === 0) continue;
    for (let group: u32 = 0; group < 8; group++) {
      let four = (bits >> (group << 2)) & 15;
      if (four === 0) continue;
      const first = (w << 5) + (group << 2);
      const at = (<usize>first) << 2;
      let bound = v128.load(bounds + at);
      if (isBounded) {
        bound = v128.load(lowSums + at);
        if (similarity !== L1) bound = fullDotBounds(segment, first, v128.load(sumsOf(bounds) + at), bound);
        four &= ~i32x4.bitmask(f32x4.gt(bound, f32x4.splat(limit)));
      }
      if (four === 0) continue;
      v128.store(fourBounds, bound);
      while (four !== 0) {
        const i = ctz(four);
        four &= four - 1;
        listSurvivor(query, similarity, firstRow + first + i, load<f32>(fourBounds + ((<usize>i) << 2)));
      }
      if (heap.threshold !== threshold) {
        threshold = heap.threshold;
        limit = costLimit(similarity, threshold, query);
      }
    }
  }
}
