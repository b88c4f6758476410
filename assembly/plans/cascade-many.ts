/**
 * The cascade for many queries at once, COSINE and L2. A block of rows is unpacked once; then all queries
 * process it while it stays in the second-level cache (dot/many-dots.ts). A row and a query go through these
 * steps until one of them shows that the row scores below the query's k-th best:
 *
 * 1. the head, a quarter to a third of the dimensions, the rest bounded by norms; skipped while it rules out
 *   too few
 * 2. all dimensions: 6 bits (relaxed SIMD), 7 bits (plain SIMD)
 * 3. relaxed SIMD: the last bit
 * 4. the exact score
 *
 * dot/many-bounds.ts proves that no row that is skipped can be a result.
 *
 * Limits are available from the start: the dot products with the first segments are computed before anything
 * else, and the k rows that look best by their codes are scored exactly. The worst of these scores is the
 * heap's first threshold. The sums are kept for the search itself. The scores are not, because the search
 * meets these rows again.
 */

import {
  clearShared,
  describeBlock,
  describeRow,
  isBelow,
  MAX_BLOCK_ROWS,
  markLeft,
  markPossible,
  nextLeft,
  rowNumber,
  setManyCoefficients,
  setRowNumber,
  shareQuery,
  takeSeeds,
  updateLimit,
} from "../dot/many-bounds";
import { codeVectors, dotTiles, headVectors, tileBytes, unpackRow } from "../dot/many-dots";
import { ManyQuery, manyCodeBytes, manyQueryBytes, prepareManyCodes } from "../dot/many-query-codes";
import { exactScore, scanFloats, scoreRow, touchFloats } from "../exact/float-scan";
import { queryAt, reserveBounds, reserveMany } from "../exact/query";
import { seedRow } from "../exact/seeds";
import { offer, resetTopK } from "../exact/top-k";
import {
  centreOf,
  codeDimension,
  groupBytes,
  SECOND_GROUP_BYTES,
  segmentCount,
  segmentPtr,
  segmentRows,
  segmentShift,
  stride,
} from "../rows/rows";
import { countBytes, countExactRows, countFullRows } from "../rows/scan-counts";
import { filterOf, selected } from "../rows/selection";
import { refreshSegment } from "../sketch/refresh";

/** From this many queries on, unpacking pays. */
export const MANY_QUERIES: i32 = 6;
/**
 * Size of the unpacked rows of a block. It leaves room in a second-level cache of 256 KiB for the codes of
 * the queries. The kernel keeps up with that cache. A block that fits the first level (24 KiB) is 4 % slower,
 * because the per-block cost of a query arises four times as often.
 */
const BLOCK_BYTES: usize = 98304;
/**
 * One in this many segments is used for the first thresholds. With more segments, random directions need
 * fewer exact scores, but clusters, which otherwise skip most of the codes beyond the head, take longer.
 */
const SEED_SEGMENTS: u32 = 16;
/** With this many sums (4 MiB) or more, only the seeds of one batch are kept. */
const MAX_SEED_SUMS: u32 = 1 << 20;
/**
 * A batch is this share of the segments. After each batch, queries whose codes do not help change their plan.
 */
const BATCHES: u32 = 32;
/**
 * With fewer selected rows in a segment with its own centre, coding the queries costs more than reading the
 * rows.
 */
const MIN_CENTRED_ROWS: u32 = 8;

/** i32 sums of a pair of queries. */
const sumsOfA = memory.data(4 * 256, 16);
const sumsOfB = memory.data(4 * 256, 16);
/** u8 per four rows: those that the bounds leave. */
const leftOfA = memory.data(64, 16);
const leftOfB = memory.data(64, 16);

/**
 * Rows to be scored, in the current segment: | ManyQuery u32 | row u32 |. They are limited so that they fit
 * the second-level cache beside the rest.
 */
const pending = memory.data(8 * 64, 16);
const PENDING_BYTES: u32 = 131072;
let pendingCount: u32 = 0;
let maxPending: u32 = 64;

let states: usize = 0;
let codes: usize = 0;
let residuals: usize = 0;
let tiles: usize = 0;
let blockRows: u32 = 0;
/**
 * Of segments 0..seedSegments−1, for each pair: | sums of a, i32[segmentRows] | of b |, in the order of the
 * blocks' rows.
 */
let seedSums: usize = 0;
let seedSegments: u32 = 0;

function seedSumsOf(s: u32, pair: i32, first: u32): usize {
  return seedSums + ((<usize>((s * <u32>pairCount + <u32>pair) * 2 * segmentRows + first)) << 2);
}

/**
 * Two queries that share each pass over the codes: whether it uses the head, for how many segments it will
 * not, and the length of its next pause.
 */
