/**
 * The plain plan: a float32 SIMD pass over every selected row, and exact float64 scores for those that it
 * cannot rule out.
 *
 * Bounds (u = 2^-24, n = stride; Higham, Accuracy and Stability of Numerical Algorithms, §3.1). A lane sums
 * at most ⌊n/16⌋ + 3 terms, by ⌊n/16⌋ + 2 additions that round (the first adds to 0). The four accumulators
 * and the four lanes are joined by 4 more, and a term itself has at most 3 roundings. So at most ⌊n/16⌋ + 9
 * roundings touch any term. With m = ⌊n/16⌋ + 8:
 *   dot:     |computed − Σxq| ≤ γ · ‖x‖‖q‖ + n·2^-149,  γ = m·u / (1 − m·u)   (Cauchy–Schwarz over Σ|xq|)
 *   l1, l2:  all terms are ≥ 0, so computed ≤ true · (1 + γ) + n·2^-149,
 *            hence true ≥ (computed − n·2^-149)(1 − γ)
 * The float64 sum that defines the score is itself within a relative 2^-39 of the true one (n·2^-53 for n ≤
 * 10,000). γ is doubled, which covers that, the ninth rounding, and the float64 roundings of the test. For DOT these
 * are relative to the limit, too, which matters only between the two sums, below 1.01 ‖x‖‖q‖.
 *
 * Overflow: an infinite or NaN result rules nothing out. For dot, no partial sum can overflow while ‖x‖‖q‖ <
 * 2^126; rows beyond that are not ruled out.
 */
import { addF32 } from "../lanes";
import { floatBytes, floatsPtr, segmentPtr, segmentRows, segmentShift, squaresPtr, stride, strideBytes } from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { selected } from "../rows/selection";
import { exactDot, exactL1, exactL2 } from "./exact";
import { beginWanted, MAX_WANTED, rowFloats, wantFloats } from "./fetched";
import { Query } from "./query";
import { COSINE, cosineFloor, cosineScore, DOT, distanceCeiling, distanceScore, L1, L2 } from "./similarity";
import { offer } from "./top-k";

const SAFE_PRODUCT: f64 = 8.507059173023462e37; // 2^126
const TINY: f64 = 1.401298464324817e-45; // 2^-149

function floatDot(x: usize, q: usize, n: i32): f32 {
  let a = f32x4.splat(0);
  let b = f32x4.splat(0);
  let c = f32x4.splat(0);
  let d = f32x4.splat(0);
  const end = x + ((<usize>(n & ~15)) << 2);
  while (x < end) {
    a = f32x4.add(a, f32x4.mul(v128.load(x), v128.load(q)));
    b = f32x4.add(b, f32x4.mul(v128.load(x, 16), v128.load(q, 16)));
    c = f32x4.add(c, f32x4.mul(v128.load(x, 32), v128.load(q, 32)));
    d = f32x4.add(d, f32x4.mul(v128.load(x, 48), v128.load(q, 48)));
    x += 64;
    q += 64;
  }
  const last = end + ((<usize>(n & 15)) << 2);
  while (x < last) {
    a = f32x4.add(a, f32x4.mul(v128.load(x), v128.load(q)));
    x += 16;
    q += 16;
  }
  return addF32(f32x4.add(f32x4.add(a, b), f32x4.add(c, d)));
}

function floatL1(x: usize, q: usize, n: i32): f32 {
  let a = f32x4.splat(0);
  let b = f32x4.splat(0);
  let c = f32x4.splat(0);
  let d = f32x4.splat(0);
  const end = x + ((<usize>(n & ~15)) << 2);
  while (x < end) {
    a = f32x4.add(a, f32x4.abs(f32x4.sub(v128.load(x), v128.load(q))));
    b = f32x4.add(b, f32x4.abs(f32x4.sub(v128.load(x, 16), v128.load(q, 16))));
    c = f32x4.add(c, f32x4.abs(f32x4.sub(v128.load(x, 32), v128.load(q, 32))));
    d = f32x4.add(d, f32x4.abs(f32x4.sub(v128.load(x, 48), v128.load(q, 48))));
    x += 64;
    q += 64;
  }
  const last = end + ((<usize>(n & 15)) << 2);
  while (x < last) {
    a = f32x4.add(a, f32x4.abs(f32x4.sub(v128.load(x), v128.load(q))));
    x += 16;
    q += 16;
  }
  return addF32(f32x4.add(f32x4.add(a, b), f32x4.add(c, d)));
}

function square(x: usize, q: usize): v128 {
  const z = f32x4.sub(v128.load(x), v128.load(q));
  return f32x4.mul(z, z);
}

function floatL2(x: usize, q: usize, n: i32): f32 {
  let a = f32x4.splat(0);
  let b = f32x4.splat(0);
  let c = f32x4.splat(0);
  let d = f32x4.splat(0);
  const end = x + ((<usize>(n & ~15)) << 2);
  while (x < end) {
    a = f32x4.add(a, square(x, q));
    b = f32x4.add(b, square(x + 16, q + 16));
    c = f32x4.add(c, square(x + 32, q + 32));
    d = f32x4.add(d, square(x + 48, q + 48));
    x += 64;
    q += 64;
  }
  const last = end + ((<usize>(n & 15)) << 2);
  while (x < last) {
    a = f32x4.add(a, square(x, q));
    x += 16;
    q += 16;
  }
  return addF32(f32x4.add(f32x4.add(a, b), f32x4.add(c, d)));
}

