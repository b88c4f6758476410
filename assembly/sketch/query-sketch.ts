/**
 * A query's sketch: u = B (q − centre) ≈ û = unit · Q, integers |Q| ≤ 127, and what the bounds (bounds.ts)
 * need of it. Also the integer dot products Σ Q (c − 7.5) with the sketches of rows, exact in every build: at
 * most 512 · 127 · 15 / 2.
 *
 *   relaxed SIMD  codes: Q i8[sketchDimension]. Bytes of a row are split into two codes of 0…15 (7 bits: all
 *                 engines agree on i16x8.relaxed_dot_i8x16_i7x16_s). A pair of products is at most 3,810, and
 *                 eight of them are added up in 16 bits.
 *   plain SIMD    codes, 32 dimensions: Q i16 of dimensions 0, 2, … 14 | 16, 18, … 30 | 1, 3, … 15 |
 *                 17, 19, … 31, which are the four halves of 16-bit lanes, in their order.
 */
import { MAX_CODABLE, MIN_CODABLE } from "../codes/codes";
import { SLACK_OF_ONE, setCoefficients } from "../dot/coefficients";
import { CodedQuery } from "../exact/coded-query";
import { Query } from "../exact/query";
import { addF64, addI32OfFour } from "../lanes";
import { allocate } from "../rows/memory";
import { stride } from "../rows/rows";
import { countBytes } from "../rows/scan-counts";
import { padToStreams } from "../rows/selection";
import { basisCentre, projectionError, projectOne, sketchDimension, skewness, storeResidual } from "./basis";
import { MAX_SKETCH_DIMENSION, projectionsPtr, residualsPtr, restOf, sketchCodesPtr } from "./sketches";

const NORM_SLACK: f64 = 1 + 1e-9;

/**
 * The sketch of one query. In the terms of CodedQuery, codedNorm is ‖û‖, codeLoss ≥ ‖u − û‖ + ε ‖u‖, and restNorm
 * ≥ ‖p − Bᵀu‖.
 */
@unmanaged
export class QuerySketch extends CodedQuery {
  /** Σ Q. */
  codeSum: i32;
}

let states: usize = 0;
let codes: usize = 0;
let capacity: i32 = 0;

const CODE_BYTES: usize = 2 * <usize>MAX_SKETCH_DIMENSION;

/** Makes room for `count` queries. @returns false at the memory limit. */
export function reserveQuerySketches(count: i32): bool {
  if (count <= capacity) return true;
  const block = allocate(<u64>count * <u64>(CODE_BYTES + ((offsetof<QuerySketch>() + 63) & ~63)));
  if (block === 0) return false;
  codes = block;
  states = block + <usize>count * CODE_BYTES;
  capacity = count;
  return true;
}

export function sketchOf(query: Query): QuerySketch {
  return changetype<QuerySketch>(states + <usize>query.number * ((offsetof<QuerySketch>() + 63) & ~63));
}

function codesOf(query: Query): usize {
  return codes + <usize>query.number * CODE_BYTES;
}

