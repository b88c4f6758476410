/**
 * Sketches of rows: s = B (x − centre) of basis.ts in four bits per dimension, with bounds on what they lose.
 * A segment's sketches lie in a block of their own, made when there is a basis:
 *
 *   block: | groups | codes u8[segmentRows × sketchDimension / 2] |
 *   group, four rows: | ‖x‖ f32x4 | ‖y‖ f32x4 | centre·y f32x4 | steps u16x4 | losses u16x4 | rests u16x4 |
 *                     72 bytes
 *
 * The first three are as in rows/rows.ts, but for this centre. The others are upper halves of float32; the
 * step is exact, the others are rounded up:
 *   loss ≥ ‖s − ŝ‖     rest ≥ ‖y − Bᵀs‖
 *
 * Proof. Let Y' = ‖y'‖ from a float64 sum. ‖s − ŝ‖ ≤ ‖s' − ŝ‖ + δ Y' (basis.ts), with ‖s' − ŝ‖ from a float32
 * sum of exact squares' roundings, covered by 1 + (m + 64) 2^-23 as in codes/codes.ts. ‖y‖ ≤ Y' (1 + 2^-22)
 * and ‖s‖ ≥ ‖s'‖ − δ Y', so ‖y − Bᵀs‖² ≤ (Y' (1 + 2^-22))² − (1 − ε) max(0, ‖s'‖ − δ Y')². 1e-7 Y' is added
 * for the roundings of these float64 operations: under the root they come to 1e-15 Y'².
 *
 * Rows that are not codable, with x, y' and ‖y'‖ as in codes/codes.ts, or outside 2^-40 … 2^40, have infinite
 * losses, so that no bound skips them.
 */
import { isCodable, roundUp16 } from "../codes/codes";
import { addF64, largestF32, squaresOfF32 } from "../lanes";
import { allocate, release } from "../rows/memory";
import { floatsPtr, livePtr, segmentRows, sketchStatePtr, squaresPtr, stride, strideBytes } from "../rows/rows";
import {
  BLOCK_ROWS,
  basisCentre,
  basisNumber,
  pitch,
  project,
  projectionCost,
  projectionError,
  sketchDimension,
  skewness,
  storeResidual,
} from "./basis";
import { chooseStep, chosenLoss, encode } from "./four-bits";

/** Maximum dimension of sketches, a multiple of 32. */
export const MAX_SKETCH_DIMENSION: i32 = 512;

// Byte offsets in a group; NORMS, RESIDUAL_NORMS and SHIFTS of rows/rows.ts are valid here too.
export const SKETCH_STEPS: usize = 48;
export const SKETCH_LOSSES: usize = 56;
export const SKETCH_RESTS: usize = 64;
export const SKETCH_GROUP_BYTES: usize = 72;

/**
 * f32[BLOCK_ROWS × pitch] and f32[BLOCK_ROWS × largest dimension]: the current rows' residuals and their
 * sketches.
 */
let residuals: usize = 0;
let projections: usize = 0;
/** u32[BLOCK_ROWS]: the numbers of these rows. */
const blockRows = memory.data(128, 16);

/** Makes room for sketches of up to `dimensions`. @returns false at the memory limit. */
export function reserveSketching(dimensions: i32): bool {
  if (residuals === 0) residuals = allocate(<u64>BLOCK_ROWS * ((<u64>pitch()) << 2));
  if (projections === 0) projections = allocate(<u64>BLOCK_ROWS * ((<u64>dimensions) << 2));
  return residuals !== 0 && projections !== 0;
}

/** Learning may store rows and their projections here too, between two calls. */
export function residualsPtr(): usize {
  return residuals;
}

export function projectionsPtr(): usize {
  return projections;
}

/** Whether the segment's sketches match its rows and the basis in use. */
export function hasSketches(segment: usize): bool {
  return sketchDimension > 0 && load<u32>(sketchStatePtr(segment), 4) === basisNumber;
}

