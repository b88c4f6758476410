/**
 * The sums of dots-of-list.ts for a run of adjacent rows with short codes, in relaxed SIMD: heads and tails of 64
 * bytes at most. One window of 64 dimensions after the other, each over a block of rows, so that everything stays
 * in registers: five for the query's codes, eight for two rows. V8 moves all loads of a loop's body to its front,
 * so with four rows it spills. A search takes 0.73 of the time of the list's kernel at 10,000 × 128 and 0.85 at
 * 100,000 × 128 (cosine, random directions, two instances of each in turns in one process). Codes of 192
 * dimensions gain a fifth in the cache and nothing beyond it, where four streams arrive sooner than one.
 */
import { Query } from "../exact/query";
import { addI32OfTwo } from "../lanes";
import { codeDimension, headBytes, headPtr, tailBytes, tailPtr } from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { HEAD, relaxedWindow, TAIL } from "./dot-of-four";

const WINDOW: i32 = 64;
/** Rows of a block. Without blocks, heads first and then tails, a search takes 1.3 times as long at 100,000 × 128. */
const BLOCK: usize = 64;

/** Whether codes are short enough for dotsOfRun. */
export function areCodesShort(): bool {
  return codeDimension <= 2 * WINDOW;
}

/**
 * Stores at sums[row], i32, Σ Q_j (c_j − 64) over the codes, or a part of them, of rows first..first+rows−1 of a
 * segment. Rows are read in pairs, so it may store that of one more row at either end.
 */
export function dotsOfRun(query: Query, segment: usize, first: usize, rows: usize, sums: usize, part: i32): void {
  const end = (first + rows + 1) & ~1;
  const codes = query.dotCodes;
  const starts = codes + <usize>codeDimension;
  for (let row = first & ~1; row < end; row += BLOCK) {
    const count = min(BLOCK, end - row);
    const to = sums + (row << 2);
    memory.fill(to, 0, count << 2);
    if (part !== TAIL) addWindow(headPtr(segment, row), codes, starts, to, count);
    if (part !== HEAD && tailBytes > 0) addWindow(tailPtr(segment, row), codes + headBytes, starts + (headBytes >> 2), to, count);
  }
}

/** Adds to the sums of `rows` rows, an even number, the products of one window. */
function addWindow(row: usize, codes: usize, start: usize, sums: usize, rows: usize): void {
  countBytes(<u64>rows * WINDOW);
  const codes0 = v128.load(codes);
  const codes1 = v128.load(codes, 16);
  const codes2 = v128.load(codes, 32);
  const codes3 = v128.load(codes, 48);
  const starts = v128.load(start);
  for (const end = sums + (rows << 2); sums < end; sums += 8, row += 2 * WINDOW) {
    const a = relaxedWindow(row, starts, codes0, codes1, codes2, codes3);
    const b = relaxedWindow(row + WINDOW, starts, codes0, codes1, codes2, codes3);
    v128.store64_lane(sums, i32x4.add(addI32OfTwo(a, b), v128.load64_zero(sums)), 0);
  }
}
