/**
 * Integer dot products of many queries with many rows. Rows are unpacked once for all queries; then tiles of
 * four rows × two queries share every load.
 *
 *   relaxed SIMD  rows as c6 = c >> 1, 0..63, one byte per dimension; queries as i8. Σ Q (c6 − 32) in 16
 *                 bits, starting with −32 ΣQ of the lane: what a window adds to a lane ends within ±32 Σ|Q|,
 *                 and many-query-codes.ts keeps a lane's Σ|Q| ≤ LANE_LIMIT. So sums that wrap around on the
 *                 way are right in the end. The second operand stays within 0..63 and a pair within
 *                 ±2 · 63 · 127, so all engines agree.
 *   plain SIMD    rows as c − 64, −64..63, and queries, both i16. Σ Q (c − 64) in 32 bits: largestManyCode
 *                 keeps 64 · |Q| · codeDimension < 2^31.
 *
 *   rows, a tile:     | vector 0 of rows 0 1 2 3 | vector 1 of rows 0 1 2 3 | …
 *                     16 bytes each; 16 dimensions (relaxed) or 8
 *   queries, a pair:  | vector 0 of a, of b | vector 1 of a, of b | …
 *                     relaxed: each window begins with −32 ΣQ of a's and of b's lanes
 *
 * The first windows, a quarter to a third of the dimensions, are the head. For most rows of clustered data it
 * suffices (see plans/cascade-many.ts). Short codes have none.
 */
import { addI16OfFour, addI32, addI32OfFour } from "../lanes";
import { codeDimension, headBytes, headPtr, tailBytes, tailPtr } from "../rows/rows";
import { shortTiles } from "./many-short-dots";

/** Maximum number of vectors of a window; 2 · 24 values per lane. */
const MAX_WINDOW_VECTORS: i32 = 24;
/**
 * Codes of up to this many vectors are one window: widening a second time takes a fifth of the kernel's time at 8.
 */
const MAX_SINGLE_VECTORS: i32 = 12;
/** Limit of a lane's Σ|Q| in a window: 32 · 1023 < 2^15. */
export const LANE_LIMIT: i32 = 1023;

/** The largest |Q|. */
export function largestManyCode(): i32 {
  return ASC_FEATURE_RELAXED_SIMD ? 127 : min(2047, i32.MAX_VALUE / (64 * codeDimension));
}

/** Number of 16-byte vectors in a row's unpacked code: a multiple of 4. */
export function codeVectors(): i32 {
  return ASC_FEATURE_RELAXED_SIMD ? codeDimension >> 4 : codeDimension >> 3;
}

/** Whether codes are one window, without a head: at that length, reading a head first saves nothing. */
function isShort(): bool {
  return codeVectors() <= (ASC_FEATURE_RELAXED_SIMD ? MAX_SINGLE_VECTORS : 2 * MAX_SINGLE_VECTORS);
}

/** Number of vectors between two widenings, a multiple of 4; the last window may be shorter. */
export function windowVectors(): i32 {
  if (!ASC_FEATURE_RELAXED_SIMD || isShort()) return codeVectors();
  return min(MAX_WINDOW_VECTORS, (codeVectors() / 3 + 3) & ~3);
}

/** Number of vectors of the head: whole windows, or all if the codes have no head. */
export function headVectors(): i32 {
  if (isShort()) return codeVectors();
  if (!ASC_FEATURE_RELAXED_SIMD) return (codeVectors() / 3 + 3) & ~3;
  return windowVectors() * max(1, codeVectors() / (4 * windowVectors()));
}

/** Number of dimensions of the head. */
export function manyHeadDimensions(): i32 {
  return headVectors() << (ASC_FEATURE_RELAXED_SIMD ? 4 : 3);
}

/** Size of the codes of a pair of queries for `vectors` vectors, whole windows or all. */
export function pairBytes(vectors: i32): usize {
  const windows = ASC_FEATURE_RELAXED_SIMD ? (vectors + windowVectors() - 1) / windowVectors() : 0;
  return (<usize>(vectors + windows)) << 5;
}

