/**
 * One block of rows and all queries (cascade-many.ts): the rows are unpacked, each pair of queries goes through
 * the steps with them, and the rows that are left are scored.
 */
import {
  describeBlock,
  describeRow,
  FirstTest,
  isBelow,
  listTiles,
  rowNumber,
  rowsLeft,
  setFirstTest,
  takeSeeds,
  updateLimit,
} from "../dot/many-bounds";
import { codeVectors, dotTiles, headVectors, tileBytes, unpackRow } from "../dot/many-dots";
import { ManyQuery } from "../dot/many-query-codes";
import { beginWanted, wantFloats } from "../exact/fetched";
import { scoreRow } from "../exact/float-scan";
import { queryAt } from "../exact/query";
import { seedLimit } from "../exact/seeds";
import {
  bitAt,
  centreOf,
  codeDimension,
  groupBytes,
  SECOND_GROUP_BYTES,
  segmentPtr,
  segmentRows,
  segmentShift,
  stride,
} from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { PAUSE_SEGMENTS, Pair, pairAt, pairCount, seedSegments, seedSumsOf, tiles } from "./many-state";

/** i32 sums of a pair of queries. */
const sumsOfA = memory.data(4 * 256, 16);
const sumsOfB = memory.data(4 * 256, 16);
/** Their first tests. */
const testOfA = changetype<FirstTest>(memory.data(offsetof<FirstTest>(), 16));
const testOfB = changetype<FirstTest>(memory.data(offsetof<FirstTest>(), 16));
/** u16[64]: the tiles that it leaves to one of them, and one more that listTiles may write. */
const tileList = memory.data(2 * (64 + 1), 16);

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

/**
 * Searches a block of `rows` rows of segment `s` for every pair of queries, or takes seeds there. `first`: how many
 * selected rows of the segment precede it.
 */
export function readBlock(s: u32, first: u32, rows: u32, isSeeding: bool): void {
  // Of the first segments the sums are kept.
  const isFirst = isSeeding || s >= seedSegments;
  describeRows(segmentPtr(s), rows, isFirst, !isSeeding && isFirst && isHeadWanted());
  if (isSeeding) seedBlock(s, first, rows);
  else searchBlock(s, first, rows);
}

/** Whether a pair is about to use the head. */
function isHeadWanted(): bool {
  for (let i = 0; i < pairCount; i++) {
    if (pairAt(i).usesHead && pairAt(i).pause === 0) return true;
  }
  return false;
}

/** Unpacks the rows of a block, if wanted, and describes them to the bounds. */
function describeRows(segment: usize, rows: u32, isUnpacking: bool, needsTails: bool): void {
  countBytes(groupBytes(rows) + <u64>((rows + 3) >> 2) * <u64>SECOND_GROUP_BYTES);
  if (isUnpacking) countBytes(<u64>rows * <u64>codeDimension);
  const similarity = queryAt(0).similarity;
  for (let i: u32 = 0; i < rows; i++) {
    const row = <usize>rowNumber(i);
    const to = tiles + <usize>(i >> 2) * tileBytes() + ((<usize>i & 3) << 4);
    if (isUnpacking) unpackRow(segment, row, to);
    describeRow(i, segment, to, needsTails, similarity);
  }
  describeBlock(rows, similarity, centreOf(segment) !== 0);
}

/**
 * Computes sums and seeds of every query from the block; `first`: how many rows of the segment precede it.
 */
function seedBlock(s: u32, first: u32, rows: u32): void {
  const count = (rows + 3) >> 2;
  const firstRow = s << segmentShift;
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    const a = pair.a;
    const b = pair.b;
    if (!a.isReady && !b.isReady) continue;
    const sumsA = seedSumsOf(s, i, first);
    const sumsB = sumsA + ((<usize>segmentRows) << 2);
    dotTiles(tiles, count, 0, codeVectors(), pair.codes, sumsA, sumsB);
    setFirstTest(testOfA, a, a.isReady ? <f64>seedLimit(a.query.seeds) : 0, false);
    setFirstTest(testOfB, b, b.isReady ? <f64>seedLimit(b.query.seeds) : 0, false);
    const left = listTiles(testOfA, sumsA, testOfB, sumsB, count, false, tileList);
    for (let n: u32 = 0; n < left; n++) {
      const listed = <u32>load<u16>(tileList + ((<usize>n) << 1));
      if ((listed & 15) !== 0) takeSeeds(a, firstRow, listed >> 8, rows, sumsA);
      if ((listed & 240) !== 0) takeSeeds(b, firstRow, listed >> 8, rows, sumsB);
    }
  }
}

