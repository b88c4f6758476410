/**
 * Integer dot products of a query's codes with planes of four rows, Σ Q_j (n_j − 8) for nibbles n_j in 0..15. Exact in every build.
 *
 *   relaxed SIMD  i16x8.relaxed_dot_i8x16_i7x16_s multiplies bytes and adds pairs: |pair| ≤ 2 · 15 · 127. Its second operand stays within 0..15, so all
 *                 engines agree. Pairs are added up in 16 bits over a window of dimensions, beginning with −8 ΣQ of the lane. A lane ends within
 *                 8 Σ|Q|, which storeDotWindows keeps below 2^15, so that sums which wrap around on the way are right in the end.
 *                 codes: | Q i8[codeDimension] | windows of the head | windows of the tail |      a window: | bytes of a plane u32 | whether the one before has room for it u32 | unused | −8 ΣQ i16x8 |
 *   plain SIMD    the four nibbles of each 16-bit lane are masked in place (worth 1, 16, 256) or shifted down (the highest), and multiplied as 16-bit
 *                 integers. Codes of the lowest and highest are stored times 16, so that three of the four products are worth 16 and share
 *                 an accumulator; the fourth is worth 256. |Σ| ≤ 3840 · |Q| · codeDimension / 4 for the latter, 240 · |Q| · codeDimension · 3/4 for the
 *                 former; largestDotCode keeps both, and 16 · |Q|, in range. Codes of 32 dimensions lie as
 *                 i16 | 0 2 .. 14 | 16 18 .. 30 | 1 3 .. 15 | 17 19 .. 31 |.
 *
 * A plane has two parts, the head (headBytes) and the tail, which can be read by themselves. Four rows at a time, so that loads of the codes are shared.
 */
import { Query } from "./query";
import { codeDimension, headBytes, tailBytes } from "./rows";

/** The largest |Q|: 127, or for plain SIMD as many bits as the sums leave room for, up to 11. */
export function largestDotCode(): i32 {
  if (ASC_FEATURE_RELAXED_SIMD) return 127;
  return min(2047, i32.MAX_VALUE / (960 * codeDimension));
}

/** Stores the code of dimension j. */
export function storeDotCode(codes: usize, j: i32, code: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    store<i8>(codes + <usize>j, <i8>code);
  } else {
    const chunk = j & ~31;
    const i = j & 31;
    const part = ((i & 1) << 1) | (i >> 4);
    const scaled = part === 0 || part === 3 ? code << 4 : code;
    store<i16>(codes + ((<usize>(chunk + (part << 3) + ((i & 15) >> 1))) << 1), <i16>scaled);
  }
}

/** What Σ|Q| of a lane may come to in a window: 8 · 4095 < 2^15. */
const LANE_LIMIT: i32 = 4095;

/** Bytes of a window in the codes. */
const WINDOW_BYTES: usize = 32;

function fitsOneWindow(codes: usize, end: usize): bool {
  let absolutes = i16x8.splat(0);
  while (codes < end) {
    absolutes = i16x8.add_sat_s(absolutes, i16x8.extadd_pairwise_i8x16_u(i8x16.abs(v128.load(codes))));
    codes += 16;
  }
  return !v128.any_true(i16x8.gt_s(absolutes, i16x8.splat(<i16>LANE_LIMIT)));
}

/** Stores windows of `size` codes, a multiple of 128 if there are several, from `codes` to `end`, of which the last may be shorter. @returns where the next would be, or 0: a lane exceeds the limit. */
function tryWindows(codes: usize, end: usize, size: usize, window: usize): usize {
  while (codes < end) {
    const stop = min(end, codes + size);
    if (!fitsOneWindow(codes, stop)) return 0;
    store<u32>(window, <u32>((stop - codes) >> 1));
    store<u32>(window, 0, 4);
    let sums = i16x8.splat(0);
    while (codes < stop) {
      sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_s(v128.load(codes)));
      codes += 16;
    }
    v128.store(window, i16x8.mul(sums, i16x8.splat(-8)), 16);
    window += WINDOW_BYTES;
  }
  return window;
}

/** Stores windows as long as fit. One of 128 codes always does: 16 · 127 < LANE_LIMIT. */
function storeWindows(codes: usize, end: usize, window: usize): usize {
  let size = end - codes;
  while (true) {
    const next = tryWindows(codes, end, size, window);
    if (next !== 0) return next;
    size = ((size >> 1) + 127) & ~127;
  }
}

/** To be called when all codes are stored; relaxed SIMD. @returns the address of the tail's first window. */
export function storeDotWindows(codes: usize): usize {
  const end = codes + <usize>codeDimension;
  const tail = codes + (headBytes << 1);
  const tailWindows = storeWindows(codes, tail, end);
  storeWindows(tail, end, tailWindows);
  if (fitsOneWindow(codes, end)) store<u32>(tailWindows, 1, 4);
  return tailWindows;
}

