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
import {
  bitAt,
  codeDimension,
  headDimension,
  livePtr,
  liveRows,
  capacity as reservedRows,
  rowPtr,
  segmentCount,
  segmentPtr,
  segmentRows,
  segmentShift,
  stride,
} from "../rows/rows";
import { BLOCK_ROWS, dropBasis, pitch, projectionCost, projectOn, setBasis, sketchDimension, storePanels, storeResidual } from "./basis";
import { chooseStep, chosenLoss, decode } from "./four-bits";
import { addScaled, dot, multiplyTile, scale, wideDot } from "./products";
import {
  hasSketches,
  MAX_SKETCH_DIMENSION,
  projectionsPtr,
  reserveSketching,
  residualsPtr,
  sketchingCost,
  sketchSegment,
} from "./sketches";

/** Fewer dimensions have too little that a sketch could leave out, and fewer rows too little to learn from. */
const MIN_DIMENSION: i32 = 96;
const MIN_ROWS: u32 = 768;
/** While rows come in, nothing is learnt from fewer than these: soon there will be more. */
const MIN_ROWS_OF_LOAD: u32 = 8192;
/** Nor from fewer than one in so many of the rows that there is room for. */
const LOAD_SHARE: u32 = 4;
const MAX_SAMPLE: u32 = 4096;
/** Learnt again when so many times as many rows were written as there were. */
const RELEARN: u32 = 3;
const PASSES: i32 = 2;
/** Rows and queries of the trial; QUERIES is a multiple of 8. */
const TRIAL_ROWS: i32 = 256;
const QUERIES: i32 = 24;
/** A basis that is less orthonormal is not taken: 2^-7. */
const MAX_SKEWNESS: f64 = 0.0078125;

/** What costs as much as a byte of codes that are read one after the other: a dimension of a sketch, one multiplication of a query's projection, a row's metadata and bound. */
const SKETCH_COST: f64 = 0.75;
const PROJECTION_COST: f64 = 0.25;
const ROW_COST: f64 = 20;
/** Rows that are left are read with gaps between them. */
const GAP_COST: f64 = 2;
/** A sketch has to save at least this share of the cost. */
const MIN_SAVING: f64 = 0.15;

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
let sampleCount: i32 = 0;
/** Directions that `directions`, `panels` and `trialSketches` have room for, and the panels in use. */
let capacity: i32 = 0;
let installedCapacity: i32 = 0;
/** u32[MAX_SAMPLE]: rows; the last QUERIES are the queries of the trial. */
let sample: usize = 0;
/** f32[most × pitch] */
let directions: usize = 0;
/** f32[most × pitch], as panels; and those of the basis in use, when it is another. */
let panels: usize = 0;
let installedPanels: usize = 0;
let centre: usize = 0;
let installedCentre: usize = 0;
/** f32[(TRIAL_ROWS + QUERIES) × most], f32[QUERIES × pitch] and f32[4 × QUERIES], of one row and three that are none. */
let trialSketches: usize = 0;
let queryPanels: usize = 0;
let headDots: usize = 0;
/** f64: ‖y‖² and ‖y_t‖² of rows and queries of the trial, and the least Σ(p − y)² of each query. */
const squares = memory.data(8 * 280, 16);
const tailSquares = memory.data(8 * 280, 16);
const limits = memory.data(8 * 24, 16);
let bestCost: f64 = 0;
let bestDimension: i32 = 0;
let skew: f64 = 0;

let random: u32 = 1;

