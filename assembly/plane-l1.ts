/**
 * Sums of absolute differences between bytes: a query's codes P_j and a row's, Σ |P_j − c_j|, in units of the row's Δ/16 (see codes.ts).
 * The high plane stands for c = 16 h + 8; both sides are moved by −8, so that nibbles are used in place. Exact in every build.
 *
 * A byte differs by at most 255, a pair by 510; 16 bits hold 128 pairs; they are widened every 64 chunks of 32 dimensions.
 */
import { codeDimension } from "./rows";

function differences(a: v128, b: v128): v128 {
  return i16x8.extadd_pairwise_i8x16_u(v128.or(i8x16.sub_sat_u(a, b), i8x16.sub_sat_u(b, a)));
}

/** @returns i32x4 whose lanes add up to Σ |P_j − 16 h_j|. `codes` are u8[codeDimension], moved by −8. */
export function planeL1(codes: usize, plane: usize): v128 {
  const highNibble = i8x16.splat(-16);
  const end = plane + (<usize>codeDimension >> 1);
  let sum = i32x4.splat(0);
  while (plane < end) {
    const stop = min(end, plane + 1024);
    let a = i16x8.splat(0);
    let b = i16x8.splat(0);
    while (plane < stop) {
      const v = v128.load(plane);
      const w = v128.load(plane, 16);
      a = i16x8.add(a, differences(v128.load(codes), v128.and(i16x8.shl(v, 4), highNibble)));
      b = i16x8.add(b, differences(v128.load(codes, 16), v128.and(v, highNibble)));
      a = i16x8.add(a, differences(v128.load(codes, 32), v128.and(i16x8.shl(w, 4), highNibble)));
      b = i16x8.add(b, differences(v128.load(codes, 48), v128.and(w, highNibble)));
      plane += 32;
      codes += 64;
    }
    sum = i32x4.add(sum, i32x4.add(i32x4.extadd_pairwise_i16x8_u(a), i32x4.extadd_pairwise_i16x8_u(b)));
  }
  return sum;
}

/** @returns i32x4 whose lanes add up to Σ |P_j − c_j| with both planes. */
export function fullL1(codes: usize, high: usize, low: usize): v128 {
  const highNibble = i8x16.splat(-16);
  const lowNibble = i8x16.splat(0x0f);
  const end = high + (<usize>codeDimension >> 1);
  let sum = i32x4.splat(0);
  while (high < end) {
    const stop = min(end, high + 1024);
    let a = i16x8.splat(0);
    let b = i16x8.splat(0);
    while (high < stop) {
      const h = v128.load(high);
      const l = v128.load(low);
      const first = v128.or(v128.and(i16x8.shl(h, 4), highNibble), v128.and(l, lowNibble));
      const second = v128.or(v128.and(h, highNibble), v128.and(i16x8.shr_u(l, 4), lowNibble));
      a = i16x8.add(a, differences(v128.load(codes), first));
      b = i16x8.add(b, differences(v128.load(codes, 16), second));
      high += 16;
      low += 16;
      codes += 32;
    }
    sum = i32x4.add(sum, i32x4.add(i32x4.extadd_pairwise_i16x8_u(a), i32x4.extadd_pairwise_i16x8_u(b)));
  }
  return sum;
}
