/**
 * Learns the basis of sketches from a sample of the rows, in steps that take a few milliseconds each, so that nobody waits for the whole:
 *
 *   centre      the sample's mean
 *   start       M directions, each a sum of sample rows with random signs
 *   pass        the directions times the sample's second moments (orthogonal iteration: Golub and Van Loan, Matrix Computations, §8.2.4; the leading directions come first)
 *   orthonormal by Gram and Schmidt; these two PASSES times
 *   trial       some rows of the sample that the passes left out are queries to others: how many rows would sketches of m dimensions leave, for each m?
 *   install     the best m, if it pays: B is its first m directions, mixed
 *   sketching   segment after segment
 *
 * Mixing: each 32 directions, taken from all parts of the spectrum, are replaced by their Walsh–Hadamard transform. The space is the same; coordinates that spread alike, and nearly as Gauss
 * has it, lose much less in four bits (LSA × 768, 384 dimensions: a quarter fewer rows left).
 * Nothing here has to be right for an answer to be right: what bounds need of the basis is measured when it is installed.
 */
import { encodeSegment, MAX_CODABLE } from "../codes/codes";
import { allocate } from "../rows/memory";
import { liveRows, capacity as reservedRows, segmentCount, segmentPtr, segmentRows, stride } from "../rows/rows";
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
import { drawSample, MAX_SAMPLE, nextRandom, QUERIES, reserveSample, sampleCount, sampleRow } from "./sample";
import {
  hasSketches,
  MAX_SKETCH_DIMENSION,
  projectionsPtr,
  reserveSketching,
  residualsPtr,
  sketchingCost,
  sketchSegment,
} from "./sketches";
import { beginTrial, bestDimension, limitQueries, reserveTrial, tryDimension, tryHeads } from "./trial";

/** Fewer dimensions have too little that a sketch could leave out, and fewer rows too little to learn from. */
const MIN_DIMENSION: i32 = 96;
const MIN_ROWS: u32 = 768;
/** While rows come in, nothing is learnt from fewer than these: soon there will be more. */
const MIN_ROWS_OF_LOAD: u32 = 8192;
/** Nor from fewer than one in so many of the rows that there is room for. */
const LOAD_SHARE: u32 = 4;
/** Learnt again when so many times as many rows were written as there were. */
const RELEARN: u32 = 3;
const PASSES: i32 = 2;
/** A basis that is less orthonormal is not taken: 2^-7. */
const MAX_SKEWNESS: f64 = 0.0078125;

const IDLE: i32 = 0;
const PASS: i32 = 1;
const ORTHONORMAL: i32 = 2;
const LIMITS: i32 = 3;
const TRIAL: i32 = 4;
const MEASURE: i32 = 5;
let phase: i32 = IDLE;

/** Rows written since the last learning began, and how many are to be before the next. */
let written: u32 = 0;
let wanted: u32 = MIN_ROWS;

/** Multiplications that may be done now. */
let allowance: i64 = 0;

// Of the learning in hand.
let most: i32 = 0;
let passes: i32 = 0;
let cursor: i32 = 0;
/** Directions that `directions` and `panels` have room for, and the panels in use. */
let capacity: i32 = 0;
let installedCapacity: i32 = 0;
/** f32[most × pitch] */
let directions: usize = 0;
/** f32[most × pitch], as panels; and those of the basis in use, when it is another. */
let panels: usize = 0;
let installedPanels: usize = 0;
let centre: usize = 0;
let installedCentre: usize = 0;
let skew: f64 = 0;

/** To be called for each row that is written. */
export function noteWritten(): void {
  written++;
}

/**
 * Learns and sketches for about `multiplications`.
 *
 * @param isLoading  rows are coming in: then a basis is not learnt from few.
 */
export function workOnSketches(multiplications: i64, isLoading: bool): void {
  allowance = multiplications;
  if (allowance <= 0 || stride < MIN_DIMENSION) return;
  const enough = isLoading ? max(MIN_ROWS_OF_LOAD, reservedRows() / LOAD_SHARE) : MIN_ROWS;
  if (phase === IDLE && liveRows >= enough && written >= wanted && !begin()) return;
  while (phase !== IDLE && allowance > 0) step();
  if (sketchDimension === 0) return;
  for (let s: u32 = 0; s < segmentCount && allowance > 0; s++) {
    const segment = segmentPtr(s);
    if (hasSketches(segment)) continue;
    allowance -= sketchingCost(segmentRows);
    encodeSegment(segment);
    if (!sketchSegment(segment)) {
      dropBasis();
      return;
    }
  }
}

/** Multiplications for a segment that came in: half as many again as its own sketches could take. */
export function loadingWork(): i64 {
  return (3 * <i64>segmentRows * projectionCost(largestDimension())) / 2;
}

/** Multiplications that are left of those that were given. */
export function allowanceLeft(): i64 {
  return allowance;
}

export function spend(multiplications: i64): void {
  allowance -= multiplications;
}

function step(): void {
  if (phase === PASS) passOver();
  else if (phase === ORTHONORMAL) orthonormalize();
  else if (phase === LIMITS) findLimits();
  else if (phase === TRIAL) tryNext();
  else measure();
}

