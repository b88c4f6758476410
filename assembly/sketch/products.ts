/**
 * Products of small matrices in float32: all multiplications for learning a basis and projecting rows on it.
 * Relaxed SIMD may fuse a product and its addition, which rounds less; nothing else depends on it.
 */

import { addF32 } from "../lanes";

function addProduct(sum: v128, a: v128, b: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, sum);
  return f32x4.add(sum, f32x4.mul(a, b));
}

/**
 * c[i][0..7] += Σ_j a_i[j] · b[j][0..7] for i < 4 and j < terms, each lane in one chain of additions.
 *
 * @param aStep, bStep, cStep  bytes from one j, or row of c, to the next.
 */
export function multiplyTile(
  a0: usize,
  a1: usize,
  a2: usize,
  a3: usize,
  aStep: usize,
  b: usize,
  bStep: usize,
  terms: i32,
  c: usize,
  cStep: usize,
): void {
  let s00 = v128.load(c);
  let s01 = v128.load(c, 16);
  let s10 = v128.load(c + cStep);
  let s11 = v128.load(c + cStep, 16);
  let s20 = v128.load(c + 2 * cStep);
  let s21 = v128.load(c + 2 * cStep, 16);
  let s30 = v128.load(c + 3 * cStep);
  let s31 = v128.load(c + 3 * cStep, 16);
  const end = b + <usize>terms * bStep;
  while (b < end) {
    const b0 = v128.load(b);
    const b1 = v128.load(b, 16);
    const x0 = v128.load32_splat(a0);
    s00 = addProduct(s00, x0, b0);
    s01 = addProduct(s01, x0, b1);
    const x1 = v128.load32_splat(a1);
    s10 = addProduct(s10, x1, b0);
    s11 = addProduct(s11, x1, b1);
    const x2 = v128.load32_splat(a2);
    s20 = addProduct(s20, x2, b0);
    s21 = addProduct(s21, x2, b1);
    const x3 = v128.load32_splat(a3);
    s30 = addProduct(s30, x3, b0);
    s31 = addProduct(s31, x3, b1);
    a0 += aStep;
    a1 += aStep;
    a2 += aStep;
    a3 += aStep;
    b += bStep;
  }
  v128.store(c, s00);
  v128.store(c, s01, 16);
  v128.store(c + cStep, s10);
  v128.store(c + cStep, s11, 16);
  v128.store(c + 2 * cStep, s20);
  v128.store(c + 2 * cStep, s21, 16);
  v128.store(c + 3 * cStep, s30);
  v128.store(c + 3 * cStep, s31, 16);
}

/**
 * c[i][0..7] = Σ_j a_i[j] · b[j][0..7] for i < 4 and j < terms: for rows a_i, f32[terms], and a panel b,
 * f32[terms × 8]. Four terms per iteration, each lane still in one chain of additions. The branches between
 * them keep V8 from moving all loads to the front and spilling registers. Against one term per iteration, in
 * turns in one process, loading 100,000 × 768 and the first search took 4 to 7 % less CPU time.
 */
export function multiplyPanel(a0: usize, a1: usize, a2: usize, a3: usize, b: usize, terms: i32, c: usize, cStep: usize): void {
  let s00 = f32x4.splat(0);
  let s01 = s00;
  let s10 = s00;
  let s11 = s00;
  let s20 = s00;
  let s21 = s00;
  let s30 = s00;
  let s31 = s00;
  const end = b + ((<usize>terms) << 5);
  const end1 = end - 32;
  const end2 = end - 64;
  const end3 = end - 96;
  while (b < end) {
    let b0 = v128.load(b);
    let b1 = v128.load(b, 16);
    let x = v128.load32_splat(a0);
    s00 = addProduct(s00, x, b0);
    s01 = addProduct(s01, x, b1);
    x = v128.load32_splat(a1);
    s10 = addProduct(s10, x, b0);
    s11 = addProduct(s11, x, b1);
    x = v128.load32_splat(a2);
    s20 = addProduct(s20, x, b0);
    s21 = addProduct(s21, x, b1);
    x = v128.load32_splat(a3);
    s30 = addProduct(s30, x, b0);
    s31 = addProduct(s31, x, b1);
    if (b === end1) break;
    b0 = v128.load(b, 32);
    b1 = v128.load(b, 48);
    x = v128.load32_splat(a0, 4);
    s00 = addProduct(s00, x, b0);
    s01 = addProduct(s01, x, b1);
    x = v128.load32_splat(a1, 4);
    s10 = addProduct(s10, x, b0);
    s11 = addProduct(s11, x, b1);
    x = v128.load32_splat(a2, 4);
    s20 = addProduct(s20, x, b0);
    s21 = addProduct(s21, x, b1);
    x = v128.load32_splat(a3, 4);
    s30 = addProduct(s30, x, b0);
    s31 = addProduct(s31, x, b1);
    if (b === end2) break;
    b0 = v128.load(b, 64);
    b1 = v128.load(b, 80);
    x = v128.load32_splat(a0, 8);
    s00 = addProduct(s00, x, b0);
    s01 = addProduct(s01, x, b1);
    x = v128.load32_splat(a1, 8);
    s10 = addProduct(s10, x, b0);
    s11 = addProduct(s11, x, b1);
    x = v128.load32_splat(a2, 8);
    s20 = addProduct(s20, x, b0);
    s21 = addProduct(s21, x, b1);
    x = v128.load32_splat(a3, 8);
    s30 = addProduct(s30, x, b0);
    s31 = addProduct(s31, x, b1);
    if (b === end3) break;
    b0 = v128.load(b, 96);
    b1 = v128.load(b, 112);
    x = v128.load32_splat(a0, 12);
    s00 = addProduct(s00, x, b0);
    s01 = addProduct(s01, x, b1);
    x = v128.load32_splat(a1, 12);
    s10 = addProduct(s10, x, b0);
    s11 = addProduct(s11, x, b1);
    x = v128.load32_splat(a2, 12);
    s20 = addProduct(s20, x, b0);
    s21 = addProduct(s21, x, b1);
    x = v128.load32_splat(a3, 12);
    s30 = addProduct(s30, x, b0);
    s31 = addProduct(s31, x, b1);
    b += 128;
    a0 += 16;
    a1 += 16;
    a2 += 16;
    a3 += 16;
  }
  v128.store(c, s00);
  v128.store(c, s01, 16);
  v128.store(c + cStep, s10);
  v128.store(c + cStep, s11, 16);
  v128.store(c + 2 * cStep, s20);
  v128.store(c + 2 * cStep, s21, 16);
  v128.store(c + 3 * cStep, s30);
  v128.store(c + 3 * cStep, s31, 16);
}

