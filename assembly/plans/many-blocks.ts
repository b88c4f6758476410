/**
 * One block of rows and all queries (cascade-many.ts): the rows are unpacked, each pair of queries goes through
 * the steps with them, and the rows that are left are scored.
 */
import {
  describeBlock,
  describeRow,
  isBelow,
  markLeft,
  markPossible,
  nextLeft,
  rowNumber,
  takeSeeds,
  updateLimit,
} from "../dot/many-bounds";
import { codeVectors, dotTiles, headVectors, tileBytes, unpackRow } from "../dot/many-dots";
import { ManyQuery } from "../dot/many-query-codes";
import { scoreRow, touchFloats } from "../exact/float-scan";
import { queryAt } from "../exact/query";
import { COSINE } from "../exact/similarity";
import { codeDimension, groupBytes, SECOND_GROUP_BYTES, segmentPtr, segmentRows, segmentShift, stride } from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { pairAt, pairCount, seedSegments, seedSumsOf, tiles } from "./many-state";

/** i32 sums of a pair of queries. */
const sumsOfA = memory.data(4 * 256, 16);
const sumsOfB = memory.data(4 * 256, 16);
/** u8 per four rows: those that the bounds leave. */
const leftOfA = memory.data(64, 16);
const leftOfB = memory.data(64, 16);

/**
 * Rows to be scored, in the current segment: | ManyQuery u32 | row u32 |. They are limited so that they fit
 * the second-level cache beside the rest.
 */
const pending = memory.data(8 * 64, 16);
const PENDING_BYTES: u32 = 131072;
let pendingCount: u32 = 0;

function maxPending(): u32 {
  return max<u32>(1, min<u32>(64, PENDING_BYTES / ((<u32>stride) << 2)));
}

/** Unpacks the rows of a block. */
export function unpackBlock(segment: usize, rows: u32, needsTails: bool): void {
  countBytes(groupBytes(rows) + <u64>((rows + 3) >> 2) * <u64>SECOND_GROUP_BYTES + <u64>rows * <u64>codeDimension);
  for (let i: u32 = 0; i < rows; i++) {
    const row = <usize>rowNumber(i);
    const to = tiles + <usize>(i >> 2) * tileBytes() + ((<usize>i & 3) << 4);
    unpackRow(segment, row, to);
    describeRow(i, segment, to, needsTails);
  }
  describeBlock(rows, queryAt(0).similarity === COSINE);
}

/**
 * Computes sums and seeds of every query from the block; `first`: how many rows of the segment precede it.
 */
export function seedBlock(s: u32, first: u32, rows: u32): void {
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    if (!pair.a.isReady && !pair.b.isReady) continue;
    const sums = seedSumsOf(s, i, first);
    const sumsB = sums + ((<usize>segmentRows) << 2);
    dotTiles(tiles, (rows + 3) >> 2, 0, codeVectors(), pair.codes, sums, sumsB);
    takeSeeds(pair.a, s << segmentShift, rows, sums);
    takeSeeds(pair.b, s << segmentShift, rows, sumsB);
  }
}

/** Searches the block for every pair; `first`: how many rows of the segment precede it. */
export function searchBlock(s: u32, first: u32, rows: u32): void {
  const groups = (rows + 3) >> 2;
  const lastGroup: u32 = (rows & 3) === 0 ? 15 : ((<u32>1) << (rows & 3)) - 1;
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    const a = pair.a;
    const b = pair.b;
    if (!a.isReady && !b.isReady) continue;
    let sumsA = sumsOfA;
    let sumsB = sumsOfB;
    if (s >= seedSegments && pair.usesHead && pair.pause === 0) {
      dotTiles(tiles, groups, 0, headVectors(), pair.codes, sumsOfA, sumsOfB);
      markPossible(a, groups, sumsOfA, leftOfA, true);
      markPossible(b, groups, sumsOfB, leftOfB, true);
      markLeft(a, 0, groups, lastGroup, sumsOfA, leftOfA, true);
      markLeft(b, 0, groups, lastGroup, sumsOfB, leftOfB, true);
      pair.triedTiles += groups;
      for (let group: u32 = 0; group < groups; group++) {
        if ((load<u8>(leftOfA + group) | load<u8>(leftOfB + group)) === 0) continue;
        pair.leftTiles++;
        const at = (<usize>group) << 4;
        dotTiles(tiles + <usize>group * tileBytes(), 1, headVectors(), codeVectors(), pair.codes, sumsOfA + at, sumsOfB + at);
        const last: u32 = group === groups - 1 ? lastGroup : 15;
        markLeft(a, group, group + 1, last, sumsOfA, leftOfA, false);
        markLeft(b, group, group + 1, last, sumsOfB, leftOfB, false);
      }
    } else {
      if (s < seedSegments) {
        sumsA = seedSumsOf(s, i, first);
        sumsB = sumsA + ((<usize>segmentRows) << 2);
      } else {
        dotTiles(tiles, groups, 0, codeVectors(), pair.codes, sumsA, sumsB);
      }
      markPossible(a, groups, sumsA, leftOfA, false);
      markPossible(b, groups, sumsB, leftOfB, false);
      markLeft(a, 0, groups, lastGroup, sumsA, leftOfA, false);
      markLeft(b, 0, groups, lastGroup, sumsB, leftOfB, false);
    }
    checkLeft(a, s, groups, sumsA, leftOfA);
    checkLeft(b, s, groups, sumsB, leftOfB);
  }
  scorePending(s);
}

/** Adds the rows that are left to the pending ones, after a check with all 7 bits. */
function checkLeft(many: ManyQuery, s: u32, groups: u32, sums: usize, left: usize): void {
  if (!many.isReady) return;
  const segment = segmentPtr(s);
  for (let group = nextLeft(left, 0, groups); group < groups; group = nextLeft(left, group + 1, groups)) {
    let bits = <u32>load<u8>(left + group);
    while (bits !== 0) {
      const i = <usize>((group << 2) + ctz(bits));
      bits &= bits - 1;
      // If nearly all rows that reach this point are scored anyway, their last bits are not read first.
      if (ASC_FEATURE_RELAXED_SIMD && (many.checked < 256 || 4 * many.scored <= 3 * many.checked)) {
        many.checked++;
        countBytes(codeDimension);
        if (isBelow(many, segment, i, load<i32>(sums + (i << 2)))) continue;
      }
      const at = pending + ((<usize>pendingCount) << 3);
      store<u32>(at, <u32>changetype<usize>(many));
      store<u32>(at, rowNumber(i), 4);
      if (++pendingCount === maxPending()) scorePending(s);
    }
  }
}

/** Scores the pending rows. All of them are loaded first: independent loads wait for memory together. */
function scorePending(s: u32): void {
  const segment = segmentPtr(s);
  const firstRow = s << segmentShift;
  const end = pending + ((<usize>pendingCount) << 3);
  for (let at = pending; at < end; at += 8) touchFloats(segment, load<u32>(at, 4));
  for (let at = pending; at < end; at += 8) {
    const many = changetype<ManyQuery>(<usize>load<u32>(at));
    const heap = many.query.heap;
    // The first k are always scored; only the number beyond them tells how good the codes are.
    if (heap.count === heap.capacity) many.scored++;
    scoreRow(many.query, segment, load<u32>(at, 4), firstRow);
    updateLimit(many);
  }
  pendingCount = 0;
}
