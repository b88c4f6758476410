/**
 * The cascade's first step where rows have sketches, COSINE and L2; it replaces the heads. All sketches of a
 * batch are read first, and the rows that look best by them are scored, because a good limit is needed before
 * whole codes are read. The nearest rows of embeddings are not much nearer than many others, so a limit from
 * only a few segments rules out little.
 */
import { costLimit } from "../exact/cost-limit";
import { exactScore, touchFloats } from "../exact/float-scan";
import { Query, SEEDS_PER_RESULT } from "../exact/query";
import { addSeed, seedLimit, seedRow } from "../exact/seeds";
import { offer, resetTopK } from "../exact/top-k";
import { floatBytes, segmentPtr, segmentRows, segmentShift } from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { listRows, selected } from "../rows/selection";
import { sketchBounds } from "../sketch/bounds";
import { sketchDots, sketchOf } from "../sketch/query-sketch";
import { hasSketches, SKETCH_GROUP_BYTES } from "../sketch/sketches";

/** Whether the first step reads the sketches of a segment. */
export function usesSketches(query: Query, segment: usize): bool {
  return query.isSketched && hasSketches(segment);
}

/**
 * Bounds `count` selected rows of segment `s`, listed at `rows`, by their sketches. The best become seeds.
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
  let limit = f32x4.splat(seedLimit(seeds));
  let groups: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    const bits = selected(segment, filter, w);
    if (bits === 0) continue;
    for (let group: u32 = 0; group < 8; group++) {
      const four = (bits >> (group << 2)) & 15;
      if (four === 0) continue;
      groups++;
      const row = (w << 5) + (group << 2);
      const at = bounds + ((<usize>row) << 2);
      const bound = sketchBounds(sketch, segment, row, v128.load(at));
      v128.store(at, bound);
      let best = i32x4.bitmask(f32x4.lt(bound, limit)) & four;
      if (best === 0) continue;
      while (best !== 0) {
        const i = <u32>ctz(best);
        best &= best - 1;
        const value = load<f32>(at + ((<usize>i) << 2));
        if (value < seedLimit(seeds)) addSeed(seeds, value, firstRow + row + i);
      }
      limit = f32x4.splat(seedLimit(seeds));
    }
  }
  countBytes(<u64>groups * <u64>SKETCH_GROUP_BYTES);
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

/**
 * Raises the threshold to the k-th best score of the seeds, and empties them. The scores are discarded: the
 * search meets these rows again.
 */
export function raiseBySeeds(query: Query): void {
  const seeds = query.seeds;
  const heap = query.heap;
  if (heap.count === 0) {
    for (let i = 0; i < seeds.count; i++) touchFloats(segmentPtr(seedRow(seeds, i) >> segmentShift), seedRow(seeds, i) & (segmentRows - 1));
    const before = heap.threshold;
    for (let i = 0; i < seeds.count; i++) {
      const row = seedRow(seeds, i);
      countBytes(floatBytes());
      offer(heap, exactScore(query, segmentPtr(row >> segmentShift), row & (segmentRows - 1)), row);
    }
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
