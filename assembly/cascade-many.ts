/**
 * The cascade for many queries at once, COSINE and L2: a block of rows is unpacked once, then all queries go over it while it stays in the first-level
 * cache (plane-dot-many.ts). A row and a query go through these steps until one of them shows that the row scores below the query's k-th best:
 *
 *   1. the prefix, a quarter to a third of the dimensions, the rest bounded by norms; left out while it rules out too few
 *   2. all dimensions: 6 bits (relaxed SIMD), 8 bits (plain SIMD)
 *   3. relaxed SIMD: the other 2 bits
 *   4. the exact score
 *
 * Bounds, in the terms of dot-bounds.ts. With c6 = c >> 2 and t = c & 3, ŷ6 = (c6 − 33.625) Δ/4 lies in the middle of the four codes, so
 *   ŷ8 − ŷ6 = (t − 1.5) Δ/16 elementwise,   ‖y − ŷ6‖ ≤ ‖y − ŷ8‖ + (Δ/16) √(2.25 n − 2 · #(t = 1 or 2)), n = dimension (p̂ is 0 on the padding)
 *   p̂·ŷ6 = unit · Δ/32 · (8 Σ Q (c6 − 32) − 13 Σ Q),   p̂·ŷ8 = unit · Δ/16 · (4 Σ Q (c6 − 32) − 8 Σ Q + Σ Q t): exact integers below 2^31
 * Prefix: with h for its dimensions and t for the others, p·y ≤ p̂_h·ŷ_h + ‖p̂‖ r + ρ‖y‖ + ‖p_t‖ ‖y_t‖, ‖y_t‖ ≤ ‖ŷ_t‖ + r.
 *
 * Float32 roundings: as there, within 2^-20 of the terms' magnitudes, of which there are seven, each the product of at most four rounded factors;
 * SLACK = 2^-18 of them is four times that, which leaves room for ‖p‖ (relative 2^-21) and the stored norms (2^-21). COSINE is not divided by ‖x‖:
 * −limit ‖x‖ is compared, with the limit enlarged by 2^-20 of itself for the roundings of ‖x‖ and the product.
 */
import { costLimit } from "./bounds";
import { encodeSegment, FULL_L2 } from "./codes";
import { exactScore, scanFloats } from "./float-scan";
import { codeVectors, dotLowBits, dotTiles, prefixVectors, tailSquares, tileBytes, unpackRow } from "./plane-dot-many";
import { Query, queryAt, reserveMany } from "./query";
import { centreOf } from "./query-codes";
import { ManyQuery, manyCodeBytes, prepareManyCodes } from "./query-codes-many";
import {
  codeDimension,
  dimension,
  highPtr,
  lossesPtr,
  lowPtr,
  normsPtr,
  residualNormsPtr,
  segmentPtr,
  segmentRows,
  segmentShift,
  shiftsPtr,
  stepsPtr,
} from "./rows";
import { filterOf, selected } from "./selection";
import { COSINE } from "./similarity";
import { offer } from "./top-k";

/** From so many queries on, unpacking pays. */
export const MANY_QUERIES: i32 = 6;
/** Unpacked rows of a block: what leaves room in 32 KiB for the codes of a pair of queries. */
const BLOCK_BYTES: usize = 24576;
const MAX_BLOCK_ROWS: u32 = 256;
/** With fewer selected rows in a segment of its own centre, coding the queries costs more than reading the rows. */
const MIN_CENTRED_ROWS: u32 = 8;
const SLACK: f64 = 3.814697265625e-6; // 2^-18

// Of the block in hand, one entry a row: its number in the segment, and what the bounds need, f32.
const rowNumbers = memory.data(2 * 256, 16);
const steps = memory.data(4 * 256, 16);
const losses = memory.data(4 * 256, 16);
const norms = memory.data(4 * 256, 16);
const shifts = memory.data(4 * 256, 16);
const rowNorms = memory.data(4 * 256, 16);
const tailNorms = memory.data(4 * 256, 16);
/** i32 sums of a pair of queries. */
const sumsOfA = memory.data(4 * 256, 16);
const sumsOfB = memory.data(4 * 256, 16);
/** u8 for four rows each: those that the bounds leave. */
const leftOfA = memory.data(64, 16);
const leftOfB = memory.data(64, 16);

