/**
 * Hostile vectors for property tests: small integers (ties), ±0, subnormals, ±3e38, one ulp apart, mixed
 * scales.
 */
import fc from "fast-check";

const HARD = [
  0, -0, 1.401298464324817e-45, -1e-40, 1.1754943508222875e-38, 3.4028234663852886e38, -3.4e38, 3e38, 1, 1.0000001192092896, -1, 0.1,
];

const element = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: -2, max: 2 }) },
  { weight: 3, arbitrary: fc.float({ min: -1, max: 1, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(...HARD) },
  { weight: 1, arbitrary: fc.float({ noNaN: true, noDefaultInfinity: true }) },
);

/** Vectors of one dimension. A third of the time all elements are small integers, so that scores tie. */
export function vectorOf(dimension: number): fc.Arbitrary<Float32Array> {
  const of = (e: fc.Arbitrary<number>) => fc.array(e, { minLength: dimension, maxLength: dimension }).map((v) => Float32Array.from(v));
  return fc.oneof(of(fc.integer({ min: -1, max: 1 })), of(fc.float({ min: -1, max: 1, noNaN: true })), of(element));
}
