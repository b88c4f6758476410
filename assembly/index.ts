/** What the host sees of a shard. Addresses are unsigned: the host reads them with `>>> 0`. Every view is to be taken again after a call that can grow memory (reserveRows, reserveQueries, filterPtr). */
import { setMemoryLimit } from "./memory";
import { initializeRows, liveRows } from "./rows";

export { usedBytes } from "./memory";
export { filterPtr, queryPtr, reserveQueries } from "./query";
export { capacity, clearRow, commitRow, firstNonFinite, hasRow, reserveRows, rowPtr, setRow, stagingPtr } from "./rows";
export { countSelected, resultsPtr, searchOne } from "./search";

/** Call once, first. @returns false when `maximumPages` does not suffice for an empty shard. */
export function initialize(dimension: i32, maximumPages: u32): bool {
  setMemoryLimit(maximumPages);
  return initializeRows(dimension);
}

/** @returns the number of rows that have a vector. */
export function size(): u32 {
  return liveRows;
}
