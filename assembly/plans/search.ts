/** One search: counts what the mask selects and chooses the plan. */

import { scanFloats } from "../exact/float-scan";
import { currentFilterPtr, prepareQuery, queryAt } from "../exact/query";
import { L1 } from "../exact/similarity";
import { sortBestFirst } from "../exact/top-k";
import { codeDimension, livePtr, liveRows, segmentCount, segmentPtr, segmentRows, segmentShift, staleCountPtr } from "../rows/rows";
import { resetScanCounts, scannedBytes } from "../rows/scan-counts";
import { filterOf } from "../rows/selection";
import { hasDeferred } from "../sketch/deferred";
import { learnNow, noteSearched, refreshInSearch, workInSearch } from "../sketch/schedule";
import { cascade } from "./cascade";
import { cascadeMany, MANY_QUERIES } from "./cascade-many";
import { searchScattered } from "./scattered";

/** If fewer than this many rows are selected per result, bounding them first saves nothing. */
const CASCADE_ROWS_PER_RESULT: u32 = 8;

/** Selected rows lie far apart if they are fewer than one in this many. */
const SCATTERED: u32 = 4;
/**
 * With fewer than one in this many, l1 codes, made for each centre and step, cost more than they save. So do
 * the codes of many queries, which share the rows' floats.
 */
const VERY_SCATTERED: u32 = 64;

// How a search reads the rows, as set by the host.
/** By float32 alone, for comparison. */
export const BY_FLOATS: i32 = 0;
/** By the plan chosen here. */
export const BY_CHOICE: i32 = 1;
/** By the plan chosen here, with sketches of all rows, whether they pay or not: for tests. */
export const WITH_SKETCHES: i32 = 2;

let touched: u32 = 0;

/** @returns the number of rows that have a vector and pass the mask. */
export function countSelected(isFiltered: bool): u32 {
  if (!isFiltered) return liveRows;
  // Segments lie on different pages: independent loads wait for memory together.
  let sum: u32 = 0;
  for (let s: u32 = 0; s < segmentCount; s++) sum += load<u32>(livePtr(segmentPtr(s))) + load<u32>(staleCountPtr(segmentPtr(s)));
  touched = sum;
  let count: u32 = 0;
  for (let s: u32 = 0; s < segmentCount; s++) {
    const live = livePtr(segmentPtr(s));
    const filter = filterOf(currentFilterPtr(), s);
    for (let w: usize = 0; w < <usize>segmentRows >> 3; w += 4) count += popcnt(load<u32>(live + w) & load<u32>(filter + w));
  }
  return count;
}

/**
 * Fills and sorts the heaps of queries 0..count−1, which the host wrote at queryPtr(i).
 *
 * @param selected  the result of countSelected.
 * @param plan  BY_FLOATS, BY_CHOICE or WITH_SKETCHES.
 */
export function search(count: i32, similarity: i32, isFiltered: bool, selected: u32, plan: i32): void {
  resetScanCounts();
  const filterBits = isFiltered ? currentFilterPtr() : 0;
  for (let i = 0; i < count; i++) prepareQuery(i, similarity);
  const k = <u32>queryAt(0).heap.capacity;
  let usesCodes = plan !== BY_FLOATS && codeDimension > 0 && selected / CASCADE_ROWS_PER_RESULT >= k;
  // Coding a row takes some thirty times as long as reading its float32: many queries pay for it, one does not.
  if (hasDeferred() && plan === BY_CHOICE && count < MANY_QUERIES) usesCodes = false;
  if (usesCodes) {
    const spread = (segmentCount << segmentShift) / max<u32>(selected, 1);
    const isMany = count >= MANY_QUERIES && similarity !== L1;
    const isShared = isMany || similarity === L1;
    const limit = isShared ? VERY_SCATTERED : SCATTERED;
    const readsSketches = spread < limit && !isShared;
    if (plan === WITH_SKETCHES) learnNow();
    else if (readsSketches) workInSearch();
    else refreshInSearch(similarity !== L1);
    if (spread < limit) usesCodes = (isMany && cascadeMany(count, filterBits)) || cascade(count, filterBits);
    else usesCodes = !isShared && searchScattered(count, filterBits, selected);
    if (readsSketches) noteSearched(<i64>scannedBytes());
  }
  if (!usesCodes) {
    for (let s: u32 = 0; s < segmentCount; s++) {
      for (let i = 0; i < count; i++) scanFloats(queryAt(i), s, filterOf(filterBits, s));
    }
  }
  for (let i = 0; i < count; i++) sortBestFirst(queryAt(i).heap);
}

/** Address of the results of query `i`: entries of 16 bytes, score f64 and row u32. */
export function resultsPtr(i: i32): usize {
  return queryAt(i).heap.ptr;
}

export function resultCount(i: i32): i32 {
  return queryAt(i).heap.count;
}
