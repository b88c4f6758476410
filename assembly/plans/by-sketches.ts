/**
 * The cascade's first step where rows have sketches, except for L1; it replaces the heads. All sketches of a
 * batch are read first, and the rows that look best by them are scored, because a good limit is needed before
 * whole codes are read. The nearest rows of embeddings are not much nearer than many others, so a limit from
 * only a few segments rules out little.
 */
import { costLimit } from "../exact/cost-limit";
import { beginWanted, MAX_WANTED, rowFloats, wantFloats } from "../exact/fetched";
import { exactScore } from "../exact/float-scan";
import { Query, SEEDS_PER_RESULT } from "../exact/query";
import { addSeeds, seedRow } from "../exact/seeds";
import { offer, resetTopK } from "../exact/top-k";
import { floatBytes, segmentPtr, segmentRows, segmentShift } from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { listRows, selected } from "../rows/selection";
import { sketchBoundsOf32 } from "../sketch/bounds";
import { sketchDots, sketchOf } from "../sketch/query-sketch";
import { hasSketches, SKETCH_GROUP_BYTES } from "../sketch/sketches";

/** Whether the first step reads the sketches of a segment. */
export function usesSketches(query: Query, segment: usize): bool {
  return query.isSketched && hasSketches(segment);
}

/**
 * Bounds the selected rows of segment `s`, which are listed at `rows`, by their sketches. The best become seeds.
 *
 * @param listed  number of listed rows; may be larger than the number of selected ones.
 * @param bounds  f32[segmentRows]: receives the bounds, and temporarily the sums.
 */
export function boundBySketches(query: Query, s: u32, filter: usize, rows: usize, listed: u32, bounds: usize): void {
  const segment = segmentPtr(s);
  sketchDots(query, segment, rows, listed, bounds);
  const sketch = sketchOf(query);
  const seeds = query.seeds;
  const firstRow = s << segmentShift;
  let words: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = selected(segment, filter, w);
    if (bits === 0) continue;
    words++;
    const at = bounds + ((<usize>w) << 7);
    sketchBoundsOf32(sketch, segment, w << 5, at);
    addSeeds(seeds, at, bits, firstRow + (w << 5));
  }
  countBytes(<u64>words * 8 * <u64>SKETCH_GROUP_BYTES);
}

/**
 * One row in this many is a seed, if that gives more seeds than results are wanted. The k-th best of these is
 * nearly the k-th best of all.
 */
const ROWS_PER_SEED: u32 = 256;

/** Makes room for the seeds of `rows` rows. */
export function widenSeeds(query: Query, rows: u32): void {
  const k = query.heap.capacity;
  query.seeds.capacity = max(k, <i32>min<u32>(<u32>k * <u32>SEEDS_PER_RESULT, rows / ROWS_PER_SEED));
}

/** Scores the query's seeds, as many at a time as may be wanted. */
export function scoreSeeds(query: Query): void {
  const seeds = query.seeds;
  for (let first = 0; first < seeds.count; first += <i32>MAX_WANTED) {
    const end = min(seeds.count, first + <i32>MAX_WANTED);
    beginWanted();
    for (let i = first; i < end; i++) wantFloats(segmentOf(seedRow(seeds, i)), seedRow(seeds, i) & (segmentRows - 1));
    for (let i = first; i < end; i++) {
      const segment = segmentOf(seedRow(seeds, i));
      const row = seedRow(seeds, i) & (segmentRows - 1);
      countBytes(floatBytes());
      offer(query.heap, exactScore(query, segment, row, rowFloats(segment, row)), seedRow(seeds, i));
    }
  }
}

function segmentOf(row: u32): usize {
  return segmentPtr(row >> segmentShift);
}

/**
 * Raises the threshold to the k-th best score of the seeds, and empties them. The scores are discarded: the
 * search meets these rows again.
 */
export function raiseBySeeds(query: Query): void {
  const seeds = query.seeds;
  const heap = query.heap;
  if (heap.count === 0) {
    const before = heap.threshold;
    scoreSeeds(query);
    const threshold = heap.count === heap.capacity ? max(before, heap.threshold) : before;
    resetTopK(heap, heap.ptr, heap.capacity);
    heap.threshold = threshold;
  }
  seeds.count = 0;
  seeds.capacity = heap.capacity;
}

/**
 * Keeps in rowBits, u32[segmentRows / 32], the rows that boundBySketches did not rule out, and lists them at
 * `rows`.
 *
 * @returns how many there are.
 */
export function keepBySketches(query: Query, rowBits: usize, rows: usize, bounds: usize): u32 {
  const limits = f32x4.splat(costLimit(query, query.heap.threshold));
  let list = rows;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = load<u32>(rowBits + ((<usize>w) << 2));
    if (bits === 0) continue;
    let at = bounds + ((<usize>w) << 7);
    for (let group: u32 = 0; group < 32; group += 4, at += 16) bits &= ~((<u32>i32x4.bitmask(f32x4.gt(v128.load(at), limits))) << group);
    store<u32>(rowBits + ((<usize>w) << 2), bits);
    list = listRows(list, w, bits);
  }
  return <u32>(list - rows) >> 1;
}
