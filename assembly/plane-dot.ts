/**
 * Integer dot products of a query's codes with planes of rows, Σ Q_j (n_j − 8) for nibbles n_j in 0..15 (dot-of-four.ts): of the rows of a list, or of any four.
 *
 * The four rows at a time are each from another quarter of the list: memory is read as four streams, which is up to 1.8 times as fast as one
 * (hardware prefetchers stop at each page's end).
 */
import { dotOfFour, HEAD, setTails, TAIL, WHOLE } from "./dot-of-four";
import { Query } from "./query";
import { headBytes, highHeadPtr, highTailPtr, lowPtr, tailBytes } from "./rows";
import { padToStreams } from "./selection";

let touched: u32 = 0;

/**
 * Loads a byte of the cache lines of the high plane, or a part of it, of the rows listed (all but the last three). Where these have gaps, hardware prefetchers
 * fetch the wrong lines; independent loads wait for memory together (random directions take a tenth less time).
 */
export function touchHigh(segment: usize, rows: usize, count: u32, part: i32): void {
  if (part !== TAIL) touch(highHeadPtr(segment, 0), headBytes, rows, count);
  if (part !== HEAD) touch(highTailPtr(segment, 0), tailBytes, rows, count);
}

/** The same of the low plane. */
export function touchLow(segment: usize, rows: usize, count: u32): void {
  touch(lowPtr(segment, 0), headBytes + tailBytes, rows, count);
}

function touch(start: usize, bytes: usize, rows: usize, count: u32): void {
  const quarter = (<usize>count >> 2) << 1;
  let sum: u32 = 0;
  for (let at = rows; at < rows + quarter; at += 2) {
    const row0 = start + <usize>load<u16>(at) * bytes;
    const row1 = start + <usize>load<u16>(at + quarter) * bytes;
    const row2 = start + <usize>load<u16>(at + 2 * quarter) * bytes;
    const row3 = start + <usize>load<u16>(at + 3 * quarter) * bytes;
    for (let offset: usize = 0; offset < bytes; offset += 64) {
      sum += load<u8>(row0 + offset) + load<u8>(row1 + offset) + load<u8>(row2 + offset) + load<u8>(row3 + offset);
    }
  }
  touched = sum;
}

/**
 * Stores at sums[row], i32, Σ Q_j (n_j − 8) over the high plane, or a part of it, of each row listed.
 *
 * @param rows  u16[count], with room for three more, which are overwritten.
 */
export function highDots(query: Query, segment: usize, rows: usize, count: u32, sums: usize, part: i32): void {
  dots(query, highHeadPtr(segment, 0), headBytes, highTailPtr(segment, 0), tailBytes, rows, count, sums, part);
}

/** The same over the low plane. */
export function lowDots(query: Query, segment: usize, rows: usize, count: u32, sums: usize): void {
  const low = lowPtr(segment, 0);
  dots(query, low, headBytes + tailBytes, low + headBytes, headBytes + tailBytes, rows, count, sums, WHOLE);
}

/** Heads begin at `heads`, headStride bytes apart; so with tails. */
function dots(
  query: Query,
  heads: usize,
  headStride: usize,
  tails: usize,
  tailStride: usize,
  rows: usize,
  count: u32,
  sums: usize,
  part: i32,
): void {
  if (count === 0) return;
  const quarter = padToStreams(rows, count);
  for (let at = rows; at < rows + quarter; at += 2) {
    const row0 = <usize>load<u16>(at);
    const row1 = <usize>load<u16>(at + quarter);
    const row2 = <usize>load<u16>(at + 2 * quarter);
    const row3 = <usize>load<u16>(at + 3 * quarter);
    setTails(tails + row0 * tailStride, tails + row1 * tailStride, tails + row2 * tailStride, tails + row3 * tailStride);
    const four = dotOfFour(
      query,
      heads + row0 * headStride,
      heads + row1 * headStride,
      heads + row2 * headStride,
      heads + row3 * headStride,
      part,
    );
    v128.store32_lane(sums + (row0 << 2), four, 0);
    v128.store32_lane(sums + (row1 << 2), four, 1);
    v128.store32_lane(sums + (row2 << 2), four, 2);
    v128.store32_lane(sums + (row3 << 2), four, 3);
  }
}

/** Σ Q_j (n_j − 8) over the high planes of four rows of any segments, i32x4. */
export function highDotOfFour(
  query: Query,
  segment0: usize,
  row0: usize,
  segment1: usize,
  row1: usize,
  segment2: usize,
  row2: usize,
  segment3: usize,
  row3: usize,
): v128 {
  setTails(highTailPtr(segment0, row0), highTailPtr(segment1, row1), highTailPtr(segment2, row2), highTailPtr(segment3, row3));
  const head0 = highHeadPtr(segment0, row0);
  return dotOfFour(query, head0, highHeadPtr(segment1, row1), highHeadPtr(segment2, row2), highHeadPtr(segment3, row3), WHOLE);
}

/** The same over the low planes. */
export function lowDotOfFour(
  query: Query,
  segment0: usize,
  row0: usize,
  segment1: usize,
  row1: usize,
  segment2: usize,
  row2: usize,
  segment3: usize,
  row3: usize,
): v128 {
  const low0 = lowPtr(segment0, row0);
  const low1 = lowPtr(segment1, row1);
  const low2 = lowPtr(segment2, row2);
  const low3 = lowPtr(segment3, row3);
  setTails(low0 + headBytes, low1 + headBytes, low2 + headBytes, low3 + headBytes);
  return dotOfFour(query, low0, low1, low2, low3, WHOLE);
}
