/**
 * Integer dot products of a query's codes with one plane of a row, Σ Q_j n_j for nibbles n_j in 0..15. Exact in every build.
 *
 *   relaxed SIMD  i16x8.relaxed_dot_i8x16_i7x16_s multiplies bytes and adds pairs. Its second operand stays within 0..15, so all engines agree.
 *                 |pair| ≤ 2 · 15 · 127 = 3810: eight fit 16 bits, then pairs are widened.
 *   plain SIMD    the four nibbles of each 16-bit lane are masked in place (worth 1, 16, 256) or shifted down (the highest), and multiplied as 16-bit
 *                 integers. |Σ| ≤ 3840 · |Q| · 2 · codeDimension / 32 = 240 · |Q| · codeDimension, which largestDotCode keeps below 2^31. Codes of 32 dimensions lie as
 *                 i16 | 0 2 .. 14 | 16 18 .. 30 | 1 3 .. 15 | 17 19 .. 31 |.
 */
import { codeDimension } from "./rows";

/** The largest |Q|: 127, or for plain SIMD as many bits as the sums leave room for, up to 11. */
export function largestDotCode(): i32 {
  if (ASC_FEATURE_RELAXED_SIMD) return 127;
  return min(2047, i32.MAX_VALUE / (240 * codeDimension));
}

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

/** @returns the dot products of the codes with the planes of four rows that follow each other, i32x4. */
export function planeDotOfFour(codes: usize, plane: usize): v128 {
  const planeBytes = <usize>codeDimension >> 1;
  if (ASC_FEATURE_RELAXED_SIMD) return relaxedDotOfFour(codes, plane, planeBytes);
  return joinPairs(plainDotOfTwo(codes, plane, planeBytes), plainDotOfTwo(codes, plane + 2 * planeBytes, planeBytes));
}

/** @returns the dot product of the codes with the plane of one row. */
export function planeDot(codes: usize, plane: usize): i32 {
  const planeBytes = <usize>codeDimension >> 1;
  if (ASC_FEATURE_RELAXED_SIMD) return addLanes(relaxedDot(codes, plane, planeBytes));
  return addLanes(plainDot(codes, plane, planeBytes));
}

/** Products of two chunks of one row, i16x8: each lane is the sum of four pairs, at most 15240. */
function relaxedTwoChunks(plane: usize, codes0: v128, codes1: v128, codes2: v128, codes3: v128): v128 {
  const nibble = i8x16.splat(15);
  const v = v128.load(plane);
  const w = v128.load(plane, 16);
  const first = i16x8.add(
    i16x8.relaxed_dot_i8x16_i7x16_s(codes0, v128.and(v, nibble)),
    i16x8.relaxed_dot_i8x16_i7x16_s(codes1, v128.and(i16x8.shr_u(v, 4), nibble)),
  );
  const second = i16x8.add(
    i16x8.relaxed_dot_i8x16_i7x16_s(codes2, v128.and(w, nibble)),
    i16x8.relaxed_dot_i8x16_i7x16_s(codes3, v128.and(i16x8.shr_u(w, 4), nibble)),
  );
  return i16x8.add(first, second);
}

function relaxedDotOfFour(codes: usize, plane: usize, planeBytes: usize): v128 {
  let plane1 = plane + planeBytes;
  let plane2 = plane1 + planeBytes;
  let plane3 = plane2 + planeBytes;
  const end = plane1;
  let sum0 = i32x4.splat(0);
  let sum1 = i32x4.splat(0);
  let sum2 = i32x4.splat(0);
  let sum3 = i32x4.splat(0);
  while (plane < end) {
    let codes0 = v128.load(codes);
    let codes1 = v128.load(codes, 16);
    let codes2 = v128.load(codes, 32);
    let codes3 = v128.load(codes, 48);
    let a0 = relaxedTwoChunks(plane, codes0, codes1, codes2, codes3);
    let a1 = relaxedTwoChunks(plane1, codes0, codes1, codes2, codes3);
    let a2 = relaxedTwoChunks(plane2, codes0, codes1, codes2, codes3);
    let a3 = relaxedTwoChunks(plane3, codes0, codes1, codes2, codes3);
    if (plane + 32 < end) {
      codes0 = v128.load(codes, 64);
      codes1 = v128.load(codes, 80);
      codes2 = v128.load(codes, 96);
      codes3 = v128.load(codes, 112);
      a0 = i16x8.add(a0, relaxedTwoChunks(plane + 32, codes0, codes1, codes2, codes3));
      a1 = i16x8.add(a1, relaxedTwoChunks(plane1 + 32, codes0, codes1, codes2, codes3));
      a2 = i16x8.add(a2, relaxedTwoChunks(plane2 + 32, codes0, codes1, codes2, codes3));
      a3 = i16x8.add(a3, relaxedTwoChunks(plane3 + 32, codes0, codes1, codes2, codes3));
    }
    sum0 = i32x4.add(sum0, i32x4.extadd_pairwise_i16x8_s(a0));
    sum1 = i32x4.add(sum1, i32x4.extadd_pairwise_i16x8_s(a1));
    sum2 = i32x4.add(sum2, i32x4.extadd_pairwise_i16x8_s(a2));
    sum3 = i32x4.add(sum3, i32x4.extadd_pairwise_i16x8_s(a3));
    plane += 64;
    plane1 += 64;
    plane2 += 64;
    plane3 += 64;
    codes += 128;
  }
  return addLanesOfFour(sum0, sum1, sum2, sum3);
}