function nextRandom(): u32 {
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  return random;
}

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
  else if (phase === LIMITS) limitQueries();
  else if (phase === TRIAL) tryDimension();
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
  sampleCount = <i32>min(liveRows, MAX_SAMPLE);
  const largest = largestDimension();
  most = min(largest, (sampleCount / 4) & ~31);
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
  if (!reserveSketching(largest)) return false;
  const matrix = <u64>most * ((<u64>pitch()) << 2);
  if (sample === 0) {
    sample = allocate((<u64>MAX_SAMPLE) << 2);
    queryPanels = allocate(<u64>QUERIES * ((<u64>pitch()) << 2));
    headDots = allocate((<u64>(4 * QUERIES)) << 2);
    if (sample === 0 || queryPanels === 0 || headDots === 0) return false;
  }
  if (capacity < most) {
    capacity = 0;
    directions = allocate(matrix);
    panels = allocate(matrix);
    trialSketches = allocate(<u64>(TRIAL_ROWS + QUERIES) * ((<u64>most) << 2));
    if (directions === 0 || panels === 0 || trialSketches === 0) return false;
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

function sampleRow(i: i32): usize {
  return rowPtr(load<u32>(sample + ((<usize>i) << 2)));
}

/** Draws rows evenly from all live ones, one from each of sampleCount parts; those that are to be queries, evenly too, go to the end. */
function drawSample(): void {
  let seen: u64 = 0;
  let drawn: u64 = 0;
  const rows = <u64>liveRows;
  let next = <u64>nextRandom() % ((rows / <u64>sampleCount) | 1);
  for (let s: u32 = 0; s < segmentCount; s++) {
    for (let row: u32 = 0; row < segmentRows; row++) {
      if (!bitAt(livePtr(segmentPtr(s)), row)) continue;
      if (seen++ !== next) continue;
      store<u32>(sample + ((<usize>drawn) << 2), (s << segmentShift) + row);
      if (++drawn === <u64>sampleCount) break;
      // Somewhere in the next part.
      const from = (drawn * rows) / <u64>sampleCount;
      const to = ((drawn + 1) * rows) / <u64>sampleCount;
      next = max(seen, from + (<u64>nextRandom() % max<u64>(1, to - from)));
    }
    if (drawn === <u64>sampleCount) break;
  }
  sampleCount = <i32>drawn;
  for (let i = 0; i < QUERIES; i++) {
    const last = sample + ((<usize>(sampleCount - 1 - i)) << 2);
    const other = sample + ((<usize>(((sampleCount - QUERIES) * i) / QUERIES)) << 2);
    const row = load<u32>(last);
    store<u32>(last, load<u32>(other));
    store<u32>(other, row);
  }
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
  beginTrial();
}

function rowOf(i: i32): usize {
  return directions + ((<usize>(i * pitch())) << 2);
}

function trialSketch(i: i32): usize {
  return trialSketches + ((<usize>(i * most)) << 2);
}

function trialRows(): i32 {
  return min(TRIAL_ROWS, sampleCount - QUERIES);
}

/** Sample number of trial row `i`; its rows lie evenly among the sample's, the queries at its end. */
function trialSample(i: i32): i32 {
  const rows = trialRows();
  return i < rows ? (i * (sampleCount - QUERIES)) / rows : sampleCount - QUERIES + i - rows;
}

/** Sketches of the trial's rows and queries, and the queries as panels. */
function beginTrial(): void {
  const rows = trialRows();
  const head = headDimension;
  for (let first = 0; first < rows + QUERIES; first += BLOCK_ROWS) {
    const count = min(BLOCK_ROWS, rows + QUERIES - first);
    for (let i = 0; i < count; i++) {
      const residual = residualsPtr() + ((<usize>(i * pitch())) << 2);
      storeResidual(sampleRow(trialSample(first + i)), centre, residual);
      const all = wideDot(residual, residual, stride);
      const tail = head >= stride ? 0 : wideDot(residual + ((<usize>head) << 2), residual + ((<usize>head) << 2), stride - head);
      store<f64>(squares + ((<usize>(first + i)) << 3), all);
      store<f64>(tailSquares + ((<usize>(first + i)) << 3), tail);
    }
    projectOn(panels, most, residualsPtr(), count, projectionsPtr(), pitch());
    memory.copy(trialSketch(first), projectionsPtr(), (<usize>(count * most)) << 2);
  }
  for (let i = 0; i < QUERIES; i++) storeResidual(sampleRow(trialSample(rows + i)), centre, residualsPtr() + ((<usize>(i * pitch())) << 2));
  storePanels(residualsPtr(), QUERIES, queryPanels);
  for (let i = 0; i < QUERIES; i++) store<f64>(limits + ((<usize>i) << 3), Infinity);
  allowance -= <i64>(rows + QUERIES) * projectionCost(most);
  cursor = 0;
  phase = LIMITS;
}

/** The queries' distances to a block of the sample: the least is what the trial's bounds are held against. */
function limitQueries(): void {
  const used = sampleCount - QUERIES;
  const count = min(BLOCK_ROWS, used - cursor);
  for (let i = 0; i < count; i++) storeResidual(sampleRow(cursor + i), centre, residualsPtr() + ((<usize>(i * pitch())) << 2));
  projectOn(queryPanels, QUERIES, residualsPtr(), count, projectionsPtr(), pitch());
  for (let i = 0; i < count; i++) {
    const residual = residualsPtr() + ((<usize>(i * pitch())) << 2);
    const rowSquares = <f64>dot(residual, residual, pitch());
    for (let k = 0; k < QUERIES; k++) {
      const at = limits + ((<usize>k) << 3);
      const product = <f64>load<f32>(projectionsPtr() + ((<usize>(i * QUERIES + k)) << 2));
      store<f64>(at, Math.min(load<f64>(at), rowSquares + squaresOfQuery(k) - 2 * product));
    }
  }
  allowance -= <i64>count * projectionCost(QUERIES);
  cursor += count;
  if (cursor < used) return;
  tryHeads();
  cursor = 32;
  phase = TRIAL;
}

function squaresOfQuery(k: i32): f64 {
  return load<f64>(squares + ((<usize>(trialRows() + k)) << 3));
}

/** What a row costs without sketches: by heads, if these help, else by whole codes. */
function tryHeads(): void {
  bestDimension = 0;
  bestCost = <f64>codeDimension + ROW_COST;
  if (headDimension >= stride) return;
  const rows = trialRows();
  let left = 0;
  for (let i = 0; i < rows; i++) {
    const at = (<usize>i) << 3;
    storeResidual(sampleRow(trialSample(i)), centre, residualsPtr());
    projectOn(queryPanels, QUERIES, residualsPtr(), 1, headDots, headDimension);
    for (let k = 0; k < QUERIES; k++) {
      const tails = Math.sqrt(load<f64>(tailSquares + at) * load<f64>(tailSquares + ((<usize>(rows + k)) << 3)));
      const product = <f64>load<f32>(headDots + ((<usize>k) << 2)) + tails;
      if (!(load<f64>(squares + at) + squaresOfQuery(k) - 2 * product > load<f64>(limits + ((<usize>k) << 3)))) left++;
    }
  }
  const share = <f64>left / <f64>(rows * QUERIES);
  const cost = <f64>headDimension + ROW_COST + share * (<f64>(codeDimension - headDimension) * GAP_COST + ROW_COST);
  bestCost = Math.min(bestCost, cost);
}

/** What a row costs with sketches of `cursor` dimensions. */
function tryDimension(): void {
  const m = cursor;
  const rows = trialRows();
  const bytes = (<usize>m) << 2;
  // The queries first, f32[QUERIES × m], then row after row.
  const queries = residualsPtr();
  const values = projectionsPtr();
  for (let k = 0; k < QUERIES; k++) {
    memory.copy(queries + <usize>k * bytes, trialSketch(rows + k), bytes);
    mix(queries + <usize>k * bytes, m, 4);
  }
  let left = 0;
  for (let i = 0; i < rows; i++) {
    memory.copy(values, trialSketch(i), bytes);
    mix(values, m, 4);
    const sketchSquares = wideDot(values, values, m);
    const rowSquares = load<f64>(squares + ((<usize>i) << 3));
    decode(values, m, chooseStep(values, m, Math.sqrt(sketchSquares)));
    const loss = Math.sqrt(chosenLoss);
    const rest = Math.max(0, rowSquares - sketchSquares);
    for (let k = 0; k < QUERIES; k++) {
      const query = queries + <usize>k * bytes;
      const querySquares = <f64>dot(query, query, m);
      const all = squaresOfQuery(k);
      const product = <f64>dot(query, values, m) + Math.sqrt(querySquares) * loss + Math.sqrt(rest * Math.max(0, all - querySquares));
      if (!(rowSquares + all - 2 * product > load<f64>(limits + ((<usize>k) << 3)))) left++;
    }
  }
  const share = <f64>left / <f64>(rows * QUERIES);
  const own = SKETCH_COST * <f64>m + ROW_COST + (PROJECTION_COST * <f64>projectionCost(m)) / <f64>liveRows;
  const cost = own + share * (<f64>codeDimension + ROW_COST) * GAP_COST;
  if (cost < bestCost * (bestDimension === 0 ? 1 - MIN_SAVING : 1)) {
    bestCost = cost;
    bestDimension = m;
  }
  allowance -= 2 * <i64>rows * <i64>QUERIES * <i64>m;
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

/** Replaces groups of 32 of `count` float32, `step` bytes apart, by their Walsh–Hadamard transform; the members of a group are count / 32 elements apart. */
function mix(values: usize, count: i32, step: usize): void {
  const groups = <usize>count >> 5;
  const apart = groups * step;
  for (let group: usize = 0; group < groups; group++) {
    const first = values + group * step;
    for (let half: usize = 1; half < 32; half <<= 1) {
      for (let i: usize = 0; i < 32; i++) {
        if (i & half) continue;
        const a = first + i * apart;
        const b = a + half * apart;
        const x = load<f32>(a);
        const y = load<f32>(b);
        store<f32>(a, x + y);
        store<f32>(b, x - y);
      }
    }
    for (let i: usize = 0; i < 32; i++) store<f32>(first + i * apart, load<f32>(first + i * apart) * 0.1767767);
  }
}

/** Row i's part of ‖B Bᵀ − I‖², its products with rows 0…i. */
export function skewOf(rows: usize, i: i32): f64 {
  const bytes = (<usize>pitch()) << 2;
  const own = rows + <usize>i * bytes;
  const length = wideDot(own, own, pitch()) - 1;
  let sum = length * length;
  for (let k = 0; k < i; k++) {
    const product = wideDot(own, rows + <usize>k * bytes, pitch());
    sum += 2 * product * product;
  }
  return sum;
}

/** ε, from the sum of the parts; the float64 sums are within 1e-11 of the true ones. */
export function epsilonOf(sum: f64): f64 {
  return Math.sqrt(sum) * 1.0001 + 1e-7;
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