/** Call it when rows of a segment were changed and are not sketched again. */
export function dropSketches(segment: usize): void {
  store<u32>(sketchStatePtr(segment), 0, 4);
}

export function sketchGroupPtr(segment: usize, row: u32): usize {
  return <usize>load<u32>(sketchStatePtr(segment)) + <usize>(row >> 2) * SKETCH_GROUP_BYTES;
}

/** Address of row 0's codes. The others follow, sketchDimension / 2 bytes each. */
export function sketchCodesPtr(segment: usize): usize {
  return <usize>load<u32>(sketchStatePtr(segment)) + ((<usize>(segmentRows >> 2) * SKETCH_GROUP_BYTES + 63) & ~63);
}

/** Approximate number of multiplications for sketching `rows` rows. */
export function sketchingCost(rows: u32): i64 {
  return <i64>rows * projectionCost(sketchDimension);
}

/** Size of a segment's block with room for sketches of this many dimensions. */
export function sketchBlockBytes(dimensions: i32): u64 {
  const groups = (<u64>(segmentRows >> 2) * <u64>SKETCH_GROUP_BYTES + 63) & ~63;
  return groups + ((<u64>segmentRows * <u64>dimensions) >> 1);
}

/** Discards a segment's sketches and frees their memory. */
export function freeSketches(segment: usize): void {
  const state = sketchStatePtr(segment);
  const room = load<u32>(state, 8);
  if (room === 0) return;
  release(<usize>load<u32>(state), sketchBlockBytes(<i32>room));
  store<u32>(state, 0);
  store<u32>(state, 0, 4);
  store<u32>(state, 0, 8);
}

/** Makes room for the sketches of a segment. @returns false at the memory limit. */
export function reserveSketches(segment: usize): bool {
  const state = sketchStatePtr(segment);
  if (load<u32>(state, 8) >= <u32>sketchDimension) return true;
  freeSketches(segment);
  const block = allocate(sketchBlockBytes(sketchDimension));
  if (block === 0) return false;
  store<u32>(state, <u32>block);
  store<u32>(state, sketchDimension, 8);
  return true;
}

/** Call it when all rows of a segment have sketches of the basis in use. */
export function keepSketches(segment: usize): void {
  store<u32>(sketchStatePtr(segment), basisNumber, 4);
}

/** Sketches all rows of a segment whose float32 are in memory. @returns false at the memory limit. */
export function sketchSegment(segment: usize): bool {
  if (!reserveSketches(segment)) return false;
  sketchRows(segment, livePtr(segment));
  keepSketches(segment);
  return true;
}

/** Sketches one row, f32[stride] at `x`. */
export function sketchRowAt(segment: usize, row: u32, x: usize): void {
  storeResidual(x, basisCentre, residuals);
  project(residuals, 1, projections);
  writeSketch(segment, row, residuals, projections);
}

/** Sketches the rows of a segment whose bits are set. */
export function sketchRows(segment: usize, bitsPtr: usize): void {
  let count: i32 = 0;
  for (let w: u32 = 0; w < segmentRows >> 5; w++) {
    let bits = load<u32>(bitsPtr + ((<usize>w) << 2));
    while (bits !== 0) {
      store<u32>(blockRows + ((<usize>count) << 2), (w << 5) + ctz(bits));
      bits &= bits - 1;
      if (++count === BLOCK_ROWS) {
        sketchBlock(segment, count);
        count = 0;
      }
    }
  }
  if (count > 0) sketchBlock(segment, count);
}

function sketchBlock(segment: usize, count: i32): void {
  const residualBytes = (<usize>pitch()) << 2;
  for (let i = 0; i < count; i++) {
    const row = <usize>load<u32>(blockRows + ((<usize>i) << 2));
    storeResidual(floatsPtr(segment) + row * strideBytes(), basisCentre, residuals + <usize>i * residualBytes);
  }
  project(residuals, count, projections);
  for (let i = 0; i < count; i++) {
    const row = load<u32>(blockRows + ((<usize>i) << 2));
    writeSketch(segment, row, residuals + <usize>i * residualBytes, projections + ((<usize>i * <usize>sketchDimension) << 2));
  }
}