/** Searches the block for every pair; `first`: how many rows of the segment precede it. */
function searchBlock(s: u32, first: u32, rows: u32): void {
  const count = (rows + 3) >> 2;
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    const a = pair.a;
    const b = pair.b;
    if (!a.isReady && !b.isReady) continue;
    const hasSums = s < seedSegments;
    const isHead = !hasSums && pair.usesHead && pair.pause === 0;
    const sumsA = hasSums ? seedSumsOf(s, i, first) : sumsOfA;
    const sumsB = hasSums ? sumsA + ((<usize>segmentRows) << 2) : sumsOfB;
    if (!hasSums) dotTiles(tiles, count, 0, isHead ? headVectors() : codeVectors(), pair.codes, sumsA, sumsB);
    setFirstTest(testOfA, a, <f64>a.limit, isHead);
    setFirstTest(testOfB, b, <f64>b.limit, isHead);
    const left = listTiles(testOfA, sumsA, testOfB, sumsB, count, isHead, tileList);
    let continued: u32 = 0;
    for (let n: u32 = 0; n < left; n++) {
      const listed = <u32>load<u16>(tileList + ((<usize>n) << 1));
      const tile = listed >> 8;
      let leftToA = listed & 15;
      let leftToB = (listed >> 4) & 15;
      if (isHead) {
        if (leftToA !== 0) leftToA = rowsLeft(a, tile, leftToA, sumsA, true);
        if (leftToB !== 0) leftToB = rowsLeft(b, tile, leftToB, sumsB, true);
        if ((leftToA | leftToB) === 0) continue;
        continued++;
        const at = (<usize>tile) << 4;
        dotTiles(tiles + <usize>tile * tileBytes(), 1, headVectors(), codeVectors(), pair.codes, sumsA + at, sumsB + at);
      }
      if (leftToA !== 0) checkLeft(a, s, tile, rows, leftToA, sumsA);
      if (leftToB !== 0) checkLeft(b, s, tile, rows, leftToB, sumsB);
    }
    if (isHead) restHead(pair, continued, count);
    else if (!hasSums) pair.pause -= min(rows, pair.pause);
  }
  scorePending(s);
}

/** A head that leaves most of the tiles costs more than it saves. It is tried again later. */
function restHead(pair: Pair, left: u32, tried: u32): void {
  if (left * 2 <= tried) {
    pair.nextPause = PAUSE_SEGMENTS * segmentRows;
    return;
  }
  pair.pause = pair.nextPause;
  pair.nextPause = min<u32>(1024 * segmentRows, 2 * pair.nextPause);
}

/**
 * Adds those of the rows `possible` of a tile that the bounds leave to the pending ones, after a check with all 7 bits.
 */
function checkLeft(many: ManyQuery, s: u32, tile: u32, rows: u32, possible: u32, sums: usize): void {
  let bits = rowsLeft(many, tile, possible, sums, false);
  const segment = segmentPtr(s);
  while (bits !== 0) {
    const i = (tile << 2) + ctz(bits);
    bits &= bits - 1;
    if (i >= rows) return;
    if (s < seedSegments && bitAt(many.seedBits, (s << segmentShift) + rowNumber(i))) continue;
    // If nearly all rows that reach this point are scored anyway, their last bits are not read first.
    if (ASC_FEATURE_RELAXED_SIMD && (many.checked < 256 || 4 * many.scored <= 3 * many.checked)) {
      many.checked++;
      countBytes(codeDimension);
      if (isBelow(many, segment, i, load<i32>(sums + ((<usize>i) << 2)))) continue;
    }
    const at = pending + ((<usize>pendingCount) << 3);
    store<u32>(at, <u32>changetype<usize>(many));
    store<u32>(at, rowNumber(i), 4);
    if (++pendingCount === maxPending()) scorePending(s);
  }
}

/** Scores the pending rows. */
function scorePending(s: u32): void {
  const segment = segmentPtr(s);
  const firstRow = s << segmentShift;
  const end = pending + ((<usize>pendingCount) << 3);
  // First, because reading rows from outside may end the search with an error.
  pendingCount = 0;
  beginWanted();
  for (let at = pending; at < end; at += 8) wantFloats(segment, load<u32>(at, 4));
  for (let at = pending; at < end; at += 8) {
    const many = changetype<ManyQuery>(<usize>load<u32>(at));
    const heap = many.query.heap;
    // The first k are always scored; only the number beyond them tells how good the codes are.
    if (heap.count === heap.capacity) many.scored++;
    scoreRow(many.query, segment, load<u32>(at, 4), firstRow);
    updateLimit(many);
  }
}
