/**
 * Codes of a query for dot products: p = q − centre ≈ p̂ = Q · unit, integers |Q| ≤ largestDotCode().
 * All in float64 from float32 values, so a norm computed here is within a relative n·2^-52 of the true one; NORM_SLACK covers that.
 */
import { MAX_CODABLE, MIN_CODABLE } from "./codes";
import { largestDotCode, storeDotCode, storeDotWindows } from "./plane-dot";
import { Query } from "./query";
import { centrePtr, codeDimension, dimension, isCentredPtr } from "./rows";

const NORM_SLACK: f64 = 1 + 1e-9;

/** The centre of a segment, or 0 when it is zero. */
export function centreOf(segment: usize): usize {
  return load<u32>(isCentredPtr(segment)) !== 0 ? centrePtr(segment) : 0;
}

function residual(query: Query, centre: usize, j: i32): f64 {
  const q = load<f64>(query.doubles + ((<usize>j) << 3));
  return centre === 0 ? q : q - <f64>load<f32>(centre + ((<usize>j) << 2));
}

/** Makes the codes for a segment's centre, unless they are there. Sets query.isCodable. */
export function prepareDotCodes(query: Query, segment: usize): void {
  const centre = centreOf(segment);
  if (query.dotCentre === centre) return;
  query.dotCentre = centre;
  let largest: f64 = 0;
  let squares: f64 = 0;
  let shift: f64 = 0;
  let centreSquares: f64 = 0;
  for (let j = 0; j < dimension; j++) {
    const p = residual(query, centre, j);
    largest = Math.max(largest, Math.abs(p));
    squares += p * p;
    if (centre !== 0) {
      const c = <f64>load<f32>(centre + ((<usize>j) << 2));
      shift += c * load<f64>(query.doubles + ((<usize>j) << 3));
      centreSquares += c * c;
    }
  }
  query.isCodable = largest <= MAX_CODABLE && (largest >= MIN_CODABLE || largest === 0);
  if (!query.isCodable) return;
  const largestCode = <f64>largestDotCode();
  const unit = largest / largestCode;
  const inverse = largest === 0 ? 0 : largestCode / largest;
  let sum = 0;
  let codeSquares: f64 = 0;
  let lossSquares: f64 = 0;
  for (let j = 0; j < codeDimension; j++) {
    const p: f64 = j < dimension ? residual(query, centre, j) : 0;
    const code = <i32>nearest(p * inverse);
    const loss = p - <f64>code * unit;
    sum += code;
    codeSquares += <f64>code * <f64>code;
    lossSquares += loss * loss;
    storeDotCode(query.dotCodes, j, code);
  }
  if (ASC_FEATURE_RELAXED_SIMD) query.dotWindowBytes = storeDotWindows(query.dotCodes);
  query.dotUnit = unit;
  query.dotCodeSum = sum;
  query.norm = Math.sqrt(squares) * NORM_SLACK;
  query.codedNorm = Math.sqrt(codeSquares) * unit * NORM_SLACK;
  query.codeLoss = (Math.sqrt(lossSquares) + query.norm * 1e-12) * NORM_SLACK;
  query.shift = shift;
  query.centreNorm = Math.sqrt(centreSquares) * NORM_SLACK;
}