/**
 * Writes the sketch of `values`, f32[sketchDimension], which were projected from f32[stride] at `residual`.
 */
function writeSketch(segment: usize, row: u32, residual: usize, values: usize): void {
  const words = sketchGroupPtr(segment, row) + ((<usize>(row & 3)) << 2);
  const halves = sketchGroupPtr(segment, row) + ((<usize>(row & 3)) << 1);
  let largest = f32x4.splat(0);
  let squares = f64x2.splat(0);
  let shifts = f64x2.splat(0);
  for (let at: usize = 0; at < (<usize>stride) << 2; at += 16) {
    const y = v128.load(residual + at);
    largest = f32x4.max(largest, f32x4.abs(y));
    squares = f64x2.add(squares, squaresOfF32(y));
    const c = v128.load(basisCentre + at);
    const highY = i32x4.shuffle(y, y, 2, 3, 2, 3);
    const highC = i32x4.shuffle(c, c, 2, 3, 2, 3);
    shifts = f64x2.add(shifts, f64x2.mul(f64x2.promote_low_f32x4(y), f64x2.promote_low_f32x4(c)));
    shifts = f64x2.add(shifts, f64x2.mul(f64x2.promote_low_f32x4(highY), f64x2.promote_low_f32x4(highC)));
  }
  const norm = Math.sqrt(addF64(squares));
  const rowNorm = Math.sqrt(load<f64>(squaresPtr(segment) + ((<usize>row) << 3)));
  const peak = <f64>largestF32(largest);
  if (peak === 0 || !isCodable(peak, norm, rowNorm)) {
    store<f32>(words, 1);
    store<f32>(words, 0, 16);
    store<f32>(words, 0, 32);
    store<u16>(halves, 0, SKETCH_STEPS);
    store<u16>(halves, 0x7f80, SKETCH_LOSSES);
    store<u16>(halves, 0x7f80, SKETCH_RESTS);
    return;
  }
  let sketchSquares = f64x2.splat(0);
  for (let at: usize = 0; at < (<usize>sketchDimension) << 2; at += 16) {
    sketchSquares = f64x2.add(sketchSquares, squaresOfF32(v128.load(values + at)));
  }
  const sketchNorm = Math.sqrt(addF64(sketchSquares));
  store<f32>(words, rowNorm === 0 ? 1 : <f32>rowNorm);
  store<f32>(words, <f32>(norm * (1 + 2.384185791015625e-7)), 16);
  store<f32>(words, <f32>addF64(shifts), 32);
  const step = chooseStep(values, sketchDimension, sketchNorm);
  store<u16>(halves, <u16>(reinterpret<u32>(step) >> 16), SKETCH_STEPS);
  const slack = 1 + <f64>(sketchDimension + 64) * 1.1920928955078125e-7;
  const loss = Math.sqrt(chosenLoss) * slack + projectionError * norm + sketchNorm * 2.384185791015625e-7;
  store<u16>(halves, roundUp16(loss), SKETCH_LOSSES);
  store<u16>(halves, roundUp16(restOf(norm, sketchNorm)), SKETCH_RESTS);
  const bytes = <usize>sketchDimension >> 1;
  encode(values, sketchDimension, step, sketchCodesPtr(segment) + <usize>row * bytes);
}

/** An upper bound of ‖y − Bᵀs‖, from ‖y'‖ and ‖s'‖. */
export function restOf(norm: f64, sketchNorm: f64): f64 {
  const whole = norm * (1 + 2.384185791015625e-7);
  const part = Math.max(0, sketchNorm - projectionError * norm);
  return Math.sqrt(Math.max(0, whole * whole - (1 - skewness) * part * part)) + 1e-7 * norm;
}