/** Size of a tile of four rows. */
export function tileBytes(): usize {
  return (<usize>codeVectors()) << 6;
}

/** Unpacks a row into its place in a tile (`to`: the tile + 16 · place). */
export function unpackRow(segment: usize, row: usize, to: usize): void {
  unpackPart(headPtr(segment, row), headBytes, to);
  unpackPart(tailPtr(segment, row), tailBytes, to + (headBytes << (ASC_FEATURE_RELAXED_SIMD ? 2 : 3)));
}

function unpackPart(from: usize, bytes: usize, to: usize): void {
  const end = from + bytes;
  if (ASC_FEATURE_RELAXED_SIMD) {
    const sixBits = i8x16.splat(63);
    while (from < end) {
      // Masks out the bits that the shift moves from one byte to another.
      v128.store(to, v128.and(i16x8.shr_u(v128.load(from), 1), sixBits));
      from += 16;
      to += 64;
    }
  } else {
    const zero = i16x8.splat(64);
    while (from < end) {
      const c = v128.load(from);
      v128.store(to, i16x8.sub(i16x8.extend_low_i8x16_u(c), zero));
      v128.store(to, i16x8.sub(i16x8.extend_high_i8x16_u(c), zero), 64);
      from += 16;
      to += 128;
    }
  }
}

/**
 * Sums of tiles for a pair of queries over the vectors from..until−1 (`from`: the start of a window): i32[4]
 * per tile, those of query a at `sums`, of b at `sumsOfB`. They are stored when `from` is 0, otherwise added
 * to the present values.
 *
 * Four vectors per iteration. The breaks between them are never taken (windows are multiples of four
 * vectors). They keep V8 from moving all loads to the front, which causes a dozen spills (a fifth of the
 * time, measured).
 */
export function dotTiles(rows: usize, tiles: u32, from: i32, until: i32, queries: usize, sums: usize, sumsOfB: usize): void {
  const used = (<usize>(until - from)) << 6;
  const codes = queries + pairBytes(from);
  const windowBytes = (<usize>windowVectors()) << 6;
  const start = rows + ((<usize>from) << 6);
  if (ASC_FEATURE_RELAXED_SIMD && isShort()) shortTiles(start, tiles, used, codes, sums, sumsOfB);
  else if (ASC_FEATURE_RELAXED_SIMD) relaxedTiles(start, tiles, windowBytes, used, codes, sums, sumsOfB, from === 0);
  else plainTiles(start, tiles, used, codes, sums, sumsOfB, from === 0);
}