@unmanaged
class Pair {
  a: ManyQuery;
  b: ManyQuery;
  codes: usize;
  usesHead: bool;
  pause: u32;
  nextPause: u32;
  triedTiles: u32;
  leftTiles: u32;
}
let pairs: usize = 0;
let pairCount: i32 = 0;

function pairAt(i: i32): Pair {
  return changetype<Pair>(pairs + <usize>i * offsetof<Pair>());
}

function manyAt(i: i32): ManyQuery {
  return changetype<ManyQuery>(states + <usize>i * manyQueryBytes());
}

/**
 * Searches queries 0..count−1 over all segments. @returns false at the memory limit: use another plan then.
 */
export function cascadeMany(count: i32, similarity: i32, filterBits: usize): bool {
  if (!beginMany(count)) return false;
  const batch = max<u32>(1, segmentCount / BATCHES);
  for (let start: u32 = 0; start < segmentCount; start += batch) {
    searchBatch(count, similarity, start, min(segmentCount, start + batch), filterBits);
  }
  return true;
}

/** Prepares queries 0..count−1. @returns false at the memory limit. */
function beginMany(count: i32): bool {
  // Their sums take 4 bytes per row and query, and the number of queries is rounded up to even.
  const room = MAX_SEED_SUMS / (<u32>(count + 1) * segmentRows);
  seedSegments = max<u32>(1, min<u32>(max<u32>(room, segmentCount / BATCHES), segmentCount / SEED_SEGMENTS));
  seedSums = reserveBounds((<u64>seedSegments * segmentRows * <u64>(count + (count & 1))) << 2);
  if (seedSums === 0) return false;
  pairCount = (count + 1) >> 1;
  blockRows = min(MAX_BLOCK_ROWS, max<u32>(4, <u32>((BLOCK_BYTES << 2) / tileBytes()) & ~3));
  maxPending = max<u32>(1, min<u32>(64, PENDING_BYTES / ((<u32>stride) << 2)));
  const stateBytes = (<usize>pairCount * 2 * manyQueryBytes() + 63) & ~63;
  const codeBytes = (<usize>pairCount * manyCodeBytes() + 63) & ~63;
  const residualBytes = (<usize>codeDimension) << 2;
  const pairBytes = (<usize>pairCount * offsetof<Pair>() + 63) & ~63;
  states = reserveMany(<u64>stateBytes + codeBytes + residualBytes + pairBytes + <usize>(blockRows >> 2) * tileBytes());
  if (states === 0) return false;
  codes = states + stateBytes;
  residuals = codes + codeBytes;
  pairs = residuals + residualBytes;
  tiles = pairs + pairBytes;
  memory.fill(states, 0, stateBytes + codeBytes);
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    pair.a = manyAt(2 * i);
    pair.b = manyAt(2 * i + 1);
    pair.codes = codes + <usize>i * manyCodeBytes();
    pair.usesHead = headVectors() < codeVectors();
    pair.pause = 0;
    pair.nextPause = 4;
    pair.a.codes = pair.codes;
    pair.b.codes = pair.codes + 16;
  }
  for (let i = 0; i < count; i++) {
    manyAt(i).query = queryAt(i);
    manyAt(i).centre = 1;
    manyAt(i).threshold = NaN;
  }
  return true;
}

/**
 * Searches segments start..end−1 for queries 0..count−1. If more than half of a query's rows had to be read
 * as float32, the codes are not worth reading: its next segments are scanned as floats, as in cascade.ts.
 */
function searchBatch(count: i32, similarity: i32, start: u32, end: u32, filterBits: usize): void {
  for (let i = 0; i < count; i++) {
    const many = manyAt(i);
    many.isActive = start >= many.query.floatsUntilSegment;
    many.checked = 0;
    many.scored = 0;
  }
  if (start === 0) seedHeaps(count, similarity, filterBits);
  let rows: u32 = 0;
  for (let s = start; s < end; s++) {
    const filter = filterOf(filterBits, s);
    refreshSegment(segmentPtr(s));
    for (let i = 0; i < count; i++) if (!manyAt(i).isActive) scanFloats(manyAt(i).query, similarity, s, filter);
    rows += searchSegment(similarity, s, filter, false);
  }
  for (let i = 0; i < count; i++) {
    const many = manyAt(i);
    countFullRows(many.checked);
    countExactRows(many.scored);
    const query = many.query;
    if (!many.isActive) continue;
    if (many.scored * 2 <= rows) {
      query.backoff = 0;
    } else {
      query.backoff = max<u32>(4 * (end - start), 2 * query.backoff);
      query.floatsUntilSegment = end + query.backoff;
    }
  }
}

