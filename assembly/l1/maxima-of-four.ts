/**
 * Sums of maxima of bytes: a query's codes P_j and a row's c_j (see codes/codes.ts), both in 0..127. They
 * give Σ |P − c| = 2 Σ max(P, c) − Σ P − Σ c. Exact in every build. Four rows at a time, so that their loads
 * wait for memory together; each has its own query codes.
 */
import { addI32OfFour } from "../lanes";
import { headBytes, headPtr, tailBytes, tailPtr } from "../rows/rows";

/**
 * 64-byte chunks that fit 16 bits: a pair of sums of two maxima is at most 508, two of them 1016, and 64 ·
 * 1016 < 2^16.
 */
const WIDEN_BYTES: usize = 4096;

// The sums of the current rows, i32x4 each.
let sum0: v128 = i32x4.splat(0);
let sum1: v128 = i32x4.splat(0);
let sum2: v128 = i32x4.splat(0);
let sum3: v128 = i32x4.splat(0);

/** Σ max(P_j, c_j) of four rows, or their heads, i32x4. */
export function maximaOfFour(
  segment: usize,
  row0: usize,
  row1: usize,
  row2: usize,
  row3: usize,
  codes0: usize,
  codes1: usize,
  codes2: usize,
  codes3: usize,
  isHead: bool,
): v128 {
  sum0 = i32x4.splat(0);
  sum1 = i32x4.splat(0);
  sum2 = i32x4.splat(0);
  sum3 = i32x4.splat(0);
  const heads = headPtr(segment, 0);
  addMaxima(
    heads + row0 * headBytes,
    heads + row1 * headBytes,
    heads + row2 * headBytes,
    heads + row3 * headBytes,
    codes0,
    codes1,
    codes2,
    codes3,
    headBytes,
  );
  if (!isHead && tailBytes > 0) {
    const tails = tailPtr(segment, 0);
    addMaxima(
      tails + row0 * tailBytes,
      tails + row1 * tailBytes,
      tails + row2 * tailBytes,
      tails + row3 * tailBytes,
      codes0 + headBytes,
      codes1 + headBytes,
      codes2 + headBytes,
      codes3 + headBytes,
      tailBytes,
    );
  }
  return addI32OfFour(sum0, sum1, sum2, sum3);
}

function addMaxima(
  row0: usize,
  row1: usize,
  row2: usize,
  row3: usize,
  codes0: usize,
  codes1: usize,
  codes2: usize,
  codes3: usize,
  bytes: usize,
): void {
  const end = row0 + bytes;
  while (row0 < end) {
    const stop = min(end, row0 + WIDEN_BYTES);
    let a0 = i16x8.splat(0);
    let a1 = i16x8.splat(0);
    let a2 = i16x8.splat(0);
    let a3 = i16x8.splat(0);
    while (row0 < stop) {
      a0 = i16x8.add(a0, maximaOfChunk(row0, codes0));
      a1 = i16x8.add(a1, maximaOfChunk(row1, codes1));
      a2 = i16x8.add(a2, maximaOfChunk(row2, codes2));
      a3 = i16x8.add(a3, maximaOfChunk(row3, codes3));
      row0 += 64;
      row1 += 64;
      row2 += 64;
      row3 += 64;
      codes0 += 64;
      codes1 += 64;
      codes2 += 64;
      codes3 += 64;
    }
    sum0 = i32x4.add(sum0, i32x4.extadd_pairwise_i16x8_u(a0));
    sum1 = i32x4.add(sum1, i32x4.extadd_pairwise_i16x8_u(a1));
    sum2 = i32x4.add(sum2, i32x4.extadd_pairwise_i16x8_u(a2));
    sum3 = i32x4.add(sum3, i32x4.extadd_pairwise_i16x8_u(a3));
  }
}

/** 64 dimensions, i16x8. */
function maximaOfChunk(row: usize, codes: usize): v128 {
  const first = i8x16.add(i8x16.max_u(v128.load(codes), v128.load(row)), i8x16.max_u(v128.load(codes, 16), v128.load(row, 16)));
  const second = i8x16.add(i8x16.max_u(v128.load(codes, 32), v128.load(row, 32)), i8x16.max_u(v128.load(codes, 48), v128.load(row, 48)));
  return i16x8.add(i16x8.extadd_pairwise_i8x16_u(first), i16x8.extadd_pairwise_i8x16_u(second));
}
