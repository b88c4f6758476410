/**
 * The k best rows seen so far: a heap in linear memory whose root is the worst of them. Order: higher score
 * first; equal scores: the row whose id comes first. Only the host knows ids, so it is asked, on exact ties
 * only.
 *
 *   entry, 16 bytes: | score f64 | row u32 | unused u32 |
 */

import { isIdBefore } from "../host";

export const ENTRY_BYTES: usize = 16;

/**
 * A heap of at most `capacity` entries at `ptr`. Several may exist (one per query), so the state is passed,
 * not global.
 */
@unmanaged
export class TopK {
  ptr: usize;
  capacity: i32;
  count: i32;
  /**
   * The score that a row must reach to matter: the root's when full; a higher one if other shards have found
   * it; otherwise −Infinity.
   */
  threshold: f64;
}

/** Call it when the k best rows are known to score at least `score`. */
export function raiseThreshold(heap: TopK, score: f64): void {
  if (score > heap.threshold) heap.threshold = score;
}

export function resetTopK(heap: TopK, ptr: usize, capacity: i32): void {
  heap.ptr = ptr;
  heap.capacity = capacity;
  heap.count = 0;
  heap.threshold = -Infinity;
}

function scoreAt(ptr: usize, i: i32): f64 {
  return load<f64>(ptr + ((<usize>i) << 4));
}

function rowAt(ptr: usize, i: i32): u32 {
  return load<u32>(ptr + ((<usize>i) << 4), 8);
}

function put(ptr: usize, i: i32, score: f64, row: u32): void {
  const at = ptr + ((<usize>i) << 4);
  store<f64>(at, score);
  store<u32>(at, row, 8);
}

function isWorse(score: f64, row: u32, otherScore: f64, otherRow: u32): bool {
  if (score !== otherScore) return score < otherScore;
  return isIdBefore(otherRow, row) !== 0;
}

/** Sinks (score, row) from the root of a heap of `count` entries. */
function sink(ptr: usize, count: i32, score: f64, row: u32): void {
  let i = 0;
  while (true) {
    let child = 2 * i + 1;
    if (child >= count) break;
    let childScore = scoreAt(ptr, child);
    let childRow = rowAt(ptr, child);
    if (child + 1 < count) {
      const rightScore = scoreAt(ptr, child + 1);
      const rightRow = rowAt(ptr, child + 1);
      if (isWorse(rightScore, rightRow, childScore, childRow)) {
        child++;
        childScore = rightScore;
        childRow = rightRow;
      }
    }
    if (!isWorse(childScore, childRow, score, row)) break;
    put(ptr, i, childScore, childRow);
    i = child;
  }
  put(ptr, i, score, row);
}

/** Offers one row; costs O(log k) when it enters. */
export function offer(heap: TopK, score: f64, row: u32): void {
  const ptr = heap.ptr;
  if (heap.count < heap.capacity) {
    let i = heap.count++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const parentScore = scoreAt(ptr, parent);
      const parentRow = rowAt(ptr, parent);
      if (!isWorse(score, row, parentScore, parentRow)) break;
      put(ptr, i, parentScore, parentRow);
      i = parent;
    }
    put(ptr, i, score, row);
  } else {
    if (score < heap.threshold) return;
    if (!isWorse(scoreAt(ptr, 0), rowAt(ptr, 0), score, row)) return;
    sink(ptr, heap.count, score, row);
  }
  if (heap.count === heap.capacity) raiseThreshold(heap, scoreAt(ptr, 0));
}

/** Turns the heap into a list, best first. It is no longer a heap then. */
export function sortBestFirst(heap: TopK): void {
  const ptr = heap.ptr;
  for (let last = heap.count - 1; last > 0; last--) {
    const score = scoreAt(ptr, last);
    const row = rowAt(ptr, last);
    put(ptr, last, scoreAt(ptr, 0), rowAt(ptr, 0));
    sink(ptr, last, score, row);
  }
}
