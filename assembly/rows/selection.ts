/**
 * The rows of a segment that a search covers: its live rows, or those of them that the filter's mask selects.
 * As bits, and as a list for the kernels.
 */
import { livePtr, segmentRows } from "./rows";

/** Address of segment `s`'s words of the mask at `filterBits`, or 0 for no mask. */
export function filterOf(filterBits: usize, s: u32): usize {
  return filterBits === 0 ? 0 : filterBits + <usize>s * <usize>(segmentRows >> 3);
}

/** Word `w` of the segment's selected rows. `filter` is the result of filterOf. */
export function selected(segment: usize, filter: usize, w: u32): u32 {
  const bits = load<u32>(livePtr(segment) + ((<usize>w) << 2));
  return filter === 0 ? bits : bits & load<u32>(filter + ((<usize>w) << 2));
}

/**
 * Appends the rows of word `w` to a list of u16 that ends at `end`, which has room for 32. @returns its new
 * end.
 */
export function listRows(end: usize, w: u32, bits: u32): usize {
  const first = w << 5;
  if (bits === 0xffffffff) {
    const rows = i16x8.add(i16x8.splat(<i16>first), i16x8(0, 1, 2, 3, 4, 5, 6, 7));
    v128.store(end, rows);
    v128.store(end, i16x8.add(rows, i16x8.splat(8)), 16);
    v128.store(end, i16x8.add(rows, i16x8.splat(16)), 32);
    v128.store(end, i16x8.add(rows, i16x8.splat(24)), 48);
    return end + 64;
  }
  while (bits !== 0) {
    store<u16>(end, <u16>(first + ctz(bits)));
    bits &= bits - 1;
    end += 2;
  }
  return end;
}

/** Number of entries after a list of rows that padToStreams may overwrite. */
export const LIST_PADDING: i32 = 8;

/**
 * Repeats the last row after the end of a list of u16, LIST_PADDING times, so that it can be read as four
 * streams of equal length. Each stream has an odd number of rows, because streams that are a power of two
 * apart fall into the same few cache sets (a search then takes 4 to 6 % longer).
 *
 * @returns the size of each stream in bytes.
 */
export function padToStreams(rows: usize, count: u32): usize {
  const last = load<u16>(rows + ((<usize>count) << 1) - 2);
  v128.store(rows + ((<usize>count) << 1), i16x8.splat(<i16>last));
  return (((<usize>count + 3) >> 2) | 1) << 1;
}
