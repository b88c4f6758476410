/**
 * The interface of a shard to the host. Addresses are unsigned: the host reads them with `>>> 0`. Views of
 * memory must be taken again after any call that can grow memory (reserve, reserveQueries, filterPtr, search,
 * loadBasis, loadSegment, adoptSegment).
 */
import { initializeCodes } from "./codes/codes";
import { initializeFetched, singleRow } from "./exact/fetched";
import { setMemoryLimit } from "./rows/memory";
import {
  clearRow,
  initializeRows,
  isOutside as keepsOutside,
  liveRows,
  placesPtr,
  reserveRows,
  segmentPtr,
  segmentRows,
  segmentShift,
  setRow,
} from "./rows/rows";
import { codeDeferred, deferSegment } from "./sketch/deferred";
import { forgetPlace, openForRow, reserveBlocks, writeOutside } from "./sketch/outside";
import { refreshSegment } from "./sketch/refresh";
import { noteWritten, workWhileLoading } from "./sketch/schedule";

export { filterPtr, queryPtr, reserveQueries } from "./exact/query";
export { countSelected, resultCount, resultsPtr, search } from "./plans/search";
export { usedBytes } from "./rows/memory";
export { capacity, hasRow, segmentCount, segmentPtr, segmentRows, segmentSize, stagingPtr } from "./rows/rows";
export { exactRowCount, fetchedRowCount, fullRowCount, scannedBytes } from "./rows/scan-counts";
export {
  adoptBasis,
  adoptSegment,
  beginImage,
  loadBasis,
  loadedBasisBytes,
  loadSegment,
  savedBasis,
  savedBasisBytes,
  savedSkewness,
  saveSegment,
} from "./sketch/image";

/**
 * Call once, first. @param outside  whether float32 are kept outside; without effect on dimensions that have no codes.
 * @returns false when `maximumPages` is too small for an empty shard.
 */
export function initialize(dimension: i32, maximumPages: u32, outside: bool): bool {
  setMemoryLimit(maximumPages);
  return initializeRows(dimension, outside) && initializeCodes() && initializeFetched();
}

/** Whether this is the relaxed SIMD build. */
export function isRelaxed(): bool {
  return ASC_FEATURE_RELAXED_SIMD;
}

/** @returns the number of rows that have a vector. */
export function size(): u32 {
  return liveRows;
}

/** Makes room for rows 0..rows−1. @returns false at the memory limit; rows stored before stay usable. */
export function reserve(rows: u32): bool {
  return reserveRows(rows) && reserveBlocks();
}

/**
 * Stores the staged vector at a row within capacity. A segment whose rows are all new is coded at once,
 * others when they are searched. A row whose float32 are outside is coded before these leave.
 *
 * @param isDeferred  leaves it to `code` to code segments that are in memory.
 */
export function set(row: u32, isDeferred: bool): void {
  const isInMemory = openForRow(row);
  noteWritten();
  if (!isInMemory) {
    writeOutside(row);
    return;
  }
  if (setRow(row) !== segmentRows) return;
  if (isDeferred && !keepsOutside) {
    deferSegment(row >> segmentShift);
    return;
  }
  refreshSegment(segmentPtr(row >> segmentShift));
  workWhileLoading();
}

/** Codes one segment that `set` has left, in about 10 ms. @returns whether others wait. */
export function code(): bool {
  return codeDeferred();
}

/** @returns whether there was a vector. */
export function clear(row: u32): bool {
  if (!clearRow(row)) return false;
  forgetPlace(row);
  return true;
}

/** Address of the f32[stride] of a row that has a vector, until the next call. */
export function rowPtr(row: u32): usize {
  return singleRow(segmentPtr(row >> segmentShift), row & (segmentRows - 1));
}

/** Address of the places of a segment's rows, u32[segmentRows], where float32 are outside. */
export function placesOf(s: u32): usize {
  return placesPtr(segmentPtr(s));
}

/** Whether float32 are kept outside. */
export function isOutside(): bool {
  return keepsOutside;
}