/**
 * c[0..31] = Σ_j a[j] · b[j][0..31], where each eight of them are in a separate panel, f32[terms × 8], one
 * after the other. Each chain of additions is as long as in multiplyTile.
 */
export function multiplyRow(a: usize, b: usize, terms: i32, c: usize): void {
  const apart = (<usize>terms) << 5;
  let s0 = f32x4.splat(0);
  let s1 = s0;
  let s2 = s0;
  let s3 = s0;
  let s4 = s0;
  let s5 = s0;
  let s6 = s0;
  let s7 = s0;
  const end = b + apart;
  for (; b < end; b += 32, a += 4) {
    const x = v128.load32_splat(a);
    const second = b + apart;
    const third = second + apart;
    const fourth = third + apart;
    s0 = addProduct(s0, x, v128.load(b));
    s1 = addProduct(s1, x, v128.load(b, 16));
    s2 = addProduct(s2, x, v128.load(second));
    s3 = addProduct(s3, x, v128.load(second, 16));
    s4 = addProduct(s4, x, v128.load(third));
    s5 = addProduct(s5, x, v128.load(third, 16));
    s6 = addProduct(s6, x, v128.load(fourth));
    s7 = addProduct(s7, x, v128.load(fourth, 16));
  }
  v128.store(c, s0);
  v128.store(c, s1, 16);
  v128.store(c, s2, 32);
  v128.store(c, s3, 48);
  v128.store(c, s4, 64);
  v128.store(c, s5, 80);
  v128.store(c, s6, 96);
  v128.store(c, s7, 112);
}

/** Σ a b over `count` float32, a multiple of 4, in float64. */
export function wideDot(a: usize, b: usize, count: i32): f64 {
  let low = f64x2.splat(0);
  let high = f64x2.splat(0);
  const end = a + ((<usize>count) << 2);
  while (a < end) {
    const x = v128.load(a);
    const y = v128.load(b);
    low = f64x2.add(low, f64x2.mul(f64x2.promote_low_f32x4(x), f64x2.promote_low_f32x4(y)));
    high = f64x2.add(
      high,
      f64x2.mul(f64x2.promote_low_f32x4(i32x4.shuffle(x, x, 2, 3, 2, 3)), f64x2.promote_low_f32x4(i32x4.shuffle(y, y, 2, 3, 2, 3))),
    );
    a += 16;
    b += 16;
  }
  const sum = f64x2.add(low, high);
  return f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1);
}

/** The same in float32, approximately. */
export function dot(a: usize, b: usize, count: i32): f32 {
  let sum0 = f32x4.splat(0);
  let sum1 = sum0;
  const end = a + ((<usize>(count & ~7)) << 2);
  while (a < end) {
    sum0 = addProduct(sum0, v128.load(a), v128.load(b));
    sum1 = addProduct(sum1, v128.load(a, 16), v128.load(b, 16));
    a += 32;
    b += 32;
  }
  if (count & 4) sum0 = addProduct(sum0, v128.load(a), v128.load(b));
  return addF32(f32x4.add(sum0, sum1));
}

/** a += factor · b over `count` float32, a multiple of 4. */
export function addScaled(a: usize, b: usize, count: i32, factor: f32): void {
  const factors = f32x4.splat(factor);
  const end = a + ((<usize>count) << 2);
  while (a < end) {
    v128.store(a, f32x4.add(v128.load(a), f32x4.mul(factors, v128.load(b))));
    a += 16;
    b += 16;
  }
}

/** a *= factor. */
export function scale(a: usize, count: i32, factor: f32): void {
  const factors = f32x4.splat(factor);
  const end = a + ((<usize>count) << 2);
  for (; a < end; a += 16) v128.store(a, f32x4.mul(factors, v128.load(a)));
}
