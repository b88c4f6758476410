/**
 * Learns the basis of sketches from a sample of the rows. It works in steps of a few milliseconds each, so
 * that nobody waits for the whole (schedule.ts decides when):
 *
 *   centre      the sample's mean
 *   start       M directions, each a sum of sample rows with random signs
 *   pass        the directions times the sample's second moments (orthogonal iteration: Golub and Van Loan,
 *               Matrix Computations, §8.2.4; the leading directions come first)
 *   orthonormal by Gram and Schmidt; these two PASSES times
 *   trial       some rows of the sample that the passes left out are queries to others: for each m, how many
 *               rows would sketches of m dimensions leave?
 *   install     the best m, if it pays: B is its first m directions, mixed
 *   sketching   segment after segment
 *
 * Mixing: each 32 directions, taken from all parts of the spectrum, are replaced by their Walsh–Hadamard
 * transform. The space is the same. Coordinates that have the same spread, and are nearly Gaussian, lose much
 * less in four bits (LSA × 768, 384 dimensions: a quarter fewer rows left).
 *
 * Answers do not depend on the quality of this work: what the bounds need of the basis is measured when it is
 * installed.
 */
import { MAX_CODABLE } from "../codes/codes";
import { allocate, release } from "../rows/memory";
import { liveRows, segmentCount, segmentPtr, stride } from "../rows/rows";
import {
  BLOCK_ROWS,
  dropBasis,
  epsilonOf,
  pitch,
  projectionCost,
  projectOn,
  setBasis,
  sketchDimension,
  skewOf,
  storePanels,
  storeResidual,
} from "./basis";
import { mix } from "./mix";
import { addScaled, dot, multiplyTile, scale, wideDot } from "./products";
import { drawSample, nextRandom, QUERIES, sampleBytes, sampleCount, sampleRow } from "./sample";
import { freeSketches, MAX_SKETCH_DIMENSION, projectionsPtr, reserveSketching, residualsPtr } from "./sketches";
import { beginTrial, bestDimension, chooseDimension, limitQueries, placeTrial, trialBytes, tryDimension, tryHeads } from "./trial";

/** Size of the sample: this many rows for each direction, and a maximum. */
const SAMPLE_PER_DIMENSION: u32 = 16;
const MAX_SAMPLE: u32 = 4096;
const PASSES: i32 = 2;
/** A basis that is less orthonormal than this is rejected: 2^-7. */
const MAX_SKEWNESS: f64 = 0.0078125;

const IDLE: i32 = 0;
const PASS: i32 = 1;
const ORTHONORMAL: i32 = 2;
const LIMITS: i32 = 3;
const TRIAL: i32 = 4;
const MEASURE: i32 = 5;
let phase: i32 = IDLE;

/** Multiplications of the current step. */
let spent: i64 = 0;

// State of the current learning.
let most: i32 = 0;
let passes: i32 = 0;
let cursor: i32 = 0;
/** f32[most × pitch], then the sample and the trial. */
let directions: usize = 0;
let directionsBytes: u64 = 0;
/** The basis being made: its centre, f32[stride], and f32[most × pitch], as panels. */
let centre: usize = 0;
let panels: usize = 0;
/** Bytes from the centre to the end of the panels. */
let basisBytes: u64 = 0;
/** The same for the basis in use, or 0. */
let installed: usize = 0;
let installedBytes: u64 = 0;
/** Whether to ignore the result of the trial. */
let isForced: bool = false;
let skew: f64 = 0;

/** Address and size of the basis in use: its centre, then its panels. */
export function basisPtr(): usize {
  return installed;
}

export function basisSize(): u64 {
  return sketchDimension === 0 ? 0 : basisSizeOf(sketchDimension);
}

/** Size of a basis of this many dimensions. */
export function basisSizeOf(dimensions: i32): u64 {
  return centreBytes() + <u64>dimensions * ((<u64>pitch()) << 2);
}

/** Makes room for a basis that is read from an image. @returns where it goes; 0 at the memory limit. */
export function reserveInstalled(dimensions: i32): usize {
  if (!reserveSketching(largestDimension())) return 0;
  installedBytes = basisSizeOf(dimensions);
  installed = allocate(installedBytes);
  return installed;
}

