/**
 * What a row's codes lose, split for cascade-many.ts: over the dimensions whose code is 0 or 255, where values may be clipped, and over the others. The
 * former are few, and lose much; the latter lose little each. One loss of both would have to allow for a query that is large in just the former.
 *
 *   ŷ6 = ((c | 3) − 1.5 − 136) Δ/16, the middle of the four codes with the same upper 6 bits: exact in float32, as ŷ8 is
 *
 * Kept are ‖y − ŷ6‖₂ and ‖y − ŷ8‖₂ over the others, and ‖y − ŷ6‖₁ and ‖y − ŷ6‖₂ over the former, where no |y − ŷ8| is larger: there ŷ6 lies 3Δ/32 inwards
 * of ŷ8, and y at most Δ/32. In float32 all is as in codes.ts, with fewer terms.
 */

// Sums over the row measured last.
export let otherSixSquares: f64 = 0;
export let otherFullSquares: f64 = 0;
export let clippedSquares: f64 = 0;
export let clippedAbsolutes: f64 = 0;

function sumLanes(v: v128): f64 {
  return <f64>f32x4.extract_lane(v, 0) + <f64>f32x4.extract_lane(v, 1) + <f64>f32x4.extract_lane(v, 2) + <f64>f32x4.extract_lane(v, 3);
}

/** Measures a residual, f32[count], for a step. `count` is a multiple of 4. */
export function measureSplitLosses(residual: usize, count: i32, step: f32): void {
  const inverse = f32x4.splat(16 / step);
  const unit = f32x4.splat(step * 0.0625);
  const lowest = f32x4.splat(-136);
  const highest = f32x4.splat(119);
  let sixSquares = f32x4.splat(0);
  let fullSquares = f32x4.splat(0);
  let squares = f32x4.splat(0);
  let absolutes = f32x4.splat(0);
  const end = residual + ((<usize>count) << 2);
  for (let at = residual; at < end; at += 16) {
    const y = v128.load(at);
    // c − 136 as codes.ts has it, and with the middle of four: −136 is a multiple of 4.
    const full = f32x4.min(f32x4.max(f32x4.nearest(f32x4.mul(y, inverse)), lowest), highest);
    const six = f32x4.sub(f32x4.convert_i32x4_s(v128.or(i32x4.trunc_sat_f32x4_s(full), i32x4.splat(3))), f32x4.splat(1.5));
    const isClipped = v128.or(f32x4.eq(full, lowest), f32x4.eq(full, highest));
    const fullLoss = v128.andnot(f32x4.sub(y, f32x4.mul(full, unit)), isClipped);
    const sixLoss = f32x4.sub(y, f32x4.mul(six, unit));
    const otherSixLoss = v128.andnot(sixLoss, isClipped);
    const clippedLoss = f32x4.abs(v128.and(sixLoss, isClipped));
    fullSquares = f32x4.add(fullSquares, f32x4.mul(fullLoss, fullLoss));
    sixSquares = f32x4.add(sixSquares, f32x4.mul(otherSixLoss, otherSixLoss));
    squares = f32x4.add(squares, f32x4.mul(clippedLoss, clippedLoss));
    absolutes = f32x4.add(absolutes, clippedLoss);
  }
  otherSixSquares = sumLanes(sixSquares);
  otherFullSquares = sumLanes(fullSquares);
  clippedSquares = sumLanes(squares);
  clippedAbsolutes = sumLanes(absolutes);
}
