/**
 * Integer dot products of a query's codes with those of four rows, Σ Q_j (c_j − 64) for c_j in 0..127
 * (codes/codes.ts), |Q_j| ≤ 127. Exact in every build. It needs few instructions per cache line, so a
 * processor that looks a few hundred of them ahead keeps as many lines in flight as in a scan of float32.
 *
 *   relaxed SIMD  i16x8.relaxed_dot_i8x16_i7x16_s multiplies bytes and adds pairs:
 *                 |pair| ≤ 2 · 127 · 127 < 2^15. Its second operand stays within 0..127, so engines agree.
 *                 The pairs of 64 dimensions, eight per lane, are added up in 16 bits, starting with −64 ΣQ
 *                 of the lane. A lane ends within 64 Σ|Q|, which LANE_LIMIT keeps below 2^15, so sums that
 *                 wrap around on the way are right in the end.
 *                 codes: | Q i8[codeDimension] | −64 ΣQ of the lanes, i16x8, for each 64 dimensions |
 *   plain SIMD    two codes are a 16-bit lane w = c + 256 c', and
 *                 Q c + Q' c' = (Q' w + (256 Q − Q') c) / 256: two multiplications of 16-bit integers, only
 *                 one of which needs its codes masked. |256 Q − Q'| < 2^15. The sums, in 32 bits, start with
 *                 −64 · 256 ΣQ of the lane and end within 2^14 Σ|Q|, which LANE_LIMIT keeps below 2^31; they
 *                 may wrap around on the way.
 *                 codes, 16 dimensions: | Q' i16x8 | 256 Q − Q' i16x8 |; after them
 *                 | −2^14 ΣQ of the lanes, i32x4, over the head | over the tail |
 *
 * A code has two parts, the head (headBytes) and the tail, which can be read separately. Four rows are
 * processed at a time to share the loads of the query's codes.
 */

import { Query } from "../exact/query";
import { addI32OfFour } from "../lanes";
import { codeDimension, headBytes, tailBytes } from "../rows/rows";

/** Limit of the sum of |Q| in a lane: 64 · 511 < 2^15, 2^14 · 131071 < 2^31. */
const LANE_LIMIT: i32 = ASC_FEATURE_RELAXED_SIMD ? 511 : 131071;

/** Dimensions per lane, relaxed SIMD. */
const LANE_DIMENSIONS: i32 = 8;

/** The largest |Q| to code a query with at first. In plain SIMD it always keeps the limit. */
export function largestDotCode(): i32 {
  return ASC_FEATURE_RELAXED_SIMD ? 127 : min(127, (LANE_LIMIT << 2) / codeDimension);
}

/**
 * The largest |Q| to make the codes again with, if a lane of those made with `largest` exceeds the limit;
 * otherwise 0. Rounding changes the sum of a lane, Σ|Q|, by at most half of its dimensions, both times.
 */
export function smallerDotCode(codes: usize, largest: i32): i32 {
  if (!ASC_FEATURE_RELAXED_SIMD) return 0;
  let most = i16x8.splat(0);
  const end = codes + <usize>codeDimension;
  while (codes < end) {
    most = i16x8.max_s(most, i16x8.add(absoluteLanes(codes), absoluteLanes(codes + 32)));
    codes += 64;
  }
  if (!v128.any_true(i16x8.gt_s(most, i16x8.splat(<i16>LANE_LIMIT)))) return 0;
  most = i16x8.max_s(most, i64x2.shuffle(most, most, 1, 0));
  most = i16x8.max_s(most, i32x4.shuffle(most, most, 1, 0, 3, 2));
  const lane = max(i16x8.extract_lane_s(most, 0), i16x8.extract_lane_s(most, 1));
  return (largest * (LANE_LIMIT - LANE_DIMENSIONS / 2)) / (<i32>lane + LANE_DIMENSIONS / 2);
}

function absoluteLanes(codes: usize): v128 {
  return i16x8.add(
    i16x8.extadd_pairwise_i8x16_u(i8x16.abs(v128.load(codes))),
    i16x8.extadd_pairwise_i8x16_u(i8x16.abs(v128.load(codes, 16))),
  );
}

/** Stores the codes of dimensions j and j + 1, j even. */
export function storeTwoCodes(codes: usize, j: i32, first: i32, second: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    store<i8>(codes + <usize>j, <i8>first);
    store<i8>(codes + <usize>j, <i8>second, 1);
  } else {
    const at = codes + ((<usize>(j & ~15)) << 1) + <usize>(j & 15);
    store<i16>(at, <i16>second);
    store<i16>(at, <i16>((first << 8) - second), 16);
  }
}

