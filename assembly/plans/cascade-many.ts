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
 * heap's first threshold. The sums are kept for the search itself, which leaves out the rows that are scored.
 */

import { clearShared, setRowNumber, shareQuery, updateLimit } from "../dot/many-bounds";
import { ManyQuery, prepareManyCodes } from "../dot/many-query-codes";
import { scanFloats } from "../exact/float-scan";
import { queryAt } from "../exact/query";
import { seedRow } from "../exact/seeds";
import { centreOf, segmentCount, segmentPtr, segmentRows, setBit } from "../rows/rows";
import { countExactRows, countFullRows } from "../rows/scan-counts";
import { filterOf, selected } from "../rows/selection";
import { refreshSegment } from "../sketch/refresh";
import { scoreSeeds } from "./by-sketches";
import { readBlock } from "./many-blocks";
import { BATCHES, beginMany, blockRows, manyAt, pairAt, pairCount, residuals, seedSegments } from "./many-state";

/** From this many queries on, unpacking pays. */
export const MANY_QUERIES: i32 = 6;
/**
 * With fewer selected rows in a segment with its own centre, coding the queries costs more than reading the
 * rows.
 */
const MIN_CENTRED_ROWS: u32 = 8;

/**
 * Searches queries 0..count−1 over all segments. @returns false at the memory limit: use another plan then.
 */
export function cascadeMany(count: i32, filterBits: usize): bool {
  if (!beginMany(count)) return false;
  const batch = max<u32>(1, segmentCount / BATCHES);
  for (let start: u32 = 0; start < segmentCount; start += batch) {
    searchBatch(count, start, min(segmentCount, start + batch), filterBits);
  }
  return true;
}

/**
 * Searches segments start..end−1 for queries 0..count−1. If more than half of a query's rows had to be read
 * as float32, the codes are not worth reading: its next segments are scanned as floats, as in cascade.ts.
 */
function searchBatch(count: i32, start: u32, end: u32, filterBits: usize): void {
  for (let i = 0; i < count; i++) {
    const many = manyAt(i);
    // A scan of floats would meet the seeds again.
    many.isActive = start < seedSegments || start >= many.query.floatsUntilSegment;
    many.checked = 0;
    many.scored = 0;
  }
  if (start === 0) seedHeaps(count, filterBits);
  let rows: u32 = 0;
  for (let s = start; s < end; s++) {
    const filter = filterOf(filterBits, s);
    refreshSegment(segmentPtr(s));
    for (let i = 0; i < count; i++) if (!manyAt(i).isActive) scanFloats(manyAt(i).query, s, filter);
    rows += searchSegment(s, filter, false);
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

/** Scores the rows of the first segments that look best, for the first thresholds. */
function seedHeaps(count: i32, filterBits: usize): void {
  for (let i = 0; i < count; i++) queryAt(i).seeds.count = 0;
  for (let s: u32 = 0; s < seedSegments; s++) {
    refreshSegment(segmentPtr(s));
    searchSegment(s, filterOf(filterBits, s), true);
  }
  for (let i = 0; i < count; i++) {
    const query = queryAt(i);
    scoreSeeds(query);
    for (let j = 0; j < query.seeds.count; j++) setBit(manyAt(i).seedBits, seedRow(query.seeds, j));
  }
}

/**
 * Searches segment `s`, or takes seeds there, for the active queries. @returns the number of selected rows.
 */
function searchSegment(s: u32, filter: usize, isSeeding: bool): u32 {
  const segment = segmentPtr(s);
  const centre = centreOf(segment);
  let count: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) count += popcnt(selected(segment, filter, w));
  if (count === 0) return 0;
  const isRead = centre === 0 || count >= MIN_CENTRED_ROWS;
  clearShared();
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    readyQuery(pair.a, centre, isRead);
    readyQuery(pair.b, centre, isRead);
    shareQuery(pair.a);
    shareQuery(pair.b);
    if (isSeeding) continue;
    if (pair.a.isActive && !pair.a.isReady) scanFloats(pair.a.query, s, filter);
    if (pair.b.isActive && !pair.b.isReady) scanFloats(pair.b.query, s, filter);
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
        readBlock(s, first, rows, isSeeding);
        first += rows;
        rows = 0;
      }
    }
  }
  if (rows > 0) readBlock(s, first, rows, isSeeding);
  return count;
}

/**
 * Makes the query's codes for the segment's centre. Without codes (isReady) it has to be scanned as floats.
 */
function readyQuery(many: ManyQuery, centre: usize, isRead: bool): void {
  many.isReady = false;
  if (!many.isActive || !isRead) return;
  prepareManyCodes(many, centre, residuals);
  updateLimit(many);
  many.isReady = many.isCodable;
}