/** The score of a row of a segment, whose f32[stride] is at `x`, exactly as defined in similarity.ts. */
export function exactScore(query: Query, segment: usize, row: u32, x: usize): f64 {
  if (query.similarity === L1) return distanceScore(exactL1(x, query.doubles, stride));
  if (query.similarity === L2) return distanceScore(exactL2(x, query.doubles, stride));
  const dot = exactDot(x, query.doubles, stride);
  return query.similarity === DOT ? dot : cosineScore(dot, query.squares, load<f64>(squaresPtr(segment) + ((<usize>row) << 3)));
}

/** γ, doubled: m u ≤ 2^-14 for strides up to 10,000, so 1 / (1 − m u) is below 1 + 2^-13. */
function roundingShare(): f64 {
  return 2 * <f64>(stride / 16 + 8) * 5.9604644775390625e-8 * 1.0001220703125;
}

/**
 * The limit for a row's float32 sum: the cosine below which, or the distance above which, the row is ruled
 * out; DOT: the threshold itself.
 */
export function floatLimit(query: Query, threshold: f64): f64 {
  if (query.similarity === DOT) return threshold;
  return query.similarity === COSINE ? cosineFloor(threshold) : distanceCeiling(threshold);
}

/** Whether the float32 sum of a row of a segment, at `x`, proves that it scores below the threshold of `limit`. */
export function isRuledOut(query: Query, segment: usize, row: u32, x: usize, limit: f64, queryNorm: f64): bool {
  const tiny = TINY * <f64>stride;
  const share = roundingShare();
  const isCosine = query.similarity === COSINE;
  if (isCosine || query.similarity === DOT) {
    const product = queryNorm * Math.sqrt(load<f64>(squaresPtr(segment) + ((<usize>row) << 3)));
    const least = (isCosine ? limit * product : limit) - share * product;
    return product < SAFE_PRODUCT && <f64>floatDot(x, query.floats, stride) + tiny < least - tiny;
  }
  const sum = query.similarity === L1 ? floatL1(x, query.floats, stride) : floatL2(x, query.floats, stride);
  return sum <= f32.MAX_VALUE && (<f64>sum - tiny) * (1 - share) > limit;
}

/**
 * Scores a wanted row of a segment exactly, unless its float32 sum rules it out. That test takes a third of the
 * time.
 */
export function scoreRow(query: Query, segment: usize, row: u32, firstRow: u32): void {
  const heap = query.heap;
  countBytes(floatBytes());
  const x = rowFloats(segment, row);
  if (isRuledOut(query, segment, row, x, floatLimit(query, heap.threshold), Math.sqrt(query.squares))) return;
  offer(heap, exactScore(query, segment, row, x), firstRow + row);
}

/** Scans segment number `index`. `filter` is the address of its words of the row mask, or 0. */
export function scanFloats(query: Query, index: u32, filter: usize): void {
  const segment = segmentPtr(index);
  if (floatsPtr(segment) === 0) {
    scanOutside(query, index, filter);
    return;
  }
  const floats = floatsPtr(segment);
  const queryNorm = Math.sqrt(query.squares);
  const firstRow = index << segmentShift;
  const heap = query.heap;
  let threshold = heap.threshold;
  let limit = floatLimit(query, threshold);
  let rows: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = selected(segment, filter, w);
    rows += popcnt(bits);
    while (bits !== 0) {
      const row = (w << 5) + ctz(bits);
      bits &= bits - 1;
      const x = floats + <usize>row * strideBytes();
      if (isRuledOut(query, segment, row, x, limit, queryNorm)) continue;
      offer(heap, exactScore(query, segment, row, x), firstRow + row);
      if (heap.threshold !== threshold) {
        threshold = heap.threshold;
        limit = floatLimit(query, threshold);
      }
    }
  }
  countBytes(<u64>rows * floatBytes());
}

/** u16[MAX_WANTED]: rows of the segment that is scanned. */
const scanned = memory.data(2 * 64, 16);

/** The same for a segment whose float32 are outside. They are read some at a time. */
function scanOutside(query: Query, index: u32, filter: usize): void {
  const segment = segmentPtr(index);
  let count: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = selected(segment, filter, w);
    while (bits !== 0) {
      store<u16>(scanned + ((<usize>count) << 1), <u16>((w << 5) + ctz(bits)));
      bits &= bits - 1;
      if (++count < MAX_WANTED) continue;
      scoreScanned(query, segment, index << segmentShift, count);
      count = 0;
    }
  }
  if (count > 0) scoreScanned(query, segment, index << segmentShift, count);
}

function scoreScanned(query: Query, segment: usize, firstRow: u32, count: u32): void {
  beginWanted();
  for (let i: u32 = 0; i < count; i++) wantFloats(segment, load<u16>(scanned + ((<usize>i) << 1)));
  for (let i: u32 = 0; i < count; i++) scoreRow(query, segment, load<u16>(scanned + ((<usize>i) << 1)), firstRow);
}