function relaxedTiles(
  tile: usize,
  tiles: u32,
  windowBytes: usize,
  used: usize,
  queries: usize,
  sums: usize,
  sumsOfB: usize,
  isFirst: bool,
): void {
  const size = tileBytes();
  const zero = i32x4.splat(0);
  for (let n: u32 = 0; n < tiles; n++) {
    let rows = tile;
    let codes = queries;
    const end = tile + used;
    let totalOfA = isFirst ? zero : v128.load(sums);
    let totalOfB = isFirst ? zero : v128.load(sumsOfB);
    do {
      const stop = min(end, rows + windowBytes);
      const stop1 = stop - 64;
      const stop2 = stop - 128;
      const stop3 = stop - 192;
      let a0 = v128.load(codes);
      let b0 = v128.load(codes, 16);
      let a1 = a0;
      let a2 = a0;
      let a3 = a0;
      let b1 = b0;
      let b2 = b0;
      let b3 = b0;
      codes += 32;
      do {
        let a = v128.load(codes);
        let b = v128.load(codes, 16);
        let x = v128.load(rows);
        a0 = i16x8.add(a0, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b0 = i16x8.add(b0, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 16);
        a1 = i16x8.add(a1, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b1 = i16x8.add(b1, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 32);
        a2 = i16x8.add(a2, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b2 = i16x8.add(b2, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 48);
        a3 = i16x8.add(a3, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b3 = i16x8.add(b3, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        if (rows === stop1) break;
        a = v128.load(codes, 32);
        b = v128.load(codes, 48);
        x = v128.load(rows, 64);
        a0 = i16x8.add(a0, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b0 = i16x8.add(b0, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 80);
        a1 = i16x8.add(a1, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b1 = i16x8.add(b1, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 96);
        a2 = i16x8.add(a2, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b2 = i16x8.add(b2, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 112);
        a3 = i16x8.add(a3, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b3 = i16x8.add(b3, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        if (rows === stop2) break;
        a = v128.load(codes, 64);
        b = v128.load(codes, 80);
        x = v128.load(rows, 128);
        a0 = i16x8.add(a0, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b0 = i16x8.add(b0, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 144);
        a1 = i16x8.add(a1, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b1 = i16x8.add(b1, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 160);
        a2 = i16x8.add(a2, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b2 = i16x8.add(b2, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 176);
        a3 = i16x8.add(a3, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b3 = i16x8.add(b3, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        if (rows === stop3) break;
        a = v128.load(codes, 96);
        b = v128.load(codes, 112);
        x = v128.load(rows, 192);
        a0 = i16x8.add(a0, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b0 = i16x8.add(b0, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 208);
        a1 = i16x8.add(a1, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b1 = i16x8.add(b1, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 224);
        a2 = i16x8.add(a2, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b2 = i16x8.add(b2, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        x = v128.load(rows, 240);
        a3 = i16x8.add(a3, i16x8.relaxed_dot_i8x16_i7x16_s(a, x));
        b3 = i16x8.add(b3, i16x8.relaxed_dot_i8x16_i7x16_s(b, x));
        rows += 256;
        codes += 128;
      } while (rows < stop);
      totalOfA = i32x4.add(totalOfA, addI16OfFour(a0, a1, a2, a3));
      totalOfB = i32x4.add(totalOfB, addI16OfFour(b0, b1, b2, b3));
    } while (rows < end);
    v128.store(sums, totalOfA);
    v128.store(sumsOfB, totalOfB);
    tile += size;
    sums += 16;
    sumsOfB += 16;
  }
}

function plainTiles(tile: usize, tiles: u32, used: usize, queries: usize, sums: usize, sumsOfB: usize, isFirst: bool): void {
  const size = tileBytes();
  const zero = i32x4.splat(0);
  for (let n: u32 = 0; n < tiles; n++) {
    let rows = tile;
    let codes = queries;
    const stop = tile + used;
    const stop1 = stop - 64;
    const stop2 = stop - 128;
    const stop3 = stop - 192;
    let a0 = i32x4.splat(0);
    let a1 = a0;
    let a2 = a0;
    let a3 = a0;
    let b0 = a0;
    let b1 = a0;
    let b2 = a0;
    let b3 = a0;
    do {
      let a = v128.load(codes);
      let b = v128.load(codes, 16);
      let x = v128.load(rows);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(a, x));
      b0 = i32x4.add(b0, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 16);
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(a, x));
      b1 = i32x4.add(b1, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 32);
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(a, x));
      b2 = i32x4.add(b2, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 48);
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(a, x));
      b3 = i32x4.add(b3, i32x4.dot_i16x8_s(b, x));
      if (rows === stop1) break;
      a = v128.load(codes, 32);
      b = v128.load(codes, 48);
      x = v128.load(rows, 64);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(a, x));
      b0 = i32x4.add(b0, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 80);
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(a, x));
      b1 = i32x4.add(b1, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 96);
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(a, x));
      b2 = i32x4.add(b2, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 112);
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(a, x));
      b3 = i32x4.add(b3, i32x4.dot_i16x8_s(b, x));
      if (rows === stop2) break;
      a = v128.load(codes, 64);
      b = v128.load(codes, 80);
      x = v128.load(rows, 128);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(a, x));
      b0 = i32x4.add(b0, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 144);
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(a, x));
      b1 = i32x4.add(b1, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 160);
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(a, x));
      b2 = i32x4.add(b2, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 176);
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(a, x));
      b3 = i32x4.add(b3, i32x4.dot_i16x8_s(b, x));
      if (rows === stop3) break;
      a = v128.load(codes, 96);
      b = v128.load(codes, 112);
      x = v128.load(rows, 192);
      a0 = i32x4.add(a0, i32x4.dot_i16x8_s(a, x));
      b0 = i32x4.add(b0, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 208);
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(a, x));
      b1 = i32x4.add(b1, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 224);
      a2 = i32x4.add(a2, i32x4.dot_i16x8_s(a, x));
      b2 = i32x4.add(b2, i32x4.dot_i16x8_s(b, x));
      x = v128.load(rows, 240);
      a3 = i32x4.add(a3, i32x4.dot_i16x8_s(a, x));
      b3 = i32x4.add(b3, i32x4.dot_i16x8_s(b, x));
      rows += 256;
      codes += 128;
    } while (rows < stop);
    v128.store(sums, i32x4.add(isFirst ? zero : v128.load(sums), addI32OfFour(a0, a1, a2, a3)));
    v128.store(sumsOfB, i32x4.add(isFirst ? zero : v128.load(sumsOfB), addI32OfFour(b0, b1, b2, b3)));
    tile += size;
    sums += 16;
    sumsOfB += 16;
  }
}

/**
 * Relaxed SIMD: Σ Q (c & 1) of one row, whose code is at `head` and `tail`, and one query of a pair
 * (`queries`: the pair, + 16 for b).
 */
export function dotLowBits(queries: usize, head: usize, tail: usize): i32 {
  // A lane adds at most LANE_LIMIT in a window, and there are at most 32 of them up to 12288 dimensions: 32 ·
  // 1023 < 2^15.
  const vectors = codeVectors();
  const window = windowVectors();
  const storedHeadVectors = <i32>(headBytes >> 4);
  const lowBit = i8x16.splat(1);
  let row = head;
  let sum = i16x8.splat(0);
  for (let first = 0; first < vectors; first += window) {
    const until = min(vectors, first + window);
    queries += 32;
    // Two vectors per iteration: windows and heads are multiples of four.
    for (let v = first; v < until; v += 2) {
      if (v === storedHeadVectors) row = tail;
      sum = i16x8.add(sum, i16x8.relaxed_dot_i8x16_i7x16_s(v128.load(queries), v128.and(v128.load(row), lowBit)));
      sum = i16x8.add(sum, i16x8.relaxed_dot_i8x16_i7x16_s(v128.load(queries, 32), v128.and(v128.load(row, 16), lowBit)));
      row += 32;
      queries += 64;
    }
  }
  return addI32(i32x4.extadd_pairwise_i16x8_s(sum));
}

/**
 * The squares of a row's vectors after the head. Call it after unpackRow (`to` as there).
 *
 * @returns relaxed SIMD: Σ (4 (c6 − 32) + 1)², which is Σ ŷ6² in units of (Δ/2)²; plain SIMD: Σ (c − 64)², Σ
 *   ŷ² in units of Δ². At most 127² per dimension, which stays below 2^31 for MAX_CODE_DIMENSION of them.
 */
export function tailSquares(to: usize): i32 {
  let at = to + ((<usize>headVectors()) << 6);
  const end = to + tileBytes();
  let sum = i32x4.splat(0);
  while (at < end) {
    const v = v128.load(at);
    if (ASC_FEATURE_RELAXED_SIMD) {
      const one = i16x8.splat(1);
      const w = i8x16.sub(v, i8x16.splat(32));
      const first = i16x8.add(i16x8.shl(i16x8.extend_low_i8x16_s(w), 2), one);
      const second = i16x8.add(i16x8.shl(i16x8.extend_high_i8x16_s(w), 2), one);
      sum = i32x4.add(sum, i32x4.add(i32x4.dot_i16x8_s(first, first), i32x4.dot_i16x8_s(second, second)));
    } else {
      sum = i32x4.add(sum, i32x4.dot_i16x8_s(v, v));
    }
    at += 64;
  }
  return addI32(sum);
}
