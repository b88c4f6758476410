/**
 * Integer dot products of a query's codes with one plane of rows, Σ Q_j (n_j − 8) for nibbles n_j in 0..15. Exact in every build.
 *
 *   relaxed SIMD  i16x8.relaxed_dot_i8x16_i7x16_s multiplies bytes and adds pairs: |pair| ≤ 2 · 15 · 127. Its second operand stays within 0..15, so all
 *                 engines agree. Pairs are added up in 16 bits over a window of dimensions, beginning with −8 ΣQ of the lane. A lane ends within
 *                 8 Σ|Q|, which storeDotWindows keeps below 2^15, so that sums which wrap around on the way are right in the end.
 *                 codes: | Q i8[codeDimension] | for each window: −8 ΣQ i16x8 |
 *   plain SIMD    the four nibbles of each 16-bit lane are masked in place (worth 1, 16, 256) or shifted down (the highest), and multiplied as 16-bit
 *                 integers. Codes of the lowest and highest are stored times 16, so that three of the four products are worth 16 and share
 *                 an accumulator; the fourth is worth 256. |Σ| ≤ 3840 · |Q| · codeDimension / 4 for the latter, 240 · |Q| · codeDimension · 3/4 for the
 *                 former; largestDotCode keeps both, and 16 · |Q|, in range. Codes of 32 dimensions lie as
 *                 i16 | 0 2 .. 14 | 16 18 .. 30 | 1 3 .. 15 | 17 19 .. 31 |.
 *
 * Four rows at a time, so that loads of the codes are shared, and each from another quarter of the list: memory is read as four streams, which
 * is up to 1.8 times as fast as one (hardware prefetchers stop at each page's end).
 */
import { Query } from "./query";
import { codeDimension } from "./rows";
import { padToStreams } from "./selection";

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

/** Whether the codes' lanes keep to the limit in windows of `steps` times 128 dimensions; stores where each begins. What is less than 128 at the end is part of the last. */
function tryWindows(codes: usize, steps: i32): bool {
  let at = codes;
  let start = codes + <usize>codeDimension;
  let left = max(codeDimension >> 7, 1);
  do {
    left -= steps;
    const stop = left <= 0 ? codes + <usize>codeDimension : at + ((<usize>steps) << 7);
    let sums = i16x8.splat(0);
    let absolutes = i16x8.splat(0);
    while (at < stop) {
      const q = v128.load(at);
      sums = i16x8.add(sums, i16x8.extadd_pairwise_i8x16_s(q));
      absolutes = i16x8.add_sat_s(absolutes, i16x8.extadd_pairwise_i8x16_u(i8x16.abs(q)));
      at += 16;
    }
    if (v128.any_true(i16x8.gt_s(absolutes, i16x8.splat(<i16>LANE_LIMIT)))) return false;
    v128.store(start, i16x8.mul(sums, i16x8.splat(-8)));
    start += 16;
  } while (left > 0);
  return true;
}

/** To be called when all codes are stored. @returns bytes of a plane in a window; relaxed SIMD. A window of 256 dimensions and the last of at most 192 always fit: 24 · 127 < LANE_LIMIT. */
export function storeDotWindows(codes: usize): usize {
  let steps = max(codeDimension >> 7, 1);
  while (!tryWindows(codes, steps)) steps = (steps + 1) >> 1;
  return (<usize>steps) << 6;
}

let touched: u32 = 0;

/**
 * Loads a byte of the cache lines of the planes of the rows listed (all but the last three). Where these have gaps, hardware prefetchers fetch the wrong lines;
 * independent loads wait for memory together (random directions take a tenth less time).
 */
export function touchPlanes(planes: usize, rows: usize, count: u32): void {
  const planeBytes = <usize>codeDimension >> 1;
  const quarter = (<usize>count >> 2) << 1;
  let sum: u32 = 0;
  for (let at = rows; at < rows + quarter; at += 2) {
    const plane0 = planes + <usize>load<u16>(at) * planeBytes;
    const plane1 = planes + <usize>load<u16>(at + quarter) * planeBytes;
    const plane2 = planes + <usize>load<u16>(at + 2 * quarter) * planeBytes;
    const plane3 = planes + <usize>load<u16>(at + 3 * quarter) * planeBytes;
    for (let offset: usize = 0; offset < planeBytes; offset += 64) {
      sum += load<u8>(plane0 + offset) + load<u8>(plane1 + offset) + load<u8>(plane2 + offset) + load<u8>(plane3 + offset);
    }
  }
  touched = sum;
}

