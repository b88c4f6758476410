/**
 * Codes of a query for dot products: p = q − centre ≈ p̂ = Q · unit, integers |Q| ≤ largestDotCode().
 * All in float64 from float32 values (two lanes: a centre for each segment asks for as many sets of codes), so a norm computed here is within a relative n·2^-52 of the true one; NORM_SLACK covers that.
 */
import { MAX_CODABLE, MIN_CODABLE } from "./codes";
import { largestDotCode, storeDotCode, storeDotWindows } from "./dot-of-four";
import { Query } from "./query";
import { centreOf, codeDimension, dimension, headDimension, stride } from "./rows";

const NORM_SLACK: f64 = 1 + 1e-9;

/** The cut, as a multiple of the root mean square of p: what is best for normally distributed p and rows whose steps clip a few elements. */
const CUT: f64 = 1.5;

/** Elements j and j + 1 of the centre, f64x2. */
function centreAt(centre: usize, j: i32): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(centre + ((<usize>j) << 2)));
}

/** Elements j and j + 1 of p, f64x2, for j below the stride; padding is 0. */
function residual(query: Query, centre: usize, j: i32): v128 {
  const q = v128.load(query.doubles + ((<usize>j) << 3));
  return centre === 0 ? q : f64x2.sub(q, centreAt(centre, j));
}

function addLanes(v: v128): f64 {
  return f64x2.extract_lane(v, 0) + f64x2.extract_lane(v, 1);
}

/** Makes the codes for a segment's centre, unless they are there. Sets query.isCodable. */
export function prepareDotCodes(query: Query, segment: usize): void {
  const centre = centreOf(segment);
  if (query.dotCentre === centre) return;
  query.dotCentre = centre;
  let largests = f64x2.splat(0);
  let squares = f64x2.splat(0);
  let shifts = f64x2.splat(0);
  let centreSquares = f64x2.splat(0);
  for (let j = 0; j < stride; j += 2) {
    const p = residual(query, centre, j);
    largests = f64x2.pmax(largests, f64x2.abs(p));
    squares = f64x2.add(squares, f64x2.mul(p, p));
    if (centre !== 0) {
      const c = centreAt(centre, j);
      shifts = f64x2.add(shifts, f64x2.mul(c, v128.load(query.doubles + ((<usize>j) << 3))));
      centreSquares = f64x2.add(centreSquares, f64x2.mul(c, c));
    }
  }
  const largest = Math.max(f64x2.extract_lane(largests, 0), f64x2.extract_lane(largests, 1));
  query.isCodable = largest <= MAX_CODABLE && (largest >= MIN_CODABLE || largest === 0);
  if (!query.isCodable) return;
  const largestCode = <f64>largestDotCode();
  const unit = largest / largestCode;
  const inverse = largest === 0 ? 0 : largestCode / largest;
  const cut = CUT * Math.sqrt(addLanes(squares) / <f64>dimension);
  const codeCut = f64x2.splat(cut * inverse);
  let sums = f64x2.splat(0);
  let codeSquares = f64x2.splat(0);
  let lossSquares = f64x2.splat(0);
  let cutSquares = f64x2.splat(0);
  let headSums = f64x2.splat(0);
  let headCodeSquares = f64x2.splat(0);
  let tailSquares = f64x2.splat(0);
  const head = headDimension;
  for (let j = 0; j < stride; j += 2) {
    if (j === head) {
      headSums = sums;
      headCodeSquares = codeSquares;
    }
    const p = residual(query, centre, j);
    if (j >= head) tailSquares = f64x2.add(tailSquares, f64x2.mul(p, p));
    const pair = f64x2.nearest(f64x2.mul(p, f64x2.splat(inverse)));
    const loss = f64x2.sub(p, f64x2.mul(pair, f64x2.splat(unit)));
    sums = f64x2.add(sums, pair);
    codeSquares = f64x2.add(codeSquares, f64x2.mul(pair, pair));
    lossSquares = f64x2.add(lossSquares, f64x2.mul(loss, loss));
    const over = f64x2.pmax(f64x2.sub(f64x2.abs(pair), codeCut), f64x2.splat(0));
    cutSquares = f64x2.add(cutSquares, f64x2.mul(over, over));
    const integers = i32x4.trunc_sat_f64x2_s_zero(pair);
    storeDotCode(query.dotCodes, j, i32x4.extract_lane(integers, 0));
    storeDotCode(query.dotCodes, j + 1, i32x4.extract_lane(integers, 1));
  }
  if (head >= stride) {
    headSums = sums;
    headCodeSquares = codeSquares;
  }
  for (let j = stride; j < codeDimension; j++) storeDotCode(query.dotCodes, j, 0);
  if (ASC_FEATURE_RELAXED_SIMD) query.tailWindows = storeDotWindows(query.dotCodes);
  query.dotUnit = unit;
  query.dotCodeSum = <i32>addLanes(sums);
  query.norm = Math.sqrt(addLanes(squares)) * NORM_SLACK;
  query.codedNorm = Math.sqrt(addLanes(codeSquares)) * unit * NORM_SLACK;
  query.headCodeSum = <i32>addLanes(headSums);
  query.headCodedNorm = Math.sqrt(addLanes(headCodeSquares)) * unit * NORM_SLACK;
  query.tailNorm = Math.sqrt(addLanes(tailSquares)) * NORM_SLACK;
  query.codeLoss = (Math.sqrt(addLanes(lossSquares)) + query.norm * 1e-12) * NORM_SLACK;
  // The elements were cut at codeCut · unit, which is `cut` but for roundings.
  query.cut = cut * NORM_SLACK;
  query.cutNorm = (Math.sqrt(addLanes(cutSquares)) * unit + query.norm * 1e-12) * NORM_SLACK;
  query.shift = addLanes(shifts);
  query.centreNorm = Math.sqrt(addLanes(centreSquares)) * NORM_SLACK;
}
