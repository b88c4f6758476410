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
import { costsOf } from "../dot/coefficients";
import { loadHalves } from "../lanes";
import { QuerySketch } from "./query-sketch";
import { SKETCH_GROUP_BYTES, SKETCH_LOSSES, SKETCH_RESTS, SKETCH_STEPS, sketchGroupPtr } from "./sketches";

/**
 * Replaces the Σ Q (2c − 15), i32[32], of rows first..first+31 of a segment by their bounds, f32[32].
 */
export function sketchBoundsOf32(sketch: QuerySketch, segment: usize, first: u32, sums: usize): void {
  const similarity = sketch.similarity;
  const productFactors = f32x4.splat(sketch.productFactor);
  const lossFactors = f32x4.splat(sketch.lossFactor);
  const restFactors = f32x4.splat(sketch.restFactor);
  const normFactors = f32x4.splat(sketch.normFactor);
  const constants = f32x4.splat(sketch.constant);
  let group = sketchGroupPtr(segment, first);
  for (const end = sums + 128; sums < end; sums += 16, group += SKETCH_GROUP_BYTES) {
    const steps = loadHalves(group + SKETCH_STEPS);
    const product = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(v128.load(sums)), productFactors), steps);
    const losses = f32x4.mul(loadHalves(group + SKETCH_LOSSES), lossFactors);
    const rests = f32x4.mul(loadHalves(group + SKETCH_RESTS), restFactors);
    v128.store(sums, costsOf(similarity, group, product, f32x4.add(losses, rests), normFactors, constants));
  }
}
