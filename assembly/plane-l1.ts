/**
 * Sums of maxima of bytes: a query's codes P_j and a row's c_j (see codes.ts), which make Σ |P − c| = 2 Σ max(P, c) − Σ P − Σ c.
 * The high plane stands for c = 16 h + 8; both sides are moved by −8, so that nibbles are used in place. Exact in every build.
 */
import { headBytes, highHeadPtr, highTailPtr, lowPtr, tailBytes } from "./rows";

/**
 * `codes` are u8[codeDimension] and even, so that the average of two maxima is exact.
 *
 * @returns i32x4 whose lanes add up to Σ max(P_j, 16 h_j) / 2.
 */
export function halfMaxima(codes: usize, segment: usize, row: usize): v128 {
  let plane = highHeadPtr(segment, row);
  let end = plane + headBytes;
  let tail = tailBytes;
  let sum = i32x4.splat(0);
  let a = i16x8.splat(0);
  let b = i16x8.splat(0);
  // A pair of averages is at most 480: 16 bits hold 128 of them, one in 32 bytes for each of a and b.
  let room: usize = 4096;
  while (true) {
    const stop = min(end, plane + room);
    room -= stop - plane;
    while (plane < stop) {
      a = i16x8.add(a, halfMaximaOfChunk(v128.load(plane), v128.load(codes), v128.load(codes, 16)));
      b = i16x8.add(b, halfMaximaOfChunk(v128.load(plane, 16), v128.load(codes, 32), v128.load(codes, 48)));
      plane += 32;
      codes += 64;
    }
    if (plane === end) {
      if (tail === 0) return i32x4.add(sum, widened(a, b));
      plane = highTailPtr(segment, row);
      end = plane + tail;
      tail = 0;
    }
    if (room > 0) continue;
    sum = i32x4.add(sum, widened(a, b));
    a = i16x8.splat(0);
    b = i16x8.splat(0);
    room = 4096;
  }
}

/** The pairs of both as i32x4. */
function widened(a: v128, b: v128): v128 {
  return i32x4.add(i32x4.extadd_pairwise_i16x8_u(a), i32x4.extadd_pairwise_i16x8_u(b));
}

/** 32 dimensions, i16x8. */
function halfMaximaOfChunk(v: v128, codes0: v128, codes1: v128): v128 {
  const highNibble = i8x16.splat(-16);
  const first = i8x16.max_u(codes0, v128.and(i16x8.shl(v, 4), highNibble));
  const second = i8x16.max_u(codes1, v128.and(v, highNibble));
  return i16x8.extadd_pairwise_i8x16_u(i8x16.avgr_u(first, second));
}

/** @returns i32x4 whose lanes add up to Σ max(P_j, c_j), with both planes. */
export function fullMaxima(codes: usize, segment: usize, row: usize): v128 {
  let high = highHeadPtr(segment, row);
  let low = lowPtr(segment, row);
  let end = high + headBytes;
  let tail = tailBytes;
  let sum = i32x4.splat(0);
  let a = i16x8.splat(0);
  let b = i16x8.splat(0);
  // Two pairs of bytes are at most 1020: 16 bits hold 64 of them, one in 32 bytes for each of a and b.
  let room: usize = 2048;
  while (true) {
    const stop = min(end, high + room);
    room -= stop - high;
    while (high < stop) {
      a = i16x8.add(a, fullMaximaOfChunk(v128.load(high), v128.load(low), v128.load(codes), v128.load(codes, 16)));
      b = i16x8.add(b, fullMaximaOfChunk(v128.load(high, 16), v128.load(low, 16), v128.load(codes, 32), v128.load(codes, 48)));
      high += 32;
      low += 32;
      codes += 64;
    }
    if (high === end) {
      if (tail === 0) return i32x4.add(sum, widened(a, b));
      high = highTailPtr(segment, row);
      end = high + tail;
      tail = 0;
    }
    if (room > 0) continue;
    sum = i32x4.add(sum, widened(a, b));
    a = i16x8.splat(0);
    b = i16x8.splat(0);
    room = 2048;
  }
}

/** 32 dimensions, i16x8. */
function fullMaximaOfChunk(h: v128, l: v128, codes0: v128, codes1: v128): v128 {
  const highNibble = i8x16.splat(-16);
  const lowNibble = i8x16.splat(0x0f);
  const first = v128.or(v128.and(i16x8.shl(h, 4), highNibble), v128.and(l, lowNibble));
  const second = v128.or(v128.and(h, highNibble), v128.and(i16x8.shr_u(l, 4), lowNibble));
  return i16x8.add(i16x8.extadd_pairwise_i8x16_u(i8x16.max_u(codes0, first)), i16x8.extadd_pairwise_i8x16_u(i8x16.max_u(codes1, second)));
}
