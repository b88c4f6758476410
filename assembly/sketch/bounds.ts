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
import { cosineConstant, enlarged, normFactorOf, SLACK_OF_ONE, squaredConstant } from "../dot/coefficients";
import { Query } from "../exact/query";
import { COSINE } from "../exact/similarity";
import { loadHalves } from "../lanes";
import { NORMS, RESIDUAL_NORMS, SHIFTS } from "../rows/rows";
import { sketchOf } from "./query-sketch";
import { SKETCH_LOSSES, SKETCH_RESTS, SKETCH_STEPS, sketchGroupPtr } from "./sketches";

// Coefficients for one query, f32x4 of equal lanes.
let units: v128 = f32x4.splat(0);
let lossFactors: v128 = f32x4.splat(0);
let restFactors: v128 = f32x4.splat(0);
let normFactors: v128 = f32x4.splat(0);
let constants: v128 = f32x4.splat(0);
let isCosine: bool = true;

/** Call it before sketchBounds, for each query. */
export function setSketchCoefficients(query: Query, similarity: i32): void {
  const sketch = sketchOf(query);
  isCosine = similarity === COSINE;
  units = f32x4.splat(<f32>(0.5 * sketch.unit));
  lossFactors = f32x4.splat(enlarged(sketch.codedNorm, SLACK_OF_ONE));
  restFactors = f32x4.splat(enlarged(sketch.rest, SLACK_OF_ONE));
  normFactors = f32x4.splat(normFactorOf(sketch.codeLoss, sketch.codedNorm, sketch.centreNorm, SLACK_OF_ONE));
  constants = f32x4.splat(
    isCosine
      ? cosineConstant(sketch.shift, Math.sqrt(query.squares), sketch.centreNorm, SLACK_OF_ONE)
      : squaredConstant(sketch.norm, SLACK_OF_ONE),
  );
}

/** Bounds of rows first..first+3 of a segment, f32x4, from their Σ Q (2c − 15), i32x4. */
export function sketchBounds(segment: usize, first: u32, sums: v128): v128 {
  const group = sketchGroupPtr(segment, first);
  const product = f32x4.mul(f32x4.mul(f32x4.convert_i32x4_s(sums), units), loadHalves(group + SKETCH_STEPS));
  const lost = f32x4.add(
    f32x4.mul(loadHalves(group + SKETCH_LOSSES), lossFactors),
    f32x4.mul(loadHalves(group + SKETCH_RESTS), restFactors),
  );
  const norm = v128.load(group, RESIDUAL_NORMS);
  const upper = f32x4.add(f32x4.add(product, lost), f32x4.mul(norm, normFactors));
  if (isCosine) {
    const dot = f32x4.add(f32x4.add(upper, v128.load(group, SHIFTS)), constants);
    return f32x4.neg(f32x4.div(dot, v128.load(group, NORMS)));
  }
  const squares = f32x4.add(f32x4.mul(f32x4.mul(norm, norm), f32x4.splat(<f32>(1 - SLACK_OF_ONE))), constants);
  return f32x4.sub(squares, f32x4.add(upper, upper));
}