/** Sketches a query. query.isSketched says whether that was possible. */
export function sketchQuery(query: Query): void {
  const sketch = sketchOf(query);
  query.isSketched = false;
  const residual = residualsPtr();
  const values = projectionsPtr();
  storeResidual(query.floats, basisCentre, residual);
  // Of p itself, in float64, and of p' as it is projected.
  let squares = f64x2.splat(0);
  let shifts = f64x2.splat(0);
  let centreSquares = f64x2.splat(0);
  let largests = f64x2.splat(0);
  for (let j: usize = 0; j < <usize>stride; j += 2) {
    const q = v128.load(query.doubles + (j << 3));
    const c = f64x2.promote_low_f32x4(v128.load64_zero(basisCentre + (j << 2)));
    const p = f64x2.sub(q, c);
    largests = f64x2.pmax(largests, f64x2.abs(p));
    squares = f64x2.add(squares, f64x2.mul(p, p));
    shifts = f64x2.add(shifts, f64x2.mul(q, c));
    centreSquares = f64x2.add(centreSquares, f64x2.mul(c, c));
  }
  const peak = Math.max(f64x2.extract_lane(largests, 0), f64x2.extract_lane(largests, 1));
  if (!(peak >= MIN_CODABLE && peak <= MAX_CODABLE)) return;
  sketch.norm = Math.sqrt(addF64(squares)) * NORM_SLACK;
  sketch.shift = addF64(shifts);
  sketch.centreNorm = Math.sqrt(addF64(centreSquares)) * NORM_SLACK;
  projectOne(residual, values);
  let largest: f32 = 0;
  let sketchSquares: f64 = 0;
  for (let j: usize = 0; j < <usize>sketchDimension; j++) {
    const u = load<f32>(values + (j << 2));
    largest = max(largest, abs(u));
    sketchSquares += <f64>u * <f64>u;
  }
  if (!(<f64>largest >= MIN_CODABLE)) return;
  const unit = <f64>largest / 127;
  let codeSquares: f64 = 0;
  let lossSquares: f64 = 0;
  let codeSum = 0;
  for (let j: usize = 0; j < <usize>sketchDimension; j++) {
    const u = <f64>load<f32>(values + (j << 2));
    const code = nearest(u / unit);
    const loss = u - code * unit;
    codeSquares += code * code;
    lossSquares += loss * loss;
    codeSum += <i32>code;
    storeCode(codesOf(query), j, <i32>code);
  }
  const sketchNorm = Math.sqrt(sketchSquares);
  const error = projectionError * sketch.norm;
  sketch.unit = unit;
  sketch.codeSum = codeSum;
  sketch.codedNorm = Math.sqrt(codeSquares) * unit * NORM_SLACK;
  // ‖s‖, by which both terms are multiplied, is at most √(1 + ε) ‖y‖.
  sketch.codeLoss =
    (Math.sqrt(lossSquares) + error + skewness * (sketchNorm + error) + sketchNorm * 1e-12) * Math.sqrt(1 + skewness) * NORM_SLACK;
  sketch.restNorm = restOf(sketch.norm, sketchNorm) * NORM_SLACK;
  setCoefficients(sketch, query, 0.5, SLACK_OF_ONE);
  query.isSketched = true;
}

function storeCode(to: usize, j: usize, code: i32): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    store<i8>(to + j, <i8>code);
  } else {
    const chunk = to + ((j >> 5) << 6);
    const half = ((j & 1) << 1) + ((j >> 4) & 1);
    store<i16>(chunk + (half << 4) + (j & 14), <i16>code);
  }
}

/**
 * Stores at sums[row], i32, Σ Q (2 c − 15) over the sketch of each row listed.
 *
 * @param rows  u16[count], with room for LIST_PADDING more, which are overwritten.
 */
export function sketchDots(query: Query, segment: usize, rows: usize, count: u32, sums: usize): void {
  if (count === 0) return;
  const bytes = <usize>sketchDimension >> 1;
  countBytes(<u64>count * bytes);
  const starts = sketchCodesPtr(segment);
  const queryCodes = codesOf(query);
  const offset = i32x4.splat(-15 * sketchOf(query).codeSum);
  const quarter = padToStreams(rows, count);
  for (let at = rows; at < rows + quarter; at += 2) {
    const row0 = <usize>load<u16>(at);
    const row1 = <usize>load<u16>(at + quarter);
    const row2 = <usize>load<u16>(at + 2 * quarter);
    const row3 = <usize>load<u16>(at + 3 * quarter);
    const dots = dotOfFour(queryCodes, starts + row0 * bytes, starts + row1 * bytes, starts + row2 * bytes, starts + row3 * bytes, bytes);
    const four = i32x4.add(i32x4.shl(dots, 1), offset);
    v128.store32_lane(sums + (row0 << 2), four, 0);
    v128.store32_lane(sums + (row1 << 2), four, 1);
    v128.store32_lane(sums + (row2 << 2), four, 2);
    v128.store32_lane(sums + (row3 << 2), four, 3);
  }
}