/**
 * Stores at sums[row], i32, Σ Q_j (n_j − 8) over the plane of each row listed.
 *
 * @param rows  u16[count], with room for three more, which are overwritten.
 */
export function planeDots(query: Query, planes: usize, rows: usize, count: u32, sums: usize): void {
  if (count === 0) return;
  const planeBytes = <usize>codeDimension >> 1;
  const quarter = padToStreams(rows, count);
  for (let at = rows; at < rows + quarter; at += 2) {
    const row0 = <usize>load<u16>(at);
    const row1 = <usize>load<u16>(at + quarter);
    const row2 = <usize>load<u16>(at + 2 * quarter);
    const row3 = <usize>load<u16>(at + 3 * quarter);
    const plane0 = planes + row0 * planeBytes;
    const plane1 = planes + row1 * planeBytes;
    const plane2 = planes + row2 * planeBytes;
    const plane3 = planes + row3 * planeBytes;
    const four = planeDotOfFour(query, plane0, plane1, plane2, plane3);
    v128.store32_lane(sums + (row0 << 2), four, 0);
    v128.store32_lane(sums + (row1 << 2), four, 1);
    v128.store32_lane(sums + (row2 << 2), four, 2);
    v128.store32_lane(sums + (row3 << 2), four, 3);
  }
}

/** Σ Q_j (n_j − 8) over the planes of four rows, i32x4. */
export function planeDotOfFour(query: Query, plane0: usize, plane1: usize, plane2: usize, plane3: usize): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return relaxedDotOfFour(query, plane0, plane1, plane2, plane3);
  return plainDotOfFour(query, plane0, plane1, plane2, plane3);
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

function relaxedDotOfFour(query: Query, plane0: usize, plane1: usize, plane2: usize, plane3: usize): v128 {
  const end = plane0 + (<usize>codeDimension >> 1);
  const windowBytes = query.dotWindowBytes;
  let codes = query.dotCodes;
  let start = codes + <usize>codeDimension;
  let sum0 = i32x4.splat(0);
  let sum1 = i32x4.splat(0);
  let sum2 = i32x4.splat(0);
  let sum3 = i32x4.splat(0);
  do {
    const stop = plane0 + windowBytes < end - 32 ? plane0 + windowBytes : end;
    let a0 = v128.load(start);
    let a1 = a0;
    let a2 = a0;
    let a3 = a0;
    start += 16;
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
    sum0 = i32x4.add(sum0, i32x4.extadd_pairwise_i16x8_s(a0));
    sum1 = i32x4.add(sum1, i32x4.extadd_pairwise_i16x8_s(a1));
    sum2 = i32x4.add(sum2, i32x4.extadd_pairwise_i16x8_s(a2));
    sum3 = i32x4.add(sum3, i32x4.extadd_pairwise_i16x8_s(a3));
  } while (plane0 < end);
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

function plainDotOfFour(query: Query, plane0: usize, plane1: usize, plane2: usize, plane3: usize): v128 {
  const end = plane0 + (<usize>codeDimension >> 1);
  let codes = query.dotCodes;
  let three0 = i32x4.splat(0);
  let three1 = i32x4.splat(0);
  let three2 = i32x4.splat(0);
  let three3 = i32x4.splat(0);
  let one0 = i32x4.splat(0);
  let one1 = i32x4.splat(0);
  let one2 = i32x4.splat(0);
  let one3 = i32x4.splat(0);
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
  const sums = addLanesOfFour(plainSum(three0, one0), plainSum(three1, one1), plainSum(three2, one2), plainSum(three3, one3));
  return i32x4.sub(sums, i32x4.splat(8 * query.dotCodeSum));
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