/** Sets the first thresholds of the heaps. */
function seedHeaps(count: i32, similarity: i32, filterBits: usize): void {
  for (let i = 0; i < count; i++) queryAt(i).seeds.count = 0;
  for (let s: u32 = 0; s < seedSegments; s++) {
    refreshSegment(segmentPtr(s));
    searchSegment(similarity, s, filterOf(filterBits, s), true);
  }
  for (let i = 0; i < count; i++) {
    const query = queryAt(i);
    const heap = query.heap;
    for (let j = 0; j < query.seeds.count; j++) {
      const row = seedRow(query.seeds, j);
      offer(heap, exactScore(query, similarity, segmentPtr(row >> segmentShift), row & (segmentRows - 1)), row);
    }
    const threshold = heap.threshold;
    resetTopK(heap, heap.ptr, heap.capacity);
    heap.threshold = threshold;
  }
}

/**
 * Searches segment `s`, or takes seeds there, for the active queries. @returns the number of selected rows.
 */
function searchSegment(similarity: i32, s: u32, filter: usize, isSeeding: bool): u32 {
  const segment = segmentPtr(s);
  const centre = centreOf(segment);
  let count: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) count += popcnt(selected(segment, filter, w));
  if (count === 0) return 0;
  const isRead = centre === 0 || count >= MIN_CENTRED_ROWS;
  let needsTails = false;
  clearShared();
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    readyQuery(pair.a, similarity, centre, isRead);
    readyQuery(pair.b, similarity, centre, isRead);
    shareQuery(pair.a);
    shareQuery(pair.b);
    if (isSeeding) continue;
    if (pair.a.isActive && !pair.a.isReady) scanFloats(pair.a.query, similarity, s, filter);
    if (pair.b.isActive && !pair.b.isReady) scanFloats(pair.b.query, similarity, s, filter);
    pair.triedTiles = 0;
    pair.leftTiles = 0;
    if (pair.pause > 0) pair.pause--;
    if (s >= seedSegments && pair.usesHead && pair.pause === 0) needsTails = true;
  }
  if (!isRead) return count;
  let rows: u32 = 0;
  let first: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = selected(segment, filter, w);
    while (bits !== 0) {
      setRowNumber(rows, (w << 5) + ctz(bits));
      bits &= bits - 1;
      if (++rows === blockRows) {
        unpackBlock(segment, similarity, rows, needsTails);
        if (isSeeding) seedBlock(similarity, s, first, rows);
        else searchBlock(similarity, s, first, rows);
        first += rows;
        rows = 0;
      }
    }
  }
  if (rows > 0) {
    unpackBlock(segment, similarity, rows, needsTails);
    if (isSeeding) seedBlock(similarity, s, first, rows);
    else searchBlock(similarity, s, first, rows);
  }
  if (!isSeeding) for (let i = 0; i < pairCount; i++) restHead(pairAt(i));
  return count;
}

/**
 * Makes the query's codes for the segment's centre. Without codes (isReady) it has to be scanned as floats.
 */
function readyQuery(many: ManyQuery, similarity: i32, centre: usize, isRead: bool): void {
  many.isReady = false;
  if (!many.isActive || !isRead) return;
  if (prepareManyCodes(many, centre, residuals)) setManyCoefficients(many, similarity);
  updateLimit(many, similarity);
  many.isReady = many.isCodable;
}

/** A head that leaves most of the tiles costs more than it saves. It is tried again later. */
function restHead(pair: Pair): void {
  if (pair.triedTiles === 0) return;
  if (pair.leftTiles * 2 <= pair.triedTiles) {
    pair.nextPause = 4;
    return;
  }
  pair.pause = pair.nextPause;
  pair.nextPause = min<u32>(1024, 2 * pair.nextPause);
}

/** Unpacks the rows of a block. */
function unpackBlock(segment: usize, similarity: i32, rows: u32, needsTails: bool): void {
  countBytes(groupBytes(rows) + <u64>((rows + 3) >> 2) * <u64>SECOND_GROUP_BYTES + <u64>rows * <u64>codeDimension);
  for (let i: u32 = 0; i < rows; i++) {
    const row = <usize>rowNumber(i);
    const to = tiles + <usize>(i >> 2) * tileBytes() + ((<usize>i & 3) << 4);
    unpackRow(segment, row, to);
    describeRow(i, segment, to, needsTails);
  }
  describeBlock(rows, similarity);
}

/**
 * Computes sums and seeds of every query from the block; `first`: how many rows of the segment precede it.
 */
function seedBlock(similarity: i32, s: u32, first: u32, rows: u32): void {
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    if (!pair.a.isReady && !pair.b.isReady) continue;
    const sums = seedSumsOf(s, i, first);
    const sumsB = sums + ((<usize>segmentRows) << 2);
    dotTiles(tiles, (rows + 3) >> 2, 0, codeVectors(), pair.codes, sums, sumsB);
    takeSeeds(pair.a, similarity, s << segmentShift, rows, sums);
    takeSeeds(pair.b, similarity, s << segmentShift, rows, sumsB);
  }
}

