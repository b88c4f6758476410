/**
 * Codes of four bits: v ≈ v̂ = (c − 7.5) Δ, c = 0…15, of the values of a sketch. The values are mixed
 * (learn.ts) so that all have the same spread and one step serves them all. Δ has four significant bits, so
 * (2c − 15) (Δ / 2) is exact in float32. 32 dimensions take 16 bytes: byte i has the code of dimension i in
 * its lower half and that of dimension 16 + i in its upper half.
 */
import { coarse } from "../codes/codes";
import { addF32Wide } from "../lanes";

/**
 * The step with the least loss for values with a Gaussian distribution, in units of their root mean square.
 */
const GAUSSIAN_STEP: f64 = 0.3352;

/** The smallest step, 2^-60, so that no product of bounds is subnormal. */
const MIN_STEP: f32 = 8.673617379884035e-19;

/** c − 7.5 of four values, f32x4. */
function levels(values: v128, inverse: v128): v128 {
  const floor = f32x4.floor(f32x4.mul(values, inverse));
  return f32x4.add(f32x4.max(f32x4.min(floor, f32x4.splat(7)), f32x4.splat(-8)), f32x4.splat(0.5));
}

/**
 * Σ (v − v̂)² for a step, in float32 lanes: within a relative (count + 8) 2^-24 of that of the differences as
 * computed.
 */
function squaredLoss(values: usize, count: i32, step: f32): f64 {
  const inverse = f32x4.splat(1 / step);
  const steps = f32x4.splat(step);
  let sum = f32x4.splat(0);
  const end = values + ((<usize>count) << 2);
  for (; values < end; values += 16) {
    const v = v128.load(values);
    const loss = f32x4.sub(v, f32x4.mul(levels(v, inverse), steps));
    sum = f32x4.add(sum, f32x4.mul(loss, loss));
  }
  return addF32Wide(sum);
}

/** The loss Σ (v − v̂)² of the step that chooseStep found. */
export let chosenLoss: f64 = 0;

/** A step with nearly the least loss for `count` values with the norm `norm`. */
export function chooseStep(values: usize, count: i32, norm: f64): f32 {
  let step = max(MIN_STEP, coarse(<f32>((GAUSSIAN_STEP * norm) / Math.sqrt(<f64>count))));
  let loss = squaredLoss(values, count, step);
  // Tails heavier than Gaussian need larger steps. The grid's neighbour is an eighth of an octave or more
  // away.
  for (let i = 0; i < 32; i++) {
    const larger = reinterpret<f32>(reinterpret<u32>(step) + 0x00100000);
    const largerLoss = squaredLoss(values, count, larger);
    if (!(largerLoss < loss)) break;
    step = larger;
    loss = largerLoss;
  }
  chosenLoss = loss;
  return step;
}

/** Replaces values by their decoded codes. */
export function decode(values: usize, count: i32, step: f32): void {
  const inverse = f32x4.splat(1 / step);
  const steps = f32x4.splat(step);
  const end = values + ((<usize>count) << 2);
  for (; values < end; values += 16) v128.store(values, f32x4.mul(levels(v128.load(values), inverse), steps));
}

/** Codes of 16 values, as bytes. */
function sixteen(values: usize, inverse: v128): v128 {
  const half = f32x4.splat(7.5);
  const a = i32x4.trunc_sat_f32x4_s(f32x4.add(levels(v128.load(values), inverse), half));
  const b = i32x4.trunc_sat_f32x4_s(f32x4.add(levels(v128.load(values, 16), inverse), half));
  const c = i32x4.trunc_sat_f32x4_s(f32x4.add(levels(v128.load(values, 32), inverse), half));
  const d = i32x4.trunc_sat_f32x4_s(f32x4.add(levels(v128.load(values, 48), inverse), half));
  return i8x16.narrow_i16x8_u(i16x8.narrow_i32x4_u(a, b), i16x8.narrow_i32x4_u(c, d));
}

/** Writes the codes of `count` values, a multiple of 32: count / 2 bytes. */
export function encode(values: usize, count: i32, step: f32, to: usize): void {
  const inverse = f32x4.splat(1 / step);
  const end = values + ((<usize>count) << 2);
  for (; values < end; values += 128, to += 16) {
    v128.store(to, v128.or(sixteen(values, inverse), i8x16.shl(sixteen(values + 64, inverse), 4)));
  }
}
