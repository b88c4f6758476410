/**
 * Sums of maxima of bytes: a query's codes P_j and a row's c_j (see codes/codes.ts), both in 0..127. They
 * give Σ |P − c| = 2 Σ max(P, c) − Σ P − Σ c. Exact in every build. Four rows at a time, so that their loads
 * wait for memory together; each has its own query codes.
 *
 * V8 moves all loads before a branch to the front, and spills what registers cannot hold. So the loop ends in its
 * middle: two rows before the branch, two after it. With all four before it, and 64 dimensions, a search takes
 * 1.1 to 1.3 times as long at 100,000 × 768, 1.4 at 10,000 × 384.
 */
import { addI32OfFour } from "../lanes";
import { headBytes, headPtr, tailBytes, tailPtr } from "../rows/rows";

/**
 * Chunks of 32 bytes that fit 16 bits: a pair of sums of two maxima is at most 508, and 128 · 508 < 2^16.
 */
const WIDEN_BYTES: usize = 4096;
const CHUNK: usize = 32;

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
    const last = stop - CHUNK;
    let a0 = maximaOfChunk(row0, codes0);
    let a1 = maximaOfChunk(row1, codes1);
    let a2 = i16x8.splat(0);
    let a3 = a2;
    while (true) {
      a2 = i16x8.add(a2, maximaOfChunk(row2, codes2));
      a3 = i16x8.add(a3, maximaOfChunk(row3, codes3));
      row1 += CHUNK;
      row2 += CHUNK;
      row3 += CHUNK;
      codes0 += CHUNK;
      codes1 += CHUNK;
      codes2 += CHUNK;
      codes3 += CHUNK;
      if (row0 === last) break;
      row0 += CHUNK;
      a0 = i16x8.add(a0, maximaOfChunk(row0, codes0));
      a1 = i16x8.add(a1, maximaOfChunk(row1, codes1));
    }
    row0 = stop;
    sum0 = i32x4.add(sum0, i32x4.extadd_pairwise_i16x8_u(a0));
    sum1 = i32x4.add(sum1, i32x4.extadd_pairwise_i16x8_u(a1));
    sum2 = i32x4.add(sum2, i32x4.extadd_pairwise_i16x8_u(a2));
    sum3 = i32x4.add(sum3, i32x4.extadd_pairwise_i16x8_u(a3));
  }
}

/** 32 dimensions, i16x8. */
function maximaOfChunk(row: usize, codes: usize): v128 {
  return i16x8.extadd_pairwise_i8x16_u(
    i8x16.add(i8x16.max_u(v128.load(codes), v128.load(row)), i8x16.max_u(v128.load(codes, 16), v128.load(row, 16))),
  );
}
