/**
 * The basis of sketches and its centre, both learnt (learn.ts) for all segments together. The basis is B, m ×
 * pitch float32 (pitch: the stride, rounded up to 8; padding 0). Its rows are directions along which the rows
 * of this shard spread most. What is projected on it is y' = fl(x − centre), and s = B y is computed as s' =
 * fl(B y'), both in float32.
 *
 * No property of B is assumed. How far its rows are from orthonormal is measured in float64: ε ≥ ‖B Bᵀ − I‖
 * in the Frobenius norm. Then ‖B v‖ ≤ √(1 + ε) ‖v‖, since ‖B‖² = ‖B Bᵀ‖. With r = y − Bᵀ s, for all y and p,
 * and u = B p:
 *   p·y = p·Bᵀs + p·r = u·s + p·r
 *   p·r = (p − Bᵀu)·r + u·B r,   B r = (I − B Bᵀ) s                  so  p·r ≤ ‖p − Bᵀu‖ ‖r‖ + ε ‖u‖ ‖s‖
 *   ‖r‖² = ‖y‖² − ‖s‖² + sᵀ(B Bᵀ − I) s ≤ ‖y‖² − (1 − ε) ‖s‖²        and so for p and u
 *
 * Roundings: y' is within u (1 + u) |y'| of y elementwise, u = 2^-24. A lane of s' is one chain of
 * `dimension` products and sums, fused or not, so it is within γ ‖b_i‖ ‖y'‖ of b_i·y', γ = n u / (1 − n u), n
 * ≤ stride + 5. Hence ‖s' − B y‖ ≤ δ ‖y'‖ with
 *   δ = √(m (1 + ε)) · (stride + 8) · 1.001 · 2^-24 + 2^-23
 * (‖B‖ ≤ 1.01: bases with ε > 2^-7 are rejected.) Underflow adds at most √m · stride · 2^-149, which is
 * negligible beside δ · 2^-40; rows with a smaller ‖y'‖ get no sketch.
 *
 *   panels: for each eight rows of B | b_i[j], i = 0…7 | for j = 0…pitch − 1: in the order in which a tile of
 *           products reads it
 */
import { stride } from "../rows/rows";
import { multiplyPanel, multiplyRow, wideDot } from "./products";

/** Rows projected at a time, so that a panel stays in the first-level cache. */
export const BLOCK_ROWS: i32 = 32;

/** Dimensions of the sketches, a multiple of 32; 0: there are none. */
export let sketchDimension: i32 = 0;
/** Number of the current basis. Segments with sketches of another basis do not use them. */
export let basisNumber: u32 = 0;
/** ε and δ. */
export let skewness: f64 = 0;
export let projectionError: f64 = 0;
/** Address of the centre, f32[stride]. */
export let basisCentre: usize = 0;
let panels: usize = 0;

/** Elements from one row to the next of a basis, or of residuals that are projected. */
export function pitch(): i32 {
  return (stride + 7) & ~7;
}

/** Installs a new basis. Sketches of the previous one become invalid. */
export function setBasis(dimensions: i32, newPanels: usize, centre: usize, epsilon: f64): void {
  sketchDimension = dimensions;
  panels = newPanels;
  basisCentre = centre;
  skewness = epsilon;
  projectionError = Math.sqrt(<f64>dimensions * (1 + epsilon)) * <f64>(stride + 8) * 1.001 * 5.9604644775390625e-8 + 1.1920928955078125e-7;
  basisNumber++;
}

/** Removes the basis. There are no sketches from now on. */
export function dropBasis(): void {
  sketchDimension = 0;
  basisNumber++;
}

/** Stores y' = fl(x − centre), f32[stride]. The pitch's padding is not written; it stays 0. */
export function storeResidual(x: usize, centre: usize, to: usize): void {
  const end = x + ((<usize>stride) << 2);
  for (; x < end; x += 16, centre += 16, to += 16) v128.store(to, f32x4.sub(v128.load(x), v128.load(centre)));
}

/**
 * Projects rows on a basis.
 *
 * @param from  f32[rows × pitch], with room for the next multiple of four rows.
 * @param to  f32[rows × dimensions], with the same extra room.
 * @param terms  the pitch, or fewer: then only that many coordinates are used.
 */
export function projectOn(basis: usize, dimensions: i32, from: usize, rows: i32, to: usize, terms: i32): void {
  const rowBytes = (<usize>pitch()) << 2;
  const sketchBytes = (<usize>dimensions) << 2;
  for (let panel = 0; panel < dimensions; panel += 8) {
    const b = basis + <usize>panel * rowBytes;
    for (let row = 0; row < rows; row += 4) {
      const a = from + <usize>row * rowBytes;
      const c = to + <usize>row * sketchBytes + ((<usize>panel) << 2);
      multiplyPanel(a, a + rowBytes, a + 2 * rowBytes, a + 3 * rowBytes, b, terms, c, sketchBytes);
    }
  }
}

/** Projects one row on the basis in use. */
export function projectOne(from: usize, to: usize): void {
  const bytes = (<usize>pitch()) << 2;
  for (let i: usize = 0; i < <usize>sketchDimension; i += 32) multiplyRow(from, panels + i * bytes, pitch(), to + (i << 2));
}

/** Projects rows on the basis in use. */
export function project(from: usize, rows: i32, to: usize): void {
  projectOn(panels, sketchDimension, from, rows, to, pitch());
}

/** Writes the panels of `dimensions` rows, f32[dimensions × pitch], a multiple of eight. */
export function storePanels(rows: usize, dimensions: i32, to: usize): void {
  for (let panel = 0; panel < dimensions; panel += 8) {
    for (let j = 0; j < pitch(); j++) {
      for (let i = 0; i < 8; i++) {
        store<f32>(to, load<f32>(rows + ((<usize>((panel + i) * pitch() + j)) << 2)));
        to += 4;
      }
    }
  }
}

/** Row i's part of ‖B Bᵀ − I‖²: its products with rows 0…i. */
export function skewOf(rows: usize, i: i32): f64 {
  const bytes = (<usize>pitch()) << 2;
  const own = rows + <usize>i * bytes;
  const length = wideDot(own, own, pitch()) - 1;
  let sum = length * length;
  for (let k = 0; k < i; k++) {
    const product = wideDot(own, rows + <usize>k * bytes, pitch());
    sum += 2 * product * product;
  }
  return sum;
}

/** ε, from the sum of the parts. The float64 sums are within 1e-11 of the true ones. */
export function epsilonOf(sum: f64): f64 {
  return Math.sqrt(sum) * 1.0001 + 1e-7;
}

/** Multiplications that projecting one row takes. */
export function projectionCost(dimensions: i32): i64 {
  return <i64>dimensions * <i64>pitch();
}