function relaxedDot(codes: usize, plane: usize, planeBytes: usize): v128 {
  const nibble = i8x16.splat(15);
  const end = plane + planeBytes;
  let sum = i32x4.splat(0);
  while (plane < end) {
    // Two accumulators take one product each a chunk: eight chunks before they are widened.
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
}

/** @returns i32x4 | a + c of row 0 | a + c of row 1 | b + d of row 0 | b + d of row 1 |, for lanes a b c d of either. */
function plainDotOfTwo(codes: usize, plane: usize, planeBytes: usize): v128 {
  const mask0 = i16x8.splat(0x000f);
  const mask1 = i16x8.splat(0x00f0);
  const mask2 = i16x8.splat(0x0f00);
  let other = plane + planeBytes;
  const end = other;
  let a = i32x4.splat(0);
  let b = i32x4.splat(0);
  let c = i32x4.splat(0);
  let otherA = i32x4.splat(0);
  let otherB = i32x4.splat(0);
  let otherC = i32x4.splat(0);
  while (plane < end) {
    const code0 = v128.load(codes);
    const code1 = v128.load(codes, 16);
    const code2 = v128.load(codes, 32);
    const code3 = v128.load(codes, 48);
    const v = v128.load(plane);
    const w = v128.load(other);
    a = i32x4.add(a, i32x4.dot_i16x8_s(v128.and(v, mask0), code0));
    otherA = i32x4.add(otherA, i32x4.dot_i16x8_s(v128.and(w, mask0), code0));
    b = i32x4.add(b, i32x4.dot_i16x8_s(v128.and(v, mask1), code1));
    otherB = i32x4.add(otherB, i32x4.dot_i16x8_s(v128.and(w, mask1), code1));
    c = i32x4.add(c, i32x4.dot_i16x8_s(v128.and(v, mask2), code2));
    otherC = i32x4.add(otherC, i32x4.dot_i16x8_s(v128.and(w, mask2), code2));
    a = i32x4.add(a, i32x4.dot_i16x8_s(i16x8.shr_u(v, 12), code3));
    otherA = i32x4.add(otherA, i32x4.dot_i16x8_s(i16x8.shr_u(w, 12), code3));
    plane += 16;
    other += 16;
    codes += 64;
  }
  a = i32x4.add(a, i32x4.add(i32x4.shr_s(b, 4), i32x4.shr_s(c, 8)));
  otherA = i32x4.add(otherA, i32x4.add(i32x4.shr_s(otherB, 4), i32x4.shr_s(otherC, 8)));
  return addHalvesOfTwo(a, otherA);
}

function plainDot(codes: usize, plane: usize, planeBytes: usize): v128 {
  const mask0 = i16x8.splat(0x000f);
  const mask1 = i16x8.splat(0x00f0);
  const mask2 = i16x8.splat(0x0f00);
  const end = plane + planeBytes;
  let a = i32x4.splat(0);
  let b = i32x4.splat(0);
  let c = i32x4.splat(0);
  let d = i32x4.splat(0);
  while (plane < end) {
    const v = v128.load(plane);
    a = i32x4.add(a, i32x4.dot_i16x8_s(v128.and(v, mask0), v128.load(codes)));
    b = i32x4.add(b, i32x4.dot_i16x8_s(v128.and(v, mask1), v128.load(codes, 16)));
    c = i32x4.add(c, i32x4.dot_i16x8_s(v128.and(v, mask2), v128.load(codes, 32)));
    d = i32x4.add(d, i32x4.dot_i16x8_s(i16x8.shr_u(v, 12), v128.load(codes, 48)));
    plane += 16;
    codes += 64;
  }
  return i32x4.add(i32x4.add(a, d), i32x4.add(i32x4.shr_s(b, 4), i32x4.shr_s(c, 8)));
}

export function addLanes(v: v128): i32 {
  return i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + (i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3));
}

function addHalvesOfTwo(a: v128, b: v128): v128 {
  return i32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
}

function joinPairs(ab: v128, cd: v128): v128 {
  return i32x4.add(i32x4.shuffle(ab, cd, 0, 1, 4, 5), i32x4.shuffle(ab, cd, 2, 3, 6, 7));
}

/** The sums of the lanes of a, b, c and d, as i32x4. */
export function addLanesOfFour(a: v128, b: v128, c: v128, d: v128): v128 {
  return joinPairs(addHalvesOfTwo(a, b), addHalvesOfTwo(c, d));
}