/** What is read of a plane. */
export const WHOLE: i32 = 0;
export const HEAD: i32 = 1;
export const TAIL: i32 = 2;

/** u32[4]: where the tails of the four rows in hand are. */
const fourTails = memory.data(16, 16);

/** To be called before dotOfFour, unless it reads heads alone. */
export function setTails(tail0: usize, tail1: usize, tail2: usize, tail3: usize): void {
  store<u32>(fourTails, <u32>tail0);
  store<u32>(fourTails, <u32>tail1, 4);
  store<u32>(fourTails, <u32>tail2, 8);
  store<u32>(fourTails, <u32>tail3, 12);
}

/** Σ Q_j (n_j − 8) over four rows' planes, or parts of them, i32x4. The tails' addresses are those that setTails took. */
export function dotOfFour(query: Query, head0: usize, head1: usize, head2: usize, head3: usize, part: i32): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return relaxedDotOfFour(query, head0, head1, head2, head3, part);
  return plainDotOfFour(query, head0, head1, head2, head3, part);
}

/** Products of two chunks of one row, i16x8. */
function relaxedTwoChunks(v: v128, w: v128, codes0: v128, codes1: v128, codes2: v128, codes3: v128): v128 {
  const nibble = i8x16.splat(15);
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

function relaxedDotOfFour(query: Query, plane0: usize, plane1: usize, plane2: usize, plane3: usize, part: i32): v128 {
  let codes = query.dotCodes;
  let window = codes + <usize>codeDimension;
  let end = plane0 + headBytes;
  if (tailBytes === 0) part = HEAD;
  if (part === TAIL) {
    codes += headBytes << 1;
    window = query.tailWindows;
    end = plane0;
  }
  let sum0 = i32x4.splat(0);
  let sum1 = i32x4.splat(0);
  let sum2 = i32x4.splat(0);
  let sum3 = i32x4.splat(0);
  let a0 = v128.load(window, 16);
  let a1 = a0;
  let a2 = a0;
  let a3 = a0;
  while (true) {
    if (plane0 === end) {
      plane0 = <usize>load<u32>(fourTails);
      plane1 = <usize>load<u32>(fourTails, 4);
      plane2 = <usize>load<u32>(fourTails, 8);
      plane3 = <usize>load<u32>(fourTails, 12);
      end = plane0 + tailBytes;
      part = TAIL;
    }
    const stop = plane0 + <usize>load<u32>(window);
    window += WINDOW_BYTES;
    while (plane0 < stop) {
      let codes0 = v128.load(codes);
      let codes1 = v128.load(codes, 16);
      let codes2 = v128.load(codes, 32);
      let codes3 = v128.load(codes, 48);
      a0 = i16x8.add(a0, relaxedTwoChunks(v128.load(plane0), v128.load(plane0, 16), codes0, codes1, codes2, codes3));
      a1 = i16x8.add(a1, relaxedTwoChunks(v128.load(plane1), v128.load(plane1, 16), codes0, codes1, codes2, codes3));
      a2 = i16x8.add(a2, relaxedTwoChunks(v128.load(plane2), v128.load(plane2, 16), codes0, codes1, codes2, codes3));
      a3 = i16x8.add(a3, relaxedTwoChunks(v128.load(plane3), v128.load(plane3, 16), codes0, codes1, codes2, codes3));
      // The branch also keeps V8 from loading eight codes at once, for which it lacks the registers.
      if (plane0 + 32 < stop) {
        codes0 = v128.load(codes, 64);
        codes1 = v128.load(codes, 80);
        codes2 = v128.load(codes, 96);
        codes3 = v128.load(codes, 112);
        a0 = i16x8.add(a0, relaxedTwoChunks(v128.load(plane0, 32), v128.load(plane0, 48), codes0, codes1, codes2, codes3));
        a1 = i16x8.add(a1, relaxedTwoChunks(v128.load(plane1, 32), v128.load(plane1, 48), codes0, codes1, codes2, codes3));
        a2 = i16x8.add(a2, relaxedTwoChunks(v128.load(plane2, 32), v128.load(plane2, 48), codes0, codes1, codes2, codes3));
        a3 = i16x8.add(a3, relaxedTwoChunks(v128.load(plane3, 32), v128.load(plane3, 48), codes0, codes1, codes2, codes3));
      }
      plane0 += 64;
      plane1 += 64;
      plane2 += 64;
      plane3 += 64;
      codes += 128;
    }
    // Past the end by half a turn where the last window is an odd multiple of 64 dimensions; all others are multiples of 128.
    const isLast = plane0 >= end && part !== WHOLE;
    if (!isLast && load<u32>(window, 4) !== 0) {
      // The next window fits in the same 16 bits.
      const next = v128.load(window, 16);
      a0 = i16x8.add(a0, next);
      a1 = i16x8.add(a1, next);
      a2 = i16x8.add(a2, next);
      a3 = i16x8.add(a3, next);
      continue;
    }
    sum0 = i32x4.add(sum0, i32x4.extadd_pairwise_i16x8_s(a0));
    sum1 = i32x4.add(sum1, i32x4.extadd_pairwise_i16x8_s(a1));
    sum2 = i32x4.add(sum2, i32x4.extadd_pairwise_i16x8_s(a2));
    sum3 = i32x4.add(sum3, i32x4.extadd_pairwise_i16x8_s(a3));
    if (isLast) break;
    a0 = v128.load(window, 16);
    a1 = a0;
    a2 = a0;
    a3 = a0;
  }
  return addLanesOfFour(sum0, sum1, sum2, sum3);
}

/** Products worth 16 of one chunk. */
function plainThree(v: v128, codes0: v128, codes1: v128, codes3: v128): v128 {
  return i32x4.add(
    i32x4.add(i32x4.dot_i16x8_s(v128.and(v, i16x8.splat(0x000f)), codes0), i32x4.dot_i16x8_s(v128.and(v, i16x8.splat(0x00f0)), codes1)),
    i32x4.dot_i16x8_s(i16x8.shr_u(v, 12), codes3),
  );
}

/** Products worth 256. */
function plainOne(v: v128, codes2: v128): v128 {
  return i32x4.dot_i16x8_s(v128.and(v, i16x8.splat(0x0f00)), codes2);
}

/** The sum of both; each is a multiple of what it is worth. */
function plainSum(three: v128, one: v128): v128 {
  return i32x4.add(i32x4.shr_s(three, 4), i32x4.shr_s(one, 8));
}

function plainDotOfFour(query: Query, plane0: usize, plane1: usize, plane2: usize, plane3: usize, part: i32): v128 {
  let codes = query.dotCodes;
  let codeSum = query.dotCodeSum;
  let end = plane0 + headBytes;
  if (part === HEAD) codeSum = query.headCodeSum;
  if (tailBytes === 0) part = HEAD;
  if (part === TAIL) {
    codes += headBytes << 2;
    codeSum -= query.headCodeSum;
    end = plane0;
  }
  let three0 = i32x4.splat(0);
  let three1 = i32x4.splat(0);
  let three2 = i32x4.splat(0);
  let three3 = i32x4.splat(0);
  let one0 = i32x4.splat(0);
  let one1 = i32x4.splat(0);
  let one2 = i32x4.splat(0);
  let one3 = i32x4.splat(0);
  do {
    if (plane0 === end) {
      plane0 = <usize>load<u32>(fourTails);
      plane1 = <usize>load<u32>(fourTails, 4);
      plane2 = <usize>load<u32>(fourTails, 8);
      plane3 = <usize>load<u32>(fourTails, 12);
      end = plane0 + tailBytes;
      part = TAIL;
    }
    while (plane0 < end) {
      const codes0 = v128.load(codes);
      const codes1 = v128.load(codes, 16);
      const codes2 = v128.load(codes, 32);
      const codes3 = v128.load(codes, 48);
      let v = v128.load(plane0);
      three0 = i32x4.add(three0, plainThree(v, codes0, codes1, codes3));
      one0 = i32x4.add(one0, plainOne(v, codes2));
      v = v128.load(plane1);
      three1 = i32x4.add(three1, plainThree(v, codes0, codes1, codes3));
      one1 = i32x4.add(one1, plainOne(v, codes2));
      v = v128.load(plane2);
      three2 = i32x4.add(three2, plainThree(v, codes0, codes1, codes3));
      one2 = i32x4.add(one2, plainOne(v, codes2));
      v = v128.load(plane3);
      three3 = i32x4.add(three3, plainThree(v, codes0, codes1, codes3));
      one3 = i32x4.add(one3, plainOne(v, codes2));
      plane0 += 16;
      plane1 += 16;
      plane2 += 16;
      plane3 += 16;
      codes += 64;
    }
  } while (part === WHOLE);
  const sums = addLanesOfFour(plainSum(three0, one0), plainSum(three1, one1), plainSum(three2, one2), plainSum(three3, one3));
  return i32x4.sub(sums, i32x4.splat(8 * codeSum));
}

export function addLanes(v: v128): i32 {
  return i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + (i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3));
}

function addHalvesOfTwo(a: v128, b: v128): v128 {
  return i32x4.add(i32x4.shuffle(a, b, 0, 4, 1, 5), i32x4.shuffle(a, b, 2, 6, 3, 7));
}

/** The sums of the lanes of a, b, c and d, as i32x4. */
export function addLanesOfFour(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = addHalvesOfTwo(a, b);
  const cd = addHalvesOfTwo(c, d);
  return i32x4.add(i32x4.shuffle(ab, cd, 0, 1, 4, 5), i32x4.shuffle(ab, cd, 2, 3, 6, 7));
}