// What was done since beginMany, for measurements.
export let manyFullRows: u64 = 0;
export let manyExactRows: u64 = 0;

let states: usize = 0;
let codes: usize = 0;
let residuals: usize = 0;
let tiles: usize = 0;
let blockRows: u32 = 0;
let isCosine: bool = true;

/** Bytes of a pair's state: whether it uses the prefix, for how many segments it will not, and its next pause. */
@unmanaged
class Pair {
  a: ManyQuery;
  b: ManyQuery;
  codes: usize;
  usesPrefix: bool;
  pause: u32;
  nextPause: u32;
  triedTiles: u32;
  leftTiles: u32;
}
let pairs: usize = 0;
let pairCount: i32 = 0;

function pairAt(i: i32): Pair {
  return changetype<Pair>(pairs + <usize>i * offsetof<Pair>());
}

function manyAt(i: i32): ManyQuery {
  return changetype<ManyQuery>(states + <usize>i * offsetof<ManyQuery>());
}

/** Readies queries 0..count−1. @returns false at the memory limit. */
export function beginMany(count: i32, similarity: i32): bool {
  manyFullRows = 0;
  manyExactRows = 0;
  isCosine = similarity === COSINE;
  pairCount = (count + 1) >> 1;
  blockRows = min(MAX_BLOCK_ROWS, max<u32>(4, <u32>((BLOCK_BYTES << 2) / tileBytes()) & ~3));
  const stateBytes = (<usize>pairCount * 2 * offsetof<ManyQuery>() + 63) & ~63;
  const codeBytes = (<usize>pairCount * manyCodeBytes() + 63) & ~63;
  const residualBytes = (<usize>codeDimension) << 2;
  const pairBytes = (<usize>pairCount * offsetof<Pair>() + 63) & ~63;
  states = reserveMany(<u64>stateBytes + codeBytes + residualBytes + pairBytes + <usize>(blockRows >> 2) * tileBytes());
  if (states === 0) return false;
  codes = states + stateBytes;
  residuals = codes + codeBytes;
  pairs = residuals + residualBytes;
  tiles = pairs + pairBytes;
  memory.fill(states, 0, stateBytes + codeBytes);
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    pair.a = manyAt(2 * i);
    pair.b = manyAt(2 * i + 1);
    pair.codes = codes + <usize>i * manyCodeBytes();
    pair.usesPrefix = prefixVectors() < codeVectors();
    pair.pause = 0;
    pair.nextPause = 4;
    pair.a.codes = pair.codes;
    pair.b.codes = pair.codes + 16;
  }
  for (let i = 0; i < count; i++) {
    manyAt(i).query = queryAt(i);
    manyAt(i).centre = 1;
  }
  return true;
}

/**
 * Searches segments start..end−1 for queries 0..count−1. Where more than half of a query's rows came down to float32, the codes are not worth
 * reading: its next segments are scanned as floats, as in cascade.ts.
 */
export function searchMany(count: i32, similarity: i32, start: u32, end: u32, filterBits: usize): void {
  for (let i = 0; i < count; i++) {
    const many = manyAt(i);
    many.isActive = start >= many.query.floatsUntilSegment;
    many.checked = 0;
    many.scored = 0;
  }
  let rows: u32 = 0;
  for (let s = start; s < end; s++) {
    const filter = filterOf(filterBits, s);
    encodeSegment(segmentPtr(s));
    for (let i = 0; i < count; i++) if (!manyAt(i).isActive) scanFloats(manyAt(i).query, similarity, s, filter);
    rows += searchSegment(similarity, s, filter);
  }
  for (let i = 0; i < count; i++) {
    const many = manyAt(i);
    manyFullRows += many.checked;
    manyExactRows += many.scored;
    const query = many.query;
    if (!many.isActive) continue;
    if (many.scored * 2 <= rows) {
      query.backoff = 0;
    } else {
      query.backoff = max<u32>(4 * (end - start), 2 * query.backoff);
      query.floatsUntilSegment = end + query.backoff;
    }
  }
}

