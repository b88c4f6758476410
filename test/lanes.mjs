/**
 * The order in which a score is summed, which is part of the score's definition: element i goes to lane i mod 8, and
 * the lanes are joined as below. The oracles of the tests and of the benches share this file; the core has its own
 * definition, in assembly/ and in TypeScript.
 */
export const LANES = 8;

/** @param lanes  LANES sums. */
export function joinLanes(lanes) {
  const [a, b, c, d, e, f, g, h] = lanes;
  return a + c + (e + g) + (b + d + (f + h));
}
