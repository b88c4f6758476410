/**
 * Codes of a query for dot products: p = q − centre ≈ p̂ = Q · unit, integers |Q| ≤ 127, fewer where
 * dot-of-four.ts has no room.
 *
 * All in float64 from float32 values (in two lanes, because there are as many sets of codes as centres). So a
 * norm computed here is within a relative n·2^-52 of the true one; NORM_SLACK covers that.
 */

import { MAX_CODABLE, MIN_CODABLE } from "../codes/codes";
import { Query } from "../exact/query";
import { addF64 } from "../lanes";
import { centreOf, codeDimension, headDimension, stride } from "../rows/rows";
import { enlarged, SLACK_OF_ONE, setCoefficients } from "./coefficients";
import { largestDotCode, smallerDotCode, storeStarts, storeTwoCodes } from "./dot-of-four";

const NORM_SLACK: f64 = 1 + 1e-9;

/** Elements j and j + 1 of the centre, f64x2. */
function centreAt(centre: usize, j: i32): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(centre + ((<usize>j) << 2)));
}

/** Elements j and j + 1 of p, f64x2, for j below the stride; padding is 0. */
function residual(query: Query, centre: usize, j: i32): v128 {
  const q = v128.load(query.doubles + ((<usize>j) << 3));
  return centre === 0 ? q : f64x2.sub(q, centreAt(centre, j));
}

/**
 * Makes the codes for a segment's centre, and the coefficients of their bounds, unless they exist. Sets
 * query.isCodable.
 */
export function prepareDotCodes(query: Query, segment: usize): void {
  const centre = centreOf(segment);
  if (query.centre === centre) return;
  query.centre = centre;
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
  query.norm = Math.sqrt(addF64(squares)) * NORM_SLACK;
  query.shift = addF64(shifts);
  query.centreNorm = Math.sqrt(addF64(centreSquares)) * NORM_SLACK;
  const code = largestDotCode();
  writeCodes(query, centre, largest, code);
  const smaller = smallerDotCode(query.dotCodes, code);
  if (smaller > 0) writeCodes(query, centre, largest, smaller);
  storeStarts(query.dotCodes);
  setCoefficients(query, query, 1, SLACK_OF_ONE);
  query.headLossFactor = enlarged(query.headCodedNorm, SLACK_OF_ONE);
}

/** Makes the codes of a query whose largest |p| gets the code `largestCode`, and measures their losses. */
function writeCodes(query: Query, centre: usize, largest: f64, largestCode: i32): void {
  const unit = largest / <f64>largestCode;
  const inverse = largest === 0 ? 0 : <f64>largestCode / largest;
  let codeSquares = f64x2.splat(0);
  let lossSquares = f64x2.splat(0);
  let headCodeSquares = f64x2.splat(0);
  let tailSquares = f64x2.splat(0);
  const head = headDimension;
  for (let j = 0; j < stride; j += 2) {
    if (j === head) headCodeSquares = codeSquares;
    const p = residual(query, centre, j);
    if (j >= head) tailSquares = f64x2.add(tailSquares, f64x2.mul(p, p));
    const pair = f64x2.nearest(f64x2.mul(p, f64x2.splat(inverse)));
    const loss = f64x2.sub(p, f64x2.mul(pair, f64x2.splat(unit)));
    codeSquares = f64x2.add(codeSquares, f64x2.mul(pair, pair));
    lossSquares = f64x2.add(lossSquares, f64x2.mul(loss, loss));
    const integers = i32x4.trunc_sat_f64x2_s_zero(pair);
    storeTwoCodes(query.dotCodes, j, i32x4.extract_lane(integers, 0), i32x4.extract_lane(integers, 1));
  }
  if (head >= stride) headCodeSquares = codeSquares;
  for (let j = stride; j < codeDimension; j += 2) storeTwoCodes(query.dotCodes, j, 0, 0);
  query.unit = unit;
  query.codedNorm = Math.sqrt(addF64(codeSquares)) * unit * NORM_SLACK;
  query.headCodedNorm = Math.sqrt(addF64(headCodeSquares)) * unit * NORM_SLACK;
  query.restNorm = Math.sqrt(addF64(tailSquares)) * NORM_SLACK;
  query.codeLoss = (Math.sqrt(addF64(lossSquares)) + query.norm * 1e-12) * NORM_SLACK;
}