/** Searches segment `s` for the queries that are active. @returns how many rows are selected there. */
function searchSegment(similarity: i32, s: u32, filter: usize): u32 {
  const segment = segmentPtr(s);
  const centre = centreOf(segment);
  let count: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) count += popcnt(selected(segment, filter, w));
  if (count === 0) return 0;
  const isRead = centre === 0 || count >= MIN_CENTRED_ROWS;
  let needsTails = false;
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    readyQuery(pair.a, similarity, s, filter, centre, isRead);
    readyQuery(pair.b, similarity, s, filter, centre, isRead);
    pair.triedTiles = 0;
    pair.leftTiles = 0;
    if (pair.pause > 0) pair.pause--;
    else if (pair.usesPrefix) needsTails = true;
  }
  if (!isRead) return count;
  let rows: u32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = selected(segment, filter, w);
    while (bits !== 0) {
      store<u16>(rowNumbers + ((<usize>rows) << 1), <u16>((w << 5) + ctz(bits)));
      bits &= bits - 1;
      if (++rows === blockRows) {
        searchBlock(similarity, s, rows, needsTails);
        rows = 0;
      }
    }
  }
  if (rows > 0) searchBlock(similarity, s, rows, needsTails);
  for (let i = 0; i < pairCount; i++) restPrefix(pairAt(i));
  return count;
}

/** Makes the query's codes for the segment's centre; without codes it is scanned as floats. */
function readyQuery(many: ManyQuery, similarity: i32, s: u32, filter: usize, centre: usize, isRead: bool): void {
  many.isReady = false;
  if (!many.isActive) return;
  if (isRead) {
    prepareManyCodes(many, centre, residuals);
    if (many.isCodable) {
      many.isReady = true;
      return;
    }
  }
  scanFloats(many.query, similarity, s, filter);
}

/** A prefix that leaves most of the tiles costs more than it saves: it is tried again later. */
function restPrefix(pair: Pair): void {
  if (pair.triedTiles === 0) return;
  if (pair.leftTiles * 2 <= pair.triedTiles) {
    pair.nextPause = 4;
    return;
  }
  pair.pause = pair.nextPause;
  pair.nextPause = min<u32>(1024, 2 * pair.nextPause);
}

