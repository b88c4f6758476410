/**
 * The trial: how many dimensions of a sketch pay? Rows of the sample that learning left out serve as queries
 * to others of its rows. For each number of dimensions it counts how many of these the l2 bound would leave,
 * as in sketch/bounds.ts except for the query's own codes. The limit is the nearest row of the whole sample.
 */
import { codeDimension, headDimension, liveRows, stride } from "../rows/rows";
import { BLOCK_ROWS, pitch, projectionCost, projectOn, storePanels, storeResidual } from "./basis";
import { chooseStep, chosenLoss, decode } from "./four-bits";
import { mix } from "./mix";
import { dot, wideDot } from "./products";
import { QUERIES, sampleCount, sampleRow } from "./sample";
import { projectionsPtr, residualsPtr } from "./sketches";

/** Rows of the trial. */
const TRIAL_ROWS: i32 = 256;
/**
 * Costs relative to a byte of codes in a sequential read: a dimension of a sketch, one multiplication of a
 * query's projection, a row's metadata and bound.
 */
const SKETCH_COST: f64 = 0.75;
const PROJECTION_COST: f64 = 0.75;
const ROW_COST: f64 = 20;
/** The rows that are left are read with gaps between them. */
const GAP_COST: f64 = 2;
/** A sketch has to save at least this share of the cost. */
const MIN_SAVING: f64 = 0.15;

// State of the current trial.
let most: i32 = 0;
let centre: usize = 0;
/**
 * f32[(TRIAL_ROWS + QUERIES) × most], f32[QUERIES × pitch] and f32[4 × QUERIES], of one row and three that
 * are none.
 */
let trialSketches: usize = 0;
let queryPanels: usize = 0;
let headDots: usize = 0;
/** f64: ‖y‖² and ‖y_t‖² of rows and queries of the trial, and the least Σ(p − y)² of each query. */
const squares = memory.data(8 * 280, 16);
const tailSquares = memory.data(8 * 280, 16);
const limits = memory.data(8 * 24, 16);
let bestCost: f64 = 0;
/** The number of dimensions with the least cost so far; 0: none pays. */
export let bestDimension: i32 = 0;

/** Size of a trial of up to `dimensions` directions. */
export function trialBytes(dimensions: i32): u64 {
  return queryPanelBytes() + headDotBytes() + ((<u64>(TRIAL_ROWS + QUERIES) * <u64>dimensions) << 2);
}

function queryPanelBytes(): u64 {
  return <u64>QUERIES * ((<u64>pitch()) << 2);
}

function headDotBytes(): u64 {
  return (<u64>(4 * QUERIES)) << 2;
}

/** Sets the memory for the next trial: trialBytes at `ptr`. */
export function placeTrial(ptr: usize): void {
  queryPanels = ptr;
  headDots = queryPanels + <usize>queryPanelBytes();
  trialSketches = headDots + <usize>headDotBytes();
}

function trialSketch(i: i32): usize {
  return trialSketches + ((<usize>(i * most)) << 2);
}

function trialRows(): i32 {
  return min(TRIAL_ROWS, sampleCount - QUERIES);
}

/** Sample number of trial row `i`. The trial's rows lie evenly among the sample's, the queries at its end. */
function trialSample(i: i32): i32 {
  const rows = trialRows();
  return i < rows ? (i * (sampleCount - QUERIES)) / rows : sampleCount - QUERIES + i - rows;
}

/**
 * Begins a trial: sketches of its rows and queries, and the queries as panels.
 *
 * @param basis  panels of `dimensions` directions, the leading ones first.
 * @param origin  the centre.
 * @returns the number of multiplications, as all functions here do.
 */
export function beginTrial(basis: usize, dimensions: i32, origin: usize): i64 {
  most = dimensions;
  centre = origin;
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
    projectOn(basis, most, residualsPtr(), count, projectionsPtr(), pitch());
    memory.copy(trialSketch(first), projectionsPtr(), (<usize>(count * most)) << 2);
  }
  for (let i = 0; i < QUERIES; i++) storeResidual(sampleRow(trialSample(rows + i)), centre, residualsPtr() + ((<usize>(i * pitch())) << 2));
  storePanels(residualsPtr(), QUERIES, queryPanels);
  for (let i = 0; i < QUERIES; i++) store<f64>(limits + ((<usize>i) << 3), Infinity);
  return <i64>(rows + QUERIES) * projectionCost(most);
}

/** The queries' distances to a block of the sample. The least is the limit for the trial's bounds. */
export function limitQueries(first: i32, count: i32): i64 {
  for (let i = 0; i < count; i++) storeResidual(sampleRow(first + i), centre, residualsPtr() + ((<usize>(i * pitch())) << 2));
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
  return <i64>count * projectionCost(QUERIES);
}

function squaresOfQuery(k: i32): f64 {
  return load<f64>(squares + ((<usize>(trialRows() + k)) << 3));
}

/** Overrides the trial's result: uses this number of dimensions, whether it pays or not. */
export function chooseDimension(m: i32): void {
  bestDimension = m;
}

/** The cost of a row without sketches: by heads if these help, otherwise by whole codes. */
export function tryHeads(): void {
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

/** The cost of a row with sketches of `m` dimensions, a multiple of 32. */
export function tryDimension(m: i32): i64 {
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
  return 2 * <i64>rows * <i64>QUERIES * <i64>m;
}
