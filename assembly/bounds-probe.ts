/**
 * Exposes each bound of the core by itself to test/core/bounds.test.ts, for rows of segment 0. That test
 * compiles it; no shipped build contains it.
 *
 * Order of calls: initialize, reserve, set…; encode; for sketches the basis and takeBasis; reserveQueries, the
 * queries at queryPtr(i); prepare for one similarity, then any of the others for that.
 */

import { encodeSegment } from "./codes/codes";
import { codeDotBounds, codeDotBoundsOf32, headDotBounds } from "./dot/bounds";
import { HEAD, WHOLE } from "./dot/dot-of-four";
import { codeDots } from "./dot/dots-of-list";
import { areCodesShort, dotsOfRun } from "./dot/dots-of-run";
import {
  clearShared,
  describeBlock,
  describeRow,
  FirstTest,
  isBelow,
  listTiles,
  rowsLeft,
  setFirstTest,
  setRowNumber,
  shareQuery,
  updateLimit,
} from "./dot/many-bounds";
import { codeVectors, dotTiles, headVectors, tileBytes, unpackRow } from "./dot/many-dots";
import { ManyQuery, manyCodeBytes, manyQueryBytes, prepareManyCodes } from "./dot/many-query-codes";
import { NO_CENTRE } from "./exact/coded-query";
import { costLimit } from "./exact/cost-limit";
import { rowFloats } from "./exact/fetched";
import { exactScore, floatLimit, isRuledOut } from "./exact/float-scan";
import { prepareQuery, queryAt, reserveMany } from "./exact/query";
import { L1 } from "./exact/similarity";
import { l1Bounds } from "./l1/bounds";
import { clearSlots } from "./l1/slots";
import { prepareCodes } from "./plans/cascade";
import { allocate } from "./rows/memory";
import { centreOf, codeDimension, segmentPtr } from "./rows/rows";
import { LIST_PADDING } from "./rows/selection";
import { epsilonOf, pitch, setBasis, sketchDimension, skewOf, storePanels } from "./sketch/basis";
import { sketchBoundsOf32 } from "./sketch/bounds";
import { reserveQuerySketches, sketchDots, sketchOf, sketchQuery } from "./sketch/query-sketch";
import { reserveSketching, sketchSegment } from "./sketch/sketches";

export { initialize, queryPtr, reserve, reserveQueries, set, stagingPtr } from "./index";

const rowList = memory.data(2 * (4 + LIST_PADDING), 16);
const rowBits = memory.data(256, 16);
const sums = memory.data(4 * 2048, 16);
const runSums = memory.data(4 * 2048, 16);
const bounds = memory.data(4 * 2048, 16);

export function encode(): void {
  encodeSegment(segmentPtr(0));
}

/** Prepares `count` queries for bounds of one similarity, and their sketches if there is a basis. */
export function prepare(count: i32, similarity: i32): void {
  for (let i = 0; i < count; i++) clearSlots(prepareQuery(i, similarity));
  if (sketchDimension === 0 || !reserveQuerySketches(count)) return;
  for (let i = 0; i < count; i++) sketchQuery(queryAt(i));
}

/** Whether the segment has a centre. */
export function isCentred(): bool {
  return centreOf(segmentPtr(0)) !== 0;
}

export function scoreOf(query: i32, row: u32): f64 {
  return exactScore(queryAt(query), segmentPtr(0), row, rowFloats(segmentPtr(0), row));
}

/** The limit that bounds are compared with when the k-th best score is `score`. */
export function limitOf(query: i32, score: f64): f32 {
  return costLimit(queryAt(query), score);
}