/** Unpacks the rows listed in rowNumbers and searches them for every pair. */
function searchBlock(similarity: i32, s: u32, rows: u32, needsTails: bool): void {
  const segment = segmentPtr(s);
  const planeBytes = <usize>codeDimension >> 1;
  const high = highPtr(segment);
  const low = lowPtr(segment);
  const fullLosses = lossesPtr(segment, FULL_L2);
  for (let i: u32 = 0; i < rows; i++) {
    const row = <usize>load<u16>(rowNumbers + ((<usize>i) << 1));
    const to = tiles + <usize>(i >> 2) * tileBytes() + ((<usize>i & 3) << 4);
    const inner = unpackRow(high + row * planeBytes, low + row * planeBytes, to);
    const at = (<usize>i) << 2;
    const step = load<f32>(stepsPtr(segment) + (row << 2));
    let loss = <f64>reinterpret<f32>((<u32>load<u16>(fullLosses + (row << 1))) << 16);
    if (ASC_FEATURE_RELAXED_SIMD) loss += <f64>step * 0.0625 * Math.sqrt(2.25 * <f64>dimension - 2 * <f64>inner) * (1 + 1e-9);
    if (needsTails) {
      const unit = <f64>step * (ASC_FEATURE_RELAXED_SIMD ? 0.03125 : 0.0625);
      store<f32>(tailNorms + at, <f32>((unit * Math.sqrt(tailSquares(to)) + loss) * (1 + 1e-6)));
    }
    store<f32>(steps + at, step);
    store<f32>(losses + at, <f32>(loss * (1 + 2.384185791015625e-7)));
    store<f32>(norms + at, load<f32>(residualNormsPtr(segment) + (row << 2)));
    store<f32>(shifts + at, load<f32>(shiftsPtr(segment) + (row << 2)));
    store<f32>(rowNorms + at, load<f32>(normsPtr(segment) + (row << 2)));
  }
  const groups = (rows + 3) >> 2;
  const lastGroup: u32 = (rows & 3) === 0 ? 15 : ((<u32>1) << (rows & 3)) - 1;
  for (let i = 0; i < pairCount; i++) {
    const pair = pairAt(i);
    const a = pair.a;
    const b = pair.b;
    if (!a.isReady && !b.isReady) continue;
    if (pair.usesPrefix && pair.pause === 0) {
      dotTiles(tiles, groups, 0, prefixVectors(), pair.codes, sumsOfA, sumsOfB);
      markLeft(a, similarity, 0, groups, lastGroup, sumsOfA, leftOfA, true);
      markLeft(b, similarity, 0, groups, lastGroup, sumsOfB, leftOfB, true);
      pair.triedTiles += groups;
      for (let group: u32 = 0; group < groups; group++) {
        if ((load<u8>(leftOfA + group) | load<u8>(leftOfB + group)) === 0) continue;
        pair.leftTiles++;
        const at = (<usize>group) << 4;
        dotTiles(tiles + <usize>group * tileBytes(), 1, prefixVectors(), codeVectors(), pair.codes, sumsOfA + at, sumsOfB + at);
        const last: u32 = group === groups - 1 ? lastGroup : 15;
        markLeft(a, similarity, group, group + 1, last, sumsOfA, leftOfA, false);
        markLeft(b, similarity, group, group + 1, last, sumsOfB, leftOfB, false);
      }
    } else {
      dotTiles(tiles, groups, 0, codeVectors(), pair.codes, sumsOfA, sumsOfB);
      markLeft(a, similarity, 0, groups, lastGroup, sumsOfA, leftOfA, false);
      markLeft(b, similarity, 0, groups, lastGroup, sumsOfB, leftOfB, false);
    }
    scoreLeft(a, similarity, s, groups, sumsOfA, leftOfA);
    scoreLeft(b, similarity, s, groups, sumsOfB, leftOfB);
  }
}

/** The limit for this file's comparisons; infinite while the heap is not full. */
function manyLimit(similarity: i32, query: Query): f32 {
  const limit = <f64>costLimit(similarity, query.heap.threshold, query);
  return <f32>(limit + Math.abs(limit) * 9.5367431640625e-7);
}

/**
 * Stores at left[group] which of four rows the bounds leave, for groups from..to−1; `last` masks the last of them.
 * `isPrefix`: the sums are those of the prefix.
 */
function markLeft(many: ManyQuery, similarity: i32, from: u32, to: u32, last: u32, sums: usize, left: usize, isPrefix: bool): void {
  if (!many.isReady) {
    memory.fill(left + from, 0, to - from);
    return;
  }
  const query = many.query;
  const codedNorm = many.norm + many.codeLoss;
  const unit = f32x4.splat(<f32>(many.unit * (ASC_FEATURE_RELAXED_SIMD ? 0.03125 : 0.0625)));
  let codeSum = many.codeSum;
  if (isPrefix) codeSum = many.prefixSum;
  const offset = i32x4.splat(13 * codeSum);
  const lossFactor = f32x4.splat(<f32>(codedNorm * (1 + SLACK)));
  const normFactor = f32x4.splat(<f32>(many.codeLoss * (1 + SLACK) + SLACK * (codedNorm + many.centreNorm)));
  const tailFactor = f32x4.splat(isPrefix ? <f32>(many.tailNorm * (1 + SLACK)) : 0);
  const limit = f32x4.splat(manyLimit(similarity, query));
  const constant = f32x4.splat(
    isCosine
      ? <f32>(many.shift + SLACK * Math.abs(many.shift) + 1e-11 * Math.sqrt(query.squares) * many.centreNorm)
      : <f32>(many.norm * many.norm * (1 - SLACK)),
  );
  const squareFactor = f32x4.splat(<f32>(1 - SLACK));
  for (let group = from; group < to; group++) {
    const at = (<usize>group) << 4;
    let sum = v128.load(sums + at);
    if (ASC_FEATURE_RELAXED_SIMD) sum = i32x4.sub(i32x4.shl(sum, 3), offset);
    const norm = v128.load(norms + at);
    let upper = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sum), unit), v128.load(steps + at));
    upper = f32x4.add(upper, f32x4.mul(v128.load(losses + at), lossFactor));
    upper = f32x4.add(upper, f32x4.mul(norm, normFactor));
    if (isPrefix) upper = f32x4.add(upper, f32x4.mul(v128.load(tailNorms + at), tailFactor));
    let skipped: v128;
    if (isCosine) {
      upper = f32x4.add(f32x4.add(upper, v128.load(shifts + at)), constant);
      skipped = f32x4.lt(upper, f32x4.neg(f32x4.mul(v128.load(rowNorms + at), limit)));
    } else {
      const squares = f32x4.add(f32x4.mul(f32x4.mul(norm, norm), squareFactor), constant);
      skipped = f32x4.gt(f32x4.sub(squares, f32x4.add(upper, upper)), limit);
    }
    store<u8>(left + group, <u8>(~i32x4.bitmask(skipped) & 15));
  }
  store<u8>(left + to - 1, <u8>(<u32>load<u8>(left + to - 1) & last));
}