/** Stores the starting values of the sums. Call it when all codes are stored. */
export function storeStarts(codes: usize): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    let start = codes + <usize>codeDimension;
    const end = start;
    while (codes < end) {
      let lanes = i16x8.add(i16x8.extadd_pairwise_i8x16_s(v128.load(codes)), i16x8.extadd_pairwise_i8x16_s(v128.load(codes, 16)));
      lanes = i16x8.add(lanes, i16x8.extadd_pairwise_i8x16_s(v128.load(codes, 32)));
      lanes = i16x8.add(lanes, i16x8.extadd_pairwise_i8x16_s(v128.load(codes, 48)));
      v128.store(start, i16x8.mul(lanes, i16x8.splat(-64)));
      start += 16;
      codes += 64;
    }
  } else {
    const end = codes + ((<usize>codeDimension) << 1);
    storeStart(codes, codes + (headBytes << 1), end);
    storeStart(codes + (headBytes << 1), end, end + 16);
  }
}

function storeStart(from: usize, to: usize, start: usize): void {
  let sums = i32x4.splat(0);
  const weights = i16x8.splat(64);
  while (from < to) {
    // Codes of 64: w = 64 · 257, and 64 · 257 Q' + 64 (256 Q − Q') = 2^14 (Q + Q').
    sums = i32x4.add(
      sums,
      i32x4.add(i32x4.dot_i16x8_s(v128.load(from), i16x8.splat(64 * 257)), i32x4.dot_i16x8_s(v128.load(from, 16), weights)),
    );
    from += 32;
  }
  v128.store(start, i32x4.neg(sums));
}

/** Which part of a code is read. */
export const WHOLE: i32 = 0;
export const HEAD: i32 = 1;
export const TAIL: i32 = 2;

/**
 * Σ Q_j (c_j − 64) over four rows' codes, i32x4.
 *
 * @param row0  where the part of the first row's code begins that is read, or its head (WHOLE); and so on.
 * @param tail0  its tail; only WHOLE reads it.
 */
export function dotOfFour(
  query: Query,
  part: i32,
  row0: usize,
  row1: usize,
  row2: usize,
  row3: usize,
  tail0: usize,
  tail1: usize,
  tail2: usize,
  tail3: usize,
): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return relaxedDotOfFour(query, part, row0, row1, row2, row3, tail0, tail1, tail2, tail3);
  return plainDotOfFour(query, part, row0, row1, row2, row3, tail0, tail1, tail2, tail3);
}

/** Adds 32 dimensions of a row to its sums, i16x8. */
function addRelaxed(sums: v128, row0: v128, row1: v128, codes0: v128, codes1: v128): v128 {
  const products = i16x8.add(i16x8.relaxed_dot_i8x16_i7x16_s(codes0, row0), i16x8.relaxed_dot_i8x16_i7x16_s(codes1, row1));
  return i16x8.add(sums, products);
}

/** 64 dimensions of a row, i32x4. */
export function relaxedWindow(row: usize, start: v128, codes0: v128, codes1: v128, codes2: v128, codes3: v128): v128 {
  const half = addRelaxed(start, v128.load(row), v128.load(row, 16), codes0, codes1);
  return i32x4.extadd_pairwise_i16x8_s(addRelaxed(half, v128.load(row, 32), v128.load(row, 48), codes2, codes3));
}