/** The bound of a row by its code, or by its head; −infinity when the query cannot be coded. */
export function boundOf(query: i32, row: u32, isHead: bool): f32 {
  const segment = segmentPtr(0);
  const q = queryAt(query);
  const four = row & ~3;
  const at = (<usize>row) << 2;
  if (!prepareCodes(q, segment)) return -Infinity;
  store<u16>(rowList, <u16>row);
  if (q.similarity === L1) {
    memory.fill(rowBits, 0xff, 256);
    l1Bounds(q, segment, rowList, 1, isHead, rowBits, bounds);
  } else {
    codeDots(q, segment, rowList, 1, sums, isHead ? HEAD : WHOLE);
    const sum = v128.load(sums + ((<usize>four) << 2));
    // Two kernels for one sum: by a list, and by a run.
    if (ASC_FEATURE_RELAXED_SIMD && areCodesShort()) {
      dotsOfRun(q, segment, row, 1, runSums, isHead ? HEAD : WHOLE);
      if (load<i32>(runSums + at) !== load<i32>(sums + at)) return Infinity;
    }
    if (isHead) {
      v128.store(bounds + ((<usize>four) << 2), headDotBounds(q, segment, four, sum));
    } else {
      // Two functions for one bound: by four rows, and by 32.
      const first = row & ~31;
      codeDotBoundsOf32(q, segment, first, sums + ((<usize>first) << 2), bounds + ((<usize>first) << 2));
      const larger = f32x4.max(v128.load(bounds + ((<usize>four) << 2)), codeDotBounds(q, segment, four, sum));
      v128.store(bounds + ((<usize>four) << 2), larger);
    }
  }
  return load<f32>(bounds + at);
}

/** Whether the float32 sum of a row would rule it out when its own score is the k-th best. */
export function isLostAsFloats(query: i32, row: u32): bool {
  const q = queryAt(query);
  const score = scoreOf(query, row);
  return isRuledOut(q, segmentPtr(0), row, rowFloats(segmentPtr(0), row), floatLimit(q, score), Math.sqrt(q.squares));
}

let states: usize = 0;
let codes: usize = 0;
let residuals: usize = 0;
let tiles: usize = 0;
let manySums: usize = 0;

function manyAt(i: i32): ManyQuery {
  return changetype<ManyQuery>(states + <usize>i * manyQueryBytes());
}

/**
 * Prepares an even number of queries, which share the first test, and a block of `rows` rows, 0 … rows − 1, a
 * multiple of 4.
 */
export function prepareMany(count: i32, rows: u32): void {
  const segment = segmentPtr(0);
  const stateBytes = <usize>count * manyQueryBytes();
  const codeBytes = (<usize>(count >> 1) * manyCodeBytes() + 63) & ~63;
  states = reserveMany(<u64>stateBytes + codeBytes + ((<usize>codeDimension) << 2) + <usize>(rows >> 2) * tileBytes() + 8 * rows);
  codes = states + stateBytes;
  residuals = codes + codeBytes;
  tiles = residuals + ((<usize>codeDimension) << 2);
  manySums = tiles + <usize>(rows >> 2) * tileBytes();
  memory.fill(states, 0, stateBytes + codeBytes);
  clearShared();
  for (let i = 0; i < count; i++) {
    const many = manyAt(i);
    many.query = queryAt(i);
    many.centre = NO_CENTRE;
    many.threshold = NaN;
    many.codes = codes + <usize>(i >> 1) * manyCodeBytes() + ((<usize>i & 1) << 4);
    prepareManyCodes(many, centreOf(segment), residuals);
    many.isReady = many.isCodable;
    shareQuery(many);
  }
  for (let i: u32 = 0; i < rows; i++) {
    const to = tiles + <usize>(i >> 2) * tileBytes() + ((<usize>i & 3) << 4);
    setRowNumber(i, i);
    unpackRow(segment, i, to);
    describeRow(i, segment, to, true, queryAt(0).similarity);
  }
  describeBlock(rows, queryAt(0).similarity, centreOf(segment) !== 0);
}

const testOfA = changetype<FirstTest>(memory.data(offsetof<FirstTest>(), 16));
const testOfB = changetype<FirstTest>(memory.data(offsetof<FirstTest>(), 16));
const tileList = memory.data(2 * 65, 16);