/** Scores the rows that are left, after a look at all 8 bits. */
function scoreLeft(many: ManyQuery, similarity: i32, s: u32, groups: u32, sums: usize, left: usize): void {
  if (!many.isReady) return;
  const segment = segmentPtr(s);
  const firstRow = s << segmentShift;
  const heap = many.query.heap;
  for (let group: u32 = 0; group < groups; group++) {
    let bits = <u32>load<u8>(left + group);
    while (bits !== 0) {
      const i = <usize>((group << 2) + ctz(bits));
      bits &= bits - 1;
      const row = <u32>load<u16>(rowNumbers + (i << 1));
      // When nearly all that get here are scored anyway, the other bits are not read first.
      if (ASC_FEATURE_RELAXED_SIMD && (many.checked < 256 || 4 * many.scored <= 3 * many.checked)) {
        many.checked++;
        if (isBelow(many, similarity, segment, row, i, load<i32>(sums + (i << 2)))) continue;
      }
      // The first k are always scored; only what comes on top tells of the codes.
      if (heap.count === heap.capacity) many.scored++;
      offer(heap, exactScore(many.query, similarity, segment, row), firstRow + row);
    }
  }
}

/** Relaxed SIMD: whether all 8 bits rule out a row, number `i` of the block. `sum` is its Σ Q (c6 − 32). */
function isBelow(many: ManyQuery, similarity: i32, segment: usize, row: u32, i: usize, sum: i32): bool {
  const low = lowPtr(segment) + <usize>row * (<usize>codeDimension >> 1);
  const full = 4 * sum - 8 * many.codeSum + dotLowBits(many.codes, low);
  const loss = <f64>reinterpret<f32>((<u32>load<u16>(lossesPtr(segment, FULL_L2) + ((<usize>row) << 1))) << 16);
  const codedNorm = many.norm + many.codeLoss;
  const norm = <f64>load<f32>(norms + (i << 2));
  const upper =
    <f64>full * many.unit * <f64>load<f32>(steps + (i << 2)) * 0.0625 +
    codedNorm * loss * (1 + SLACK) +
    norm * (many.codeLoss * (1 + SLACK) + SLACK * (codedNorm + many.centreNorm));
  const limit = <f64>manyLimit(similarity, many.query);
  if (isCosine) {
    const shift = <f64>load<f32>(shifts + (i << 2));
    const constant = many.shift + SLACK * Math.abs(many.shift) + 1e-11 * Math.sqrt(many.query.squares) * many.centreNorm;
    return upper + shift + constant < -limit * <f64>load<f32>(rowNorms + (i << 2));
  }
  return norm * norm * (1 - SLACK) + many.norm * many.norm * (1 - SLACK) - 2 * upper > limit;
}