/** Uses the basis that was written there. */
export function adoptInstalled(dimensions: i32, epsilon: f64): void {
  setBasis(dimensions, installed + <usize>centreBytes(), installed, epsilon);
}

/** Whether there is a step to do. */
export function isLearning(): bool {
  return phase !== IDLE;
}

/** Does one step. @returns the number of multiplications that it took. */
export function learnOn(): i64 {
  spent = 0;
  if (phase === PASS) passOver();
  else if (phase === ORTHONORMAL) orthonormalize();
  else if (phase === LIMITS) findLimits();
  else if (phase === TRIAL) tryNext();
  else measure();
  return spent;
}

function giveUp(): void {
  phase = IDLE;
  release(centre, basisBytes);
  release(directions, directionsBytes);
  stopSketching();
}

/** Removes all sketches and frees their memory for rows. */
export function stopSketching(): void {
  if (sketchDimension === 0) return;
  dropBasis();
  for (let s: u32 = 0; s < segmentCount; s++) freeSketches(segmentPtr(s));
  release(installed, installedBytes);
}

/** Maximum number of directions, whatever the rows. */
export function largestDimension(): i32 {
  return min(MAX_SKETCH_DIMENSION, ((stride * 2) / 3) & ~31);
}

/** Multiplications for learning this many directions, without sketching. */
export function learningCost(dimensions: i32): i64 {
  const m = <i64>dimensions;
  const row = <i64>pitch();
  const rows = <i64>sampleSize(dimensions);
  const passes = 2 * <i64>PASSES * rows * m * row + 2 * <i64>(PASSES + 1) * m * m * row;
  return passes + rows * <i64>QUERIES * row + 512 * m * row;
}

function sampleSize(dimensions: i32): u32 {
  return min(liveRows, min(MAX_SAMPLE, max<u32>(1024, SAMPLE_PER_DIMENSION * <u32>dimensions)));
}

/**
 * Takes a sample and starting directions, unless memory is at its limit.
 *
 * @param dimensions  to be learnt, a multiple of 32 and at most a quarter of the rows and largestDimension().
 * @param forced  whether some of them are used even if none pay.
 */
export function beginLearning(dimensions: i32, forced: bool): void {
  isForced = forced;
  most = dimensions;
  const rows = sampleSize(most);
  if (!reserveLearning(rows)) return;
  drawSample(rows, directions + <usize>matrixBytes());
  placeTrial(directions + <usize>(matrixBytes() + sampleBytes(rows)));
  storeCentre();
  // As for centres of segments: bounds are computed in float32.
  if (!(wideDot(centre, centre, stride) < MAX_CODABLE)) {
    giveUp();
    return;
  }
  const rowBytes = (<usize>pitch()) << 2;
  for (let i = 0; i < sampleCount - QUERIES; i++) {
    storeResidual(sampleRow(i), centre, residualsPtr());
    addScaled(directions + <usize>(i % most) * rowBytes, residualsPtr(), stride, (nextRandom() & 256) === 0 ? 1 : -1);
  }
  passes = 0;
  cursor = 0;
  phase = ORTHONORMAL;
}

function matrixBytes(): u64 {
  return <u64>most * ((<u64>pitch()) << 2);
}

function centreBytes(): u64 {
  return (((<u64>stride) << 2) + 63) & ~63;
}

/** Makes room for a basis and for learning it from `rows` rows. @returns false at the memory limit. */
function reserveLearning(rows: u32): bool {
  if (!reserveSketching(largestDimension())) return false;
  basisBytes = centreBytes() + matrixBytes();
  centre = allocate(basisBytes);
  if (centre === 0) return false;
  panels = centre + <usize>centreBytes();
  directionsBytes = matrixBytes() + sampleBytes(rows) + trialBytes(most);
  directions = allocate(directionsBytes);
  if (directions !== 0) return true;
  release(centre, basisBytes);
  return false;
}

function storeCentre(): void {
  for (let i = 0; i < sampleCount; i++) addScaled(centre, sampleRow(i), stride, 1);
  scale(centre, stride, 1 / <f32>sampleCount);
}

/** Stores residuals of sample rows first…first + count − 1, and the panels' products with them. */
function projectSample(first: i32, count: i32): void {
  for (let i = 0; i < count; i++) storeResidual(sampleRow(first + i), centre, residualsPtr() + ((<usize>(i * pitch())) << 2));
  projectOn(panels, most, residualsPtr(), count, projectionsPtr(), pitch());
}