/**
 * Which tests for many queries would drop a row of the block when its own score is the k-th best: 1 the first
 * test of the head, 2 the head, 4 the first test of all dimensions, 8 all dimensions, 16 the last bit.
 */
export function lostAmongMany(query: i32, row: u32, rows: u32): i32 {
  const many = manyAt(query);
  if (!many.isReady) return 0;
  many.query.heap.threshold = scoreOf(query, row);
  updateLimit(many);
  const isA = (query & 1) === 0;
  const a = manyAt(query & ~1);
  const b = manyAt(query | 1);
  const count = rows >> 2;
  const tile = row >> 2;
  const bit: u32 = 1 << (row & 3);
  const sumsA = manySums;
  const sumsB = manySums + ((<usize>rows) << 2);
  const own = isA ? sumsA : sumsB;
  const pair = codes + <usize>(query >> 1) * manyCodeBytes();
  let lost = 0;
  for (let step = headVectors() < codeVectors() ? 0 : 1; step < 2; step++) {
    const isHead = step === 0;
    dotTiles(tiles, count, 0, isHead ? headVectors() : codeVectors(), pair, sumsA, sumsB);
    setFirstTest(testOfA, a, <f64>many.limit, isHead);
    setFirstTest(testOfB, b, <f64>many.limit, isHead);
    const listed = listTiles(testOfA, sumsA, testOfB, sumsB, count, isHead, tileList);
    let left: u32 = 0;
    for (let i: usize = 0; i < <usize>listed; i++) {
      const entry = <u32>load<u16>(tileList + (i << 1));
      if (entry >> 8 === tile) left = isA ? entry & 15 : (entry >> 4) & 15;
    }
    if ((left & bit) === 0) lost |= isHead ? 1 : 4;
    if ((rowsLeft(many, tile, 15, own, isHead) & bit) === 0) lost |= isHead ? 2 : 8;
  }
  const sum = load<i32>(own + ((<usize>row) << 2));
  if (ASC_FEATURE_RELAXED_SIMD && isBelow(many, segmentPtr(0), row, sum)) lost |= 16;
  many.query.heap.threshold = -Infinity;
  return lost;
}

let basisRows: usize = 0;
let basisCentre: usize = 0;

/**
 * Where the host writes a basis of up to `dimensions` rows, f32[dimensions × basisPitch()], for takeBasis.
 */
export function basisPtr(dimensions: i32): usize {
  reserveSketching(dimensions);
  basisRows = allocate(<u64>dimensions * ((<u64>pitch()) << 2));
  return basisRows;
}

/** Where the host writes its centre, f32[dimension]. */
export function basisCentrePtr(): usize {
  basisCentre = allocate((<u64>pitch()) << 2);
  return basisCentre;
}

export function basisPitch(): i32 {
  return pitch();
}

/** Uses the basis that was written, and sketches segment 0. @returns ε. */
export function takeBasis(dimensions: i32): f64 {
  const panels = allocate(<u64>dimensions * ((<u64>pitch()) << 2));
  storePanels(basisRows, dimensions, panels);
  let skew: f64 = 0;
  for (let i = 0; i < dimensions; i++) skew += skewOf(basisRows, i);
  const epsilon = epsilonOf(skew);
  setBasis(dimensions, panels, basisCentre, epsilon);
  sketchSegment(segmentPtr(0));
  return epsilon;
}

/** The bound of a row by its sketch; −infinity when the query has none. */
export function sketchBoundOf(query: i32, row: u32): f32 {
  const q = queryAt(query);
  const segment = segmentPtr(0);
  if (!q.isSketched) return -Infinity;
  store<u16>(rowList, <u16>row);
  sketchDots(q, segment, rowList, 1, sums);
  sketchBoundsOf32(sketchOf(q), segment, row & ~31, sums + ((<usize>(row & ~31)) << 2));
  return load<f32>(sums + ((<usize>row) << 2));
}
