/**
 * The reference that defines every score: float64 sums over float32 values, in one defined order that the
 * scalar JavaScript build repeats operation by operation.
 *
 *   lane j (0..7) adds the terms of the elements i ≡ j (mod 8), in ascending i, starting from +0
 *   sum = ((l0 + l2) + (l4 + l6)) + ((l1 + l3) + (l5 + l7))
 *
 * A product of two float32 values is exact in float64. A difference, a square of it and each addition round
 * once, to nearest even. Padding elements are +0 in row and query and add +0 to a lane that is never −0, so
 * they change nothing. ±3e38 squared, 10,000 times, stays below 1e82.
 */

import { addF64 } from "../lanes";

/** v128 with two lanes: elements 0,1 of the four accumulators are lanes (0,1) (2,3) (4,5) (6,7). */
function join(a: v128, b: v128, c: v128, d: v128): f64 {
  return addF64(f64x2.add(f64x2.add(a, b), f64x2.add(c, d)));
}

/** Two float32 at `ptr`, widened to float64. */
function pair(ptr: usize): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(ptr));
}

/** @returns Σ x·q for a float32 row and a float64 query of `stride` elements, a multiple of 4. */
export function exactDot(xPtr: usize, qPtr: usize, stride: i32): f64 {
  let a = f64x2.splat(0);
  let b = f64x2.splat(0);
  let c = f64x2.splat(0);
  let d = f64x2.splat(0);
  const end = xPtr + ((<usize>(stride & ~7)) << 2);
  while (xPtr < end) {
    a = f64x2.add(a, f64x2.mul(pair(xPtr), v128.load(qPtr)));
    b = f64x2.add(b, f64x2.mul(pair(xPtr + 8), v128.load(qPtr, 16)));
    c = f64x2.add(c, f64x2.mul(pair(xPtr + 16), v128.load(qPtr, 32)));
    d = f64x2.add(d, f64x2.mul(pair(xPtr + 24), v128.load(qPtr, 48)));
    xPtr += 32;
    qPtr += 64;
  }
  if (stride & 4) {
    a = f64x2.add(a, f64x2.mul(pair(xPtr), v128.load(qPtr)));
    b = f64x2.add(b, f64x2.mul(pair(xPtr + 8), v128.load(qPtr, 16)));
  }
  return join(a, b, c, d);
}

/** @returns Σ x² for a float32 row. */
export function exactSquares(xPtr: usize, stride: i32): f64 {
  let a = f64x2.splat(0);
  let b = f64x2.splat(0);
  let c = f64x2.splat(0);
  let d = f64x2.splat(0);
  const end = xPtr + ((<usize>(stride & ~7)) << 2);
  while (xPtr < end) {
    const x0 = pair(xPtr);
    const x1 = pair(xPtr + 8);
    const x2 = pair(xPtr + 16);
    const x3 = pair(xPtr + 24);
    a = f64x2.add(a, f64x2.mul(x0, x0));
    b = f64x2.add(b, f64x2.mul(x1, x1));
    c = f64x2.add(c, f64x2.mul(x2, x2));
    d = f64x2.add(d, f64x2.mul(x3, x3));
    xPtr += 32;
  }
  if (stride & 4) {
    const x0 = pair(xPtr);
    const x1 = pair(xPtr + 8);
    a = f64x2.add(a, f64x2.mul(x0, x0));
    b = f64x2.add(b, f64x2.mul(x1, x1));
  }
  return join(a, b, c, d);
}

/** @returns Σ |x − q|. */
export function exactL1(xPtr: usize, qPtr: usize, stride: i32): f64 {
  let a = f64x2.splat(0);
  let b = f64x2.splat(0);
  let c = f64x2.splat(0);
  let d = f64x2.splat(0);
  const end = xPtr + ((<usize>(stride & ~7)) << 2);
  while (xPtr < end) {
    a = f64x2.add(a, f64x2.abs(f64x2.sub(pair(xPtr), v128.load(qPtr))));
    b = f64x2.add(b, f64x2.abs(f64x2.sub(pair(xPtr + 8), v128.load(qPtr, 16))));
    c = f64x2.add(c, f64x2.abs(f64x2.sub(pair(xPtr + 16), v128.load(qPtr, 32))));
    d = f64x2.add(d, f64x2.abs(f64x2.sub(pair(xPtr + 24), v128.load(qPtr, 48))));
    xPtr += 32;
    qPtr += 64;
  }
  if (stride & 4) {
    a = f64x2.add(a, f64x2.abs(f64x2.sub(pair(xPtr), v128.load(qPtr))));
    b = f64x2.add(b, f64x2.abs(f64x2.sub(pair(xPtr + 8), v128.load(qPtr, 16))));
  }
  return join(a, b, c, d);
}

function squaredDifference(xPtr: usize, qPtr: usize): v128 {
  const z = f64x2.sub(pair(xPtr), v128.load(qPtr));
  return f64x2.mul(z, z);
}

/** @returns Σ (x − q)². */
export function exactL2(xPtr: usize, qPtr: usize, stride: i32): f64 {
  let a = f64x2.splat(0);
  let b = f64x2.splat(0);
  let c = f64x2.splat(0);
  let d = f64x2.splat(0);
  const end = xPtr + ((<usize>(stride & ~7)) << 2);
  while (xPtr < end) {
    a = f64x2.add(a, squaredDifference(xPtr, qPtr));
    b = f64x2.add(b, squaredDifference(xPtr + 8, qPtr + 16));
    c = f64x2.add(c, squaredDifference(xPtr + 16, qPtr + 32));
    d = f64x2.add(d, squaredDifference(xPtr + 24, qPtr + 48));
    xPtr += 32;
    qPtr += 64;
  }
  if (stride & 4) {
    a = f64x2.add(a, squaredDifference(xPtr, qPtr));
    b = f64x2.add(b, squaredDifference(xPtr + 8, qPtr + 16));
  }
  return join(a, b, c, d);
}
