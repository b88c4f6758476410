/**
 * Integer dot products of a query's codes with one plane of a row, Σ Q_j n_j for nibbles n_j in 0..15 and |Q_j| ≤ 127. Exact in every build.
 *
 *   relaxed SIMD  i16x8.relaxed_dot_i8x16_i7x16_s multiplies bytes and adds pairs. Its second operand stays within 0..15, so all engines agree.
 *                 |pair| ≤ 2 · 15 · 127 = 3810: eight fit 16 bits, then pairs are widened.
 *   plain SIMD    the four nibbles of each 16-bit lane are masked in place (worth 1, 16, 256) or shifted down (the highest), and multiplied as 16-bit
 *                 integers. |Σ| ≤ 3840 · 127 · 2 · codeDimension / 32 < 2^31 for 10,000 dimensions. Codes of 32 dimensions lie as
 *                 i16 | 0 2 .. 14 | 16 18 .. 30 | 1 3 .. 15 | 17 19 .. 31 |.
 */
import { codeDimension } from "./rows";

/** Stores the code of dimension j. */
export function storeDotCode(codes: usize, j: i32, code: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    store<i8>(codes + <usize>j, <i8>code);
  } else {
    const chunk = j & ~31;
    const i = j & 31;
    const slot = ((i & 1) << 4) | ((i >> 4) << 3) | ((i & 15) >> 1);
    store<i16>(codes + ((<usize>(chunk + slot)) << 1), <i16>code);
  }
}

/** @returns i32x4 whose lanes add up to the dot product of the codes with the plane of one row. */
export function planeDot(codes: usize, plane: usize): v128 {
  const nibble = i8x16.splat(15);
  const end = plane + (<usize>codeDimension >> 1);
  if (ASC_FEATURE_RELAXED_SIMD) {
    let sum = i32x4.splat(0);
    while (plane < end) {
      // Two accumulators take one product each a chunk of 32 dimensions: at most 8 before they are widened.
      const stop = min(end, plane + 128);
      let a = i16x8.splat(0);
      let b = i16x8.splat(0);
      while (plane < stop) {
        const v = v128.load(plane);
        const w = v128.load(plane, 16);
        a = i16x8.add(a, i16x8.relaxed_dot_i8x16_i7x16_s(v128.load(codes), v128.and(v, nibble)));
        b = i16x8.add(b, i16x8.relaxed_dot_i8x16_i7x16_s(v128.load(codes, 16), v128.and(i16x8.shr_u(v, 4), nibble)));
        a = i16x8.add(a, i16x8.relaxed_dot_i8x16_i7x16_s(v128.load(codes, 32), v128.and(w, nibble)));
        b = i16x8.add(b, i16x8.relaxed_dot_i8x16_i7x16_s(v128.load(codes, 48), v128.and(i16x8.shr_u(w, 4), nibble)));
        plane += 32;
        codes += 64;
      }
      sum = i32x4.add(sum, i32x4.add(i32x4.extadd_pairwise_i16x8_s(a), i32x4.extadd_pairwise_i16x8_s(b)));
    }
    return sum;
  } else {
    const mask0 = i16x8.splat(0x000f);
    const mask1 = i16x8.splat(0x00f0);
    const mask2 = i16x8.splat(0x0f00);
    let a = i32x4.splat(0);
    let b = i32x4.splat(0);
    let c = i32x4.splat(0);
    let d = i32x4.splat(0);
    while (plane < end) {
      const v = v128.load(plane);
      const w = v128.load(plane, 16);
      a = i32x4.add(a, i32x4.dot_i16x8_s(v128.and(v, mask0), v128.load(codes)));
      b = i32x4.add(b, i32x4.dot_i16x8_s(v128.and(v, mask1), v128.load(codes, 16)));
      c = i32x4.add(c, i32x4.dot_i16x8_s(v128.and(v, mask2), v128.load(codes, 32)));
      d = i32x4.add(d, i32x4.dot_i16x8_s(i16x8.shr_u(v, 12), v128.load(codes, 48)));
      a = i32x4.add(a, i32x4.dot_i16x8_s(v128.and(w, mask0), v128.load(codes, 64)));
      b = i32x4.add(b, i32x4.dot_i16x8_s(v128.and(w, mask1), v128.load(codes, 80)));
      c = i32x4.add(c, i32x4.dot_i16x8_s(v128.and(w, mask2), v128.load(codes, 96)));
      d = i32x4.add(d, i32x4.dot_i16x8_s(i16x8.shr_u(w, 12), v128.load(codes, 112)));
      plane += 32;
      codes += 128;
    }
    return i32x4.add(i32x4.add(a, d), i32x4.add(i32x4.shr_s(b, 4), i32x4.shr_s(c, 8)));
  }
}

export function addLanes(v: v128): i32 {
  return i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + (i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3));
}

/** The four sums of lanes, as i32x4. */
export function addLanesOfFour(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(i32x4.shuffle(c, d, 0, 4, 1, 5), i32x4.shuffle(c, d, 2, 6, 3, 7));
  return i32x4.add(i32x4.shuffle(ab, cd, 0, 1, 4, 5), i32x4.shuffle(ab, cd, 2, 3, 6, 7));
}