function relaxedDotOfFour(
  query: Query,
  part: i32,
  row0: usize,
  row1: usize,
  row2: usize,
  row3: usize,
  tail0: usize,
  tail1: usize,
  tail2: usize,
  tail3: usize,
): v128 {
  let codes = query.dotCodes;
  let start = codes + <usize>codeDimension;
  let end = row0 + headBytes;
  if (part === TAIL) {
    codes += headBytes;
    start += headBytes >> 2;
    end = row0 + tailBytes;
  }
  let sum0 = i32x4.splat(0);
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  while (true) {
    while (row0 < end) {
      let first = v128.load(codes);
      let second = v128.load(codes, 16);
      let a0 = v128.load(start);
      let a1 = a0;
      let a2 = a0;
      let a3 = a0;
      a0 = addRelaxed(a0, v128.load(row0), v128.load(row0, 16), first, second);
      a1 = addRelaxed(a1, v128.load(row1), v128.load(row1, 16), first, second);
      a2 = addRelaxed(a2, v128.load(row2), v128.load(row2, 16), first, second);
      a3 = addRelaxed(a3, v128.load(row3), v128.load(row3, 16), first, second);
      // Always. V8 moves all loads before a branch to the front, and spills what registers cannot hold. Without
      // this one a search takes 1.07 times as long at 10,000 × 384; memory hides it at 100,000 × 768.
      if (row0 !== end) {
        first = v128.load(codes, 32);
        second = v128.load(codes, 48);
        a0 = addRelaxed(a0, v128.load(row0, 32), v128.load(row0, 48), first, second);
        a1 = addRelaxed(a1, v128.load(row1, 32), v128.load(row1, 48), first, second);
        a2 = addRelaxed(a2, v128.load(row2, 32), v128.load(row2, 48), first, second);
        a3 = addRelaxed(a3, v128.load(row3, 32), v128.load(row3, 48), first, second);
      }
      sum0 = i32x4.add(sum0, i32x4.extadd_pairwise_i16x8_s(a0));
      sum1 = i32x4.add(sum1, i32x4.extadd_pairwise_i16x8_s(a1));
      sum2 = i32x4.add(sum2, i32x4.extadd_pairwise_i16x8_s(a2));
      sum3 = i32x4.add(sum3, i32x4.extadd_pairwise_i16x8_s(a3));
      row0 += 64;
      row1 += 64;
      row2 += 64;
      row3 += 64;
      codes += 64;
      start += 16;
    }
    if (part !== WHOLE || tailBytes === 0) break;
    part = TAIL;
    row0 = tail0;
    row1 = tail1;
    row2 = tail2;
    row3 = tail3;
    end = row0 + tailBytes;
  }
  return addI32OfFour(sum0, sum1, sum2, sum3);
}

/** 32 dimensions of a row, i32x4, times 256. */
function plainChunk(row: usize, codes0: v128, codes1: v128, codes2: v128, codes3: v128): v128 {
  const mask = i16x8.splat(0x00ff);
  const v = v128.load(row);
  const w = v128.load(row, 16);
  return i32x4.add(
    i32x4.add(i32x4.dot_i16x8_s(v, codes0), i32x4.dot_i16x8_s(v128.and(v, mask), codes1)),
    i32x4.add(i32x4.dot_i16x8_s(w, codes2), i32x4.dot_i16x8_s(v128.and(w, mask), codes3)),
  );
}

function plainDotOfFour(
  query: Query,
  part: i32,
  row0: usize,
  row1: usize,
  row2: usize,
  row3: usize,
  tail0: usize,
  tail1: usize,
  tail2: usize,
  tail3: usize,
): v128 {
  let codes = query.dotCodes;
  const starts = codes + ((<usize>codeDimension) << 1);
  let end = row0 + headBytes;
  let sum0 = v128.load(starts);
  if (part === TAIL) {
    codes += headBytes << 1;
    end = row0 + tailBytes;
    sum0 = v128.load(starts, 16);
  } else if (part === WHOLE) {
    sum0 = i32x4.add(sum0, v128.load(starts, 16));
  }
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  while (true) {
    while (row0 < end) {
      const codes0 = v128.load(codes);
      const codes1 = v128.load(codes, 16);
      const codes2 = v128.load(codes, 32);
      const codes3 = v128.load(codes, 48);
      sum0 = i32x4.add(sum0, plainChunk(row0, codes0, codes1, codes2, codes3));
      sum1 = i32x4.add(sum1, plainChunk(row1, codes0, codes1, codes2, codes3));
      sum2 = i32x4.add(sum2, plainChunk(row2, codes0, codes1, codes2, codes3));
      sum3 = i32x4.add(sum3, plainChunk(row3, codes0, codes1, codes2, codes3));
      row0 += 32;
      row1 += 32;
      row2 += 32;
      row3 += 32;
      codes += 64;
    }
    if (part !== WHOLE || tailBytes === 0) break;
    part = TAIL;
    row0 = tail0;
    row1 = tail1;
    row2 = tail2;
    row3 = tail3;
    end = row0 + tailBytes;
  }
  // Every lane is a multiple of 256.
  return addI32OfFour(i32x4.shr_s(sum0, 8), i32x4.shr_s(sum1, 8), i32x4.shr_s(sum2, 8), i32x4.shr_s(sum3, 8));
}