/** Searches the block for every pair; `first`: how many rows of the segment precede it. */
function searchBlock(similarity: i32, s: u32, first: u32, rows: u32): void {
  const groups = (rows + 3) >> 2;
  const lastGroup: u32 = (rows & 3) === 0 ? 15 : ((<u32>1) << (rows & 3)) - 1;
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    const a = pair.a;
    const b = pair.b;
    if (!a.isReady && !b.isReady) continue;
    let sumsA = sumsOfA;
    let sumsB = sumsOfB;
    if (s >= seedSegments && pair.usesHead && pair.pause === 0) {
      dotTiles(tiles, groups, 0, headVectors(), pair.codes, sumsOfA, sumsOfB);
      markPossible(a, similarity, groups, sumsOfA, leftOfA, true);
      markPossible(b, similarity, groups, sumsOfB, leftOfB, true);
      markLeft(a, similarity, 0, groups, lastGroup, sumsOfA, leftOfA, true);
      markLeft(b, similarity, 0, groups, lastGroup, sumsOfB, leftOfB, true);
      pair.triedTiles += groups;
      for (let group: u32 = 0; group < groups; group++) {
        if ((load<u8>(leftOfA + group) | load<u8>(leftOfB + group)) === 0) continue;
        pair.leftTiles++;
        const at = (<usize>group) << 4;
        dotTiles(tiles + <usize>group * tileBytes(), 1, headVectors(), codeVectors(), pair.codes, sumsOfA + at, sumsOfB + at);
        const last: u32 = group === groups - 1 ? lastGroup : 15;
        markLeft(a, similarity, group, group + 1, last, sumsOfA, leftOfA, false);
        markLeft(b, similarity, group, group + 1, last, sumsOfB, leftOfB, false);
      }
    } else {
      if (s < seedSegments) {
        sumsA = seedSumsOf(s, i, first);
        sumsB = sumsA + ((<usize>segmentRows) << 2);
      } else {
        dotTiles(tiles, groups, 0, codeVectors(), pair.codes, sumsA, sumsB);
      }
      markPossible(a, similarity, groups, sumsA, leftOfA, false);
      markPossible(b, similarity, groups, sumsB, leftOfB, false);
      markLeft(a, similarity, 0, groups, lastGroup, sumsA, leftOfA, false);
      markLeft(b, similarity, 0, groups, lastGroup, sumsB, leftOfB, false);
    }
    checkLeft(a, similarity, s, groups, sumsA, leftOfA);
    checkLeft(b, similarity, s, groups, sumsB, leftOfB);
  }
  scorePending(similarity, s);
}

/** Adds the rows that are left to the pending ones, after a check with all 7 bits. */
function checkLeft(many: ManyQuery, similarity: i32, s: u32, groups: u32, sums: usize, left: usize): void {
  if (!many.isReady) return;
  const segment = segmentPtr(s);
  for (let group = nextLeft(left, 0, groups); group < groups; group = nextLeft(left, group + 1, groups)) {
    let bits = <u32>load<u8>(left + group);
    while (bits !== 0) {
      const i = <usize>((group << 2) + ctz(bits));
      bits &= bits - 1;
      // If nearly all rows that reach this point are scored anyway, their last bits are not read first.
      if (ASC_FEATURE_RELAXED_SIMD && (many.checked < 256 || 4 * many.scored <= 3 * many.checked)) {
        many.checked++;
        countBytes(codeDimension);
        if (isBelow(many, similarity, segment, i, load<i32>(sums + (i << 2)))) continue;
      }
      const at = pending + ((<usize>pendingCount) << 3);
      store<u32>(at, <u32>changetype<usize>(many));
      store<u32>(at, rowNumber(i), 4);
      if (++pendingCount === maxPending) scorePending(similarity, s);
    }
  }
}

/** Scores the pending rows. All of them are loaded first: independent loads wait for memory together. */
function scorePending(similarity: i32, s: u32): void {
  const segment = segmentPtr(s);
  const firstRow = s << segmentShift;
  const end = pending + ((<usize>pendingCount) << 3);
  for (let at = pending; at < end; at += 8) touchFloats(segment, load<u32>(at, 4));
  for (let at = pending; at < end; at += 8) {
    const many = changetype<ManyQuery>(<usize>load<u32>(at));
    const heap = many.query.heap;
    // The first k are always scored; only the number beyond them tells how good the codes are.
    if (heap.count === heap.capacity) many.scored++;
    scoreRow(many.query, similarity, segment, load<u32>(at, 4), firstRow);
    updateLimit(many, similarity);
  }
  pendingCount = 0;
}
