/** One search: counts what the mask selects, then scans segment by segment. */
import { scanFloats } from "./float-scan";
import { currentFilterPtr, heapOf, prepareQuery, queryDoublesPtr, queryPtr } from "./query";
import { livePtr, liveRows, segmentCount, segmentPtr, segmentRows } from "./rows";
import { sortBestFirst } from "./top-k";

/** Segment `s`'s words of the mask that the host wrote, or 0 for no mask. */
function filterOf(segment: u32, isFiltered: bool): usize {
  return isFiltered ? currentFilterPtr() + <usize>segment * <usize>(segmentRows >> 3) : 0;
}

/** @returns how many rows have a vector and pass the mask. */
export function countSelected(isFiltered: bool): u32 {
  if (!isFiltered) return liveRows;
  let count: u32 = 0;
  for (let s: u32 = 0; s < segmentCount; s++) {
    const live = livePtr(segmentPtr(s));
    const filter = filterOf(s, true);
    for (let w: usize = 0; w < <usize>segmentRows >> 3; w += 4) count += popcnt(load<u32>(live + w) & load<u32>(filter + w));
  }
  return count;
}

/** Fills the heap of query `i`, which the host wrote at queryPtr(i), and sorts it best first. @returns the number of results. */
export function searchOne(i: i32, similarity: i32, isFiltered: bool): i32 {
  const querySquares = prepareQuery(i);
  const heap = heapOf(i);
  for (let s: u32 = 0; s < segmentCount; s++) {
    scanFloats(s, filterOf(s, isFiltered), similarity, queryPtr(i), queryDoublesPtr(i), querySquares, heap);
  }
  sortBestFirst(heap);
  return heap.count;
}

/** Address of the results of query `i`: entries of 16 bytes, score f64 and row u32. */
export function resultsPtr(i: i32): usize {
  return heapOf(i).ptr;
}