/** One block of a pass: directions += sketchᵀ · residual. */
function passOver(): void {
  if (cursor === 0) memory.fill(directions, 0, <usize>most * ((<usize>pitch()) << 2));
  const used = sampleCount - QUERIES;
  const count = min(BLOCK_ROWS, used - cursor);
  projectSample(cursor, count);
  const rowBytes = (<usize>pitch()) << 2;
  const sketchBytes = (<usize>most) << 2;
  // Eight coordinates of the residuals stay in the first-level cache for all directions.
  for (let at: usize = 0; at < rowBytes; at += 32) {
    for (let i: usize = 0; i < <usize>most; i += 4) {
      const a = projectionsPtr() + (i << 2);
      const b = residualsPtr() + at;
      multiplyTile(a, a + 4, a + 8, a + 12, sketchBytes, b, rowBytes, count, directions + i * rowBytes + at, rowBytes);
    }
  }
  spent += 2 * <i64>count * projectionCost(most);
  cursor += count;
  if (cursor < used) return;
  cursor = 0;
  passes++;
  phase = ORTHONORMAL;
}

/**
 * Handles one direction: subtracts its components along the earlier ones, twice, because once is not enough
 * where little is left. Then scales it to length 1.
 */
function orthonormalize(): void {
  const own = rowOf(cursor);
  const before = dot(own, own, pitch());
  for (let again = 0; again < 2; again++) {
    for (let i = 0; i < cursor; i++) addScaled(own, rowOf(i), pitch(), -dot(own, rowOf(i), pitch()));
  }
  spent += 4 * <i64>cursor * <i64>pitch() + 1024;
  const after = dot(own, own, pitch());
  if (after > before * 1e-8) {
    scale(own, pitch(), <f32>(1 / Math.sqrt(after)));
    cursor++;
  } else {
    // The rows lie in fewer dimensions, or cannot be squared as numbers.
    most--;
    if (cursor < most) memory.copy(own, rowOf(most), (<usize>pitch()) << 2);
  }
  if (cursor < most) return;
  most &= ~31;
  if (most === 0) {
    giveUp();
    return;
  }
  storePanels(directions, most, panels);
  cursor = 0;
  if (passes < PASSES) {
    phase = PASS;
    return;
  }
  spent += beginTrial(panels, most, centre);
  phase = LIMITS;
}

function rowOf(i: i32): usize {
  return directions + ((<usize>(i * pitch())) << 2);
}

/** Processes one block of the sample to find the trial's limits. */
function findLimits(): void {
  const used = sampleCount - QUERIES;
  const count = min(BLOCK_ROWS, used - cursor);
  spent += limitQueries(cursor, count);
  cursor += count;
  if (cursor < used) return;
  tryHeads();
  cursor = 32;
  phase = TRIAL;
}

/** Tries one number of dimensions. After the last, the best becomes a basis, if there is one. */
function tryNext(): void {
  spent += tryDimension(cursor);
  cursor += 32;
  if (cursor <= most) return;
  if (bestDimension === 0) {
    if (!isForced) {
      giveUp();
      return;
    }
    chooseDimension(32 + (<i32>(nextRandom() & 0xffff) % (most >> 5)) * 32);
  }
  for (let j: usize = 0; j < <usize>pitch(); j++) mix(directions + (j << 2), bestDimension, (<usize>pitch()) << 2);
  storePanels(directions, bestDimension, panels);
  skew = 0;
  cursor = 0;
  phase = MEASURE;
}

/** Measures row after row. After the last, the basis is installed. */
function measure(): void {
  skew += skewOf(directions, cursor);
  spent += 4 * <i64>(cursor + 1) * <i64>pitch();
  if (++cursor < bestDimension) return;
  const epsilon = epsilonOf(skew);
  if (!(epsilon < MAX_SKEWNESS)) {
    giveUp();
    return;
  }
  phase = IDLE;
  if (sketchDimension > 0) release(installed, installedBytes);
  setBasis(bestDimension, panels, centre, epsilon);
  installed = centre;
  installedBytes = basisSizeOf(bestDimension);
  // The part beyond the directions in use is adjacent to the other memory of learning.
  release(installed + <usize>installedBytes, basisBytes - installedBytes);
  release(directions, directionsBytes);
}
