/**
 * Lower bounds of a row's cost by its sketch, in the form of dot/bounds.ts. The count of roundings there
 * holds here too: the bounds have as many terms of as many factors. With the centre of the basis, x = centre
 * + y, q = centre + p, and by basis.ts,
 *   p·y ≤ u·s + ‖p − Bᵀu‖ ‖y − Bᵀs‖ + ε ‖u‖ ‖s‖
 *   u·s = û·ŝ + û·(s − ŝ) + (u − û)·s ≤ û·ŝ + ‖û‖ ‖s − ŝ‖ + ‖u − û‖ ‖s‖
 * and ‖s‖ ≤ √(1 + ε) ‖y‖. Here û·ŝ = (unit / 2) Δ Σ Q (2c − 15), an exact integer below 2^20, and |û·ŝ| ≤ ‖û‖
 * (√(1 + ε) ‖y‖ + ‖s − ŝ‖). The factor √(1 + ε) < 1.01 is covered because SLACK_OF_ONE is twice what is
 * needed.
 */
import { costsOfOne } from "../dot/coefficients";
import { loadHalves } from "../lanes";
import { QuerySketch } from "./query-sketch";
import { SKETCH_LOSSES, SKETCH_RESTS, SKETCH_STEPS, sketchGroupPtr } from "./sketches";

/** Bounds of rows first..first+3 of a segment, f32x4, from their Σ Q (2c − 15), i32x4. */
export function sketchBounds(sketch: QuerySketch, segment: usize, first: u32, sums: v128): v128 {
  const group = sketchGroupPtr(segment, first);
  const product = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sums), f32x4.splat(sketch.productFactor)), loadHalves(group + SKETCH_STEPS));
  const losses = f32x4.mul(loadHalves(group + SKETCH_LOSSES), f32x4.splat(sketch.lossFactor));
  const rests = f32x4.mul(loadHalves(group + SKETCH_RESTS), f32x4.splat(sketch.restFactor));
  return costsOfOne(sketch, group, product, f32x4.add(losses, rests));
}