function dotOfFour(codes: usize, row0: usize, row1: usize, row2: usize, row3: usize, bytes: usize): v128 {
  let sum0 = i32x4.splat(0);
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  const end = row0 + bytes;
  if (ASC_FEATURE_RELAXED_SIMD) {
    // 128 dimensions per iteration, fewer in the last. Each block of loads ends with a branch; otherwise V8
    // moves all of them to the front and spills registers.
    const end1 = end - 16;
    const end2 = end - 32;
    const end3 = end - 48;
    while (row0 < end) {
      let low = v128.load(codes);
      let high = v128.load(codes, 16);
      let a0 = relaxedChunk(v128.load(row0), low, high);
      let a1 = relaxedChunk(v128.load(row1), low, high);
      let a2 = relaxedChunk(v128.load(row2), low, high);
      let a3 = relaxedChunk(v128.load(row3), low, high);
      if (row0 !== end1) {
        low = v128.load(codes, 32);
        high = v128.load(codes, 48);
        a0 = i16x8.add(a0, relaxedChunk(v128.load(row0, 16), low, high));
        a1 = i16x8.add(a1, relaxedChunk(v128.load(row1, 16), low, high));
        a2 = i16x8.add(a2, relaxedChunk(v128.load(row2, 16), low, high));
        a3 = i16x8.add(a3, relaxedChunk(v128.load(row3, 16), low, high));
        if (row0 !== end2) {
          low = v128.load(codes, 64);
          high = v128.load(codes, 80);
          a0 = i16x8.add(a0, relaxedChunk(v128.load(row0, 32), low, high));
          a1 = i16x8.add(a1, relaxedChunk(v128.load(row1, 32), low, high));
          a2 = i16x8.add(a2, relaxedChunk(v128.load(row2, 32), low, high));
          a3 = i16x8.add(a3, relaxedChunk(v128.load(row3, 32), low, high));
          if (row0 !== end3) {
            low = v128.load(codes, 96);
            high = v128.load(codes, 112);
            a0 = i16x8.add(a0, relaxedChunk(v128.load(row0, 48), low, high));
            a1 = i16x8.add(a1, relaxedChunk(v128.load(row1, 48), low, high));
            a2 = i16x8.add(a2, relaxedChunk(v128.load(row2, 48), low, high));
            a3 = i16x8.add(a3, relaxedChunk(v128.load(row3, 48), low, high));
          }
        }
      }
      sum0 = i32x4.add(sum0, i32x4.extadd_pairwise_i16x8_s(a0));
      sum1 = i32x4.add(sum1, i32x4.extadd_pairwise_i16x8_s(a1));
      sum2 = i32x4.add(sum2, i32x4.extadd_pairwise_i16x8_s(a2));
      sum3 = i32x4.add(sum3, i32x4.extadd_pairwise_i16x8_s(a3));
      codes += 128;
      row0 += 64;
      row1 += 64;
      row2 += 64;
      row3 += 64;
    }
  } else {
    while (row0 < end) {
      const q0 = v128.load(codes);
      const q1 = v128.load(codes, 16);
      const q2 = v128.load(codes, 32);
      const q3 = v128.load(codes, 48);
      sum0 = i32x4.add(sum0, plainChunk(row0, q0, q1, q2, q3));
      sum1 = i32x4.add(sum1, plainChunk(row1, q0, q1, q2, q3));
      sum2 = i32x4.add(sum2, plainChunk(row2, q0, q1, q2, q3));
      sum3 = i32x4.add(sum3, plainChunk(row3, q0, q1, q2, q3));
      codes += 64;
      row0 += 16;
      row1 += 16;
      row2 += 16;
      row3 += 16;
    }
  }
  return addI32OfFour(sum0, sum1, sum2, sum3);
}

/** 32 dimensions of a row, i16x8. (i8x16.shr_u would take V8 three instructions more than this shift and mask.) */
function relaxedChunk(v: v128, low: v128, high: v128): v128 {
  const mask = i8x16.splat(15);
  return i16x8.add(
    i16x8.relaxed_dot_i8x16_i7x16_s(low, v128.and(v, mask)),
    i16x8.relaxed_dot_i8x16_i7x16_s(high, v128.and(i16x8.shr_u(v, 4), mask)),
  );
}

/** 32 dimensions of a row, i32x4. */
function plainChunk(row: usize, q0: v128, q1: v128, q2: v128, q3: v128): v128 {
  const v = v128.load(row);
  const mask = i16x8.splat(15);
  return i32x4.add(
    i32x4.add(i32x4.dot_i16x8_s(v128.and(v, mask), q0), i32x4.dot_i16x8_s(v128.and(i16x8.shr_u(v, 4), mask), q1)),
    i32x4.add(i32x4.dot_i16x8_s(v128.and(i16x8.shr_u(v, 8), mask), q2), i32x4.dot_i16x8_s(i16x8.shr_u(v, 12), q3)),
  );
}
