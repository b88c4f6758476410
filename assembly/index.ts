/**
 * The interface of a shard to the host. Addresses are unsigned: the host reads them with `>>> 0`. Views of
 * memory must be taken again after any call that can grow memory (reserveRows, reserveQueries, filterPtr,
 * search).
 */
import { initializeCodes } from "./codes/codes";
import { setMemoryLimit } from "./rows/memory";
import { initializeRows, liveRows, segmentPtr, segmentRows, segmentShift, setRow } from "./rows/rows";
import { refreshSegment } from "./sketch/refresh";
import { noteWritten, workWhileLoading } from "./sketch/schedule";

export { filterPtr, queryPtr, reserveQueries } from "./exact/query";
export { countSelected, resultCount, resultsPtr, search } from "./plans/search";
export { usedBytes } from "./rows/memory";
export { capacity, clearRow, hasRow, reserveRows, rowPtr, stagingPtr } from "./rows/rows";
export { exactRowCount, fullRowCount, scannedBytes } from "./rows/scan-counts";

/** Call once, first. @returns false when `maximumPages` is too small for an empty shard. */
export function initialize(dimension: i32, maximumPages: u32): bool {
  setMemoryLimit(maximumPages);
  return initializeRows(dimension) && initializeCodes();
}

/** Whether this is the relaxed SIMD build. */
export function isRelaxed(): bool {
  return ASC_FEATURE_RELAXED_SIMD;
}

/** @returns the number of rows that have a vector. */
export function size(): u32 {
  return liveRows;
}

/**
 * Stores the staged vector at a row within capacity. A segment whose rows are all new is coded at once,
 * others when they are searched.
 */
export function set(row: u32): void {
  noteWritten();
  if (setRow(row) !== segmentRows) return;
  refreshSegment(segmentPtr(row >> segmentShift));
  workWhileLoading();
}
