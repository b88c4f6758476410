/**
 * The cascade's first step: for many rows the head of the code, five twelfths of its bytes, is enough
 * (clusters: for all rows outside the query's own). It needs a limit, so it starts with the second batch, and
 * it is not tried where it cannot help.
 */

import { headDotBounds } from "../dot/bounds";
import { costLimit } from "../exact/cost-limit";
import { Query } from "../exact/query";
import { L1 } from "../exact/similarity";
import { groupBytes, segmentRows, tailBytes } from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { listRows } from "../rows/selection";

/** The first pause of a head that does not help, in segments. */
const FIRST_PAUSE: u32 = 4;
const LONGEST_PAUSE: u32 = 1024;

/**
 * Whether to read the heads of `count` rows (listed at `rows`, u16) separately: not before there is a limit,
 * not when they recently left too many rows, and except for L1 not when the tails' norms alone are too
 * large for most of eight sampled rows.
 */
export function isHeadWorthTrying(query: Query, segment: usize, rows: usize, count: u32): bool {
  if (query.heap.threshold === -Infinity || tailBytes === 0) return false;
  if (query.headPause > 0) {
    query.headPause--;
    return false;
  }
  if (query.similarity === L1) return true;
  countBytes(groupBytes(8));
  const limits = f32x4.splat(costLimit(query, query.heap.threshold));
  const first = headDotBounds(query, segment, <u32>load<u16>(rows), i32x4.splat(0));
  const middle = headDotBounds(query, segment, <u32>load<u16>(rows + ((<usize>count >> 1) << 1)), i32x4.splat(0));
  return popcnt(i32x4.bitmask(f32x4.gt(first, limits))) + popcnt(i32x4.bitmask(f32x4.gt(middle, limits))) >= 4;
}

/**
 * Keeps those of `count` rows that their heads do not rule out.
 *
 * @param rowBits  u32[segmentRows / 32], and `rows`, u16: the same list; both are overwritten.
 * @param sums  i32[segmentRows]: Σ Q (c − 64) over the head; L1: f32[segmentRows], the bounds by the head.
 * @returns how many there are.
 */
export function keepByHeads(query: Query, segment: usize, rowBits: usize, rows: usize, count: u32, sums: usize): u32 {
  const limits = f32x4.splat(costLimit(query, query.heap.threshold));
  let list = rows;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = load<u32>(rowBits + ((<usize>w) << 2));
    if (bits === 0) continue;
    for (let group: u32 = 0; group < 8; group++) {
      if (((bits >> (group << 2)) & 15) === 0) continue;
      const first = (w << 5) + (group << 2);
      const sum = v128.load(sums + ((<usize>first) << 2));
      if (query.similarity !== L1) countBytes(groupBytes(4));
      const bound = query.similarity === L1 ? sum : headDotBounds(query, segment, first, sum);
      bits &= ~((<u32>i32x4.bitmask(f32x4.gt(bound, limits))) << (group << 2));
    }
    store<u32>(rowBits + ((<usize>w) << 2), bits);
    list = listRows(list, w, bits);
  }
  const left = <u32>(list - rows) >> 1;
  if (left * 2 <= count) {
    query.nextHeadPause = FIRST_PAUSE;
  } else {
    // A head that leaves more than half of the rows costs more than it saves.
    query.headPause = max(FIRST_PAUSE, query.nextHeadPause);
    query.nextHeadPause = min(LONGEST_PAUSE, 2 * query.headPause);
  }
  return left;
}

/** Adds the sums over tails to those over heads, in all words of `rowBits` that have a row. */
export function addTails(rowBits: usize, sums: usize, tailSums: usize): void {
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    if (load<u32>(rowBits + ((<usize>w) << 2)) === 0) continue;
    for (let at: usize = (<usize>w) << 7; at < ((<usize>w) << 7) + 128; at += 16) {
      v128.store(sums + at, i32x4.add(v128.load(sums + at), v128.load(tailSums + at)));
    }
  }
}
