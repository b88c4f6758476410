/**
 * In which order a score is added up, which is part of what a score is: element i goes to lane i mod 8, and the lanes are joined as below.
 * The one place that the oracles of the tests and of the benches take it from; the core has its own, in assembly/ and in TypeScript.
 */
export const LANES = 8;

/** @param lanes  LANES sums. */
export function joinLanes(lanes) {
  const [a, b, c, d, e, f, g, h] = lanes;
  return a + c + (e + g) + (b + d + (f + h));
}