function giveUp(): void {
  phase = IDLE;
  if (sketchDimension > 0) dropBasis();
}

function largestDimension(): i32 {
  return min(MAX_SKETCH_DIMENSION, ((stride * 2) / 3) & ~31);
}

/** Takes a sample and directions to start with. @returns false at the memory limit. */
function begin(): bool {
  written = 0;
  wanted = RELEARN * liveRows;
  const largest = largestDimension();
  most = min(largest, (<i32>min(liveRows, MAX_SAMPLE) / 4) & ~31);
  if (!reserveLearning(largest)) return false;
  drawSample();
  storeCentre();
  // As centres of segments: bounds are computed in float32.
  if (!(wideDot(centre, centre, stride) < MAX_CODABLE)) {
    giveUp();
    return true;
  }
  const rowBytes = (<usize>pitch()) << 2;
  memory.fill(directions, 0, <usize>most * rowBytes);
  for (let i = 0; i < sampleCount - QUERIES; i++) {
    storeResidual(sampleRow(i), centre, residualsPtr());
    addScaled(directions + <usize>(i % most) * rowBytes, residualsPtr(), stride, (nextRandom() & 256) === 0 ? 1 : -1);
  }
  passes = 0;
  cursor = 0;
  phase = ORTHONORMAL;
  return true;
}

function reserveLearning(largest: i32): bool {
  if (!reserveSketching(largest) || !reserveSample() || !reserveTrial(most)) return false;
  const matrix = <u64>most * ((<u64>pitch()) << 2);
  if (capacity < most) {
    capacity = 0;
    directions = allocate(matrix);
    panels = allocate(matrix);
    if (directions === 0 || panels === 0) return false;
    capacity = most;
  } else if (panels === 0) {
    panels = allocate(<u64>capacity * ((<u64>pitch()) << 2));
    if (panels === 0) return false;
  }
  if (centre === 0) {
    centre = allocate((<u64>stride) << 2);
    if (centre === 0) return false;
  }
  return true;
}

function storeCentre(): void {
  memory.fill(centre, 0, (<usize>stride) << 2);
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
      multiplyTile(a, a + 4, a + 8, a + 12, sketchBytes, b, rowBytes, count, directions + i * rowBytes + at, rowBytes, true);
    }
  }
  allowance -= 2 * <i64>count * projectionCost(most);
  cursor += count;
  if (cursor < used) return;
  cursor = 0;
  passes++;
  phase = ORTHONORMAL;
}

/** One direction: what it has of those before is taken away, twice, since once is not enough where little is left; then it is made as long as 1. */
function orthonormalize(): void {
  const own = rowOf(cursor);
  const before = dot(own, own, pitch());
  for (let again = 0; again < 2; again++) {
    for (let i = 0; i < cursor; i++) addScaled(own, rowOf(i), pitch(), -dot(own, rowOf(i), pitch()));
  }
  allowance -= 4 * <i64>cursor * <i64>pitch() + 1024;
  const after = dot(own, own, pitch());
  if (after > before * 1e-8) {
    scale(own, pitch(), <f32>(1 / Math.sqrt(after)));
    cursor++;
  } else {
    // The rows lie in fewer dimensions, or are not numbers that can be squared.
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
  allowance -= beginTrial(panels, most, centre);
  phase = LIMITS;
}

function rowOf(i: i32): usize {
  return directions + ((<usize>(i * pitch())) << 2);
}

/** A block of the sample, to find the trial's limits. */
function findLimits(): void {
  const used = sampleCount - QUERIES;
  const count = min(BLOCK_ROWS, used - cursor);
  allowance -= limitQueries(cursor, count);
  cursor += count;
  if (cursor < used) return;
  tryHeads();
  cursor = 32;
  phase = TRIAL;
}

/** One number of dimensions; after the last the best is made a basis, if there is one. */
function tryNext(): void {
  allowance -= tryDimension(cursor);
  cursor += 32;
  if (cursor <= most) return;
  if (bestDimension === 0) {
    giveUp();
    return;
  }
  for (let j: usize = 0; j < <usize>pitch(); j++) mix(directions + (j << 2), bestDimension, (<usize>pitch()) << 2);
  storePanels(directions, bestDimension, panels);
  skew = 0;
  cursor = 0;
  phase = MEASURE;
}

/** Measures row after row; after the last the basis is taken. */
function measure(): void {
  skew += skewOf(directions, cursor);
  allowance -= 4 * <i64>(cursor + 1) * <i64>pitch();
  if (++cursor < bestDimension) return;
  const epsilon = epsilonOf(skew);
  if (!(epsilon < MAX_SKEWNESS)) {
    giveUp();
    return;
  }
  phase = IDLE;
  setBasis(bestDimension, panels, centre, epsilon);
  // What the basis before had is free for the next.
  const before = installedCapacity === capacity ? installedPanels : 0;
  const centreBefore = installedCentre;
  installedPanels = panels;
  installedCapacity = capacity;
  installedCentre = centre;
  panels = before;
  centre = centreBefore;
}
