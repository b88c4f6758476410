/**
 * The plane in which records are shown: their mean and the two directions of greatest spread (principal
 * components). Computed by orthogonal iteration on a sample, without ever forming the d × d matrix.
 * Deterministic: the same records give the same picture.
 */

/**
 * Limit for rows times dimensions of the sample: two seconds of iteration at worst, usually a tenth of one.
 */
const SAMPLE_ELEMENTS = 1_000_000;
const LEAST_ROWS = 200;
const ITERATIONS = 40;

export interface PrincipalPlane {
  readonly mean: Float64Array;
  /** Orthonormal. */
  readonly first: Float64Array;
  readonly second: Float64Array;
  /** Share of the sample's variance in the plane, 0 to 1. */
  readonly share: number;
}

/**
 * @param count  number of rows.
 * @param rowAt  returns a row's vector; called for some rows, evenly spread.
 */
export function principalPlane(count: number, dimension: number, rowAt: (row: number) => ArrayLike<number>): PrincipalPlane {
  const sampled = Math.min(count, Math.max(LEAST_ROWS, Math.floor(SAMPLE_ELEMENTS / dimension)));
  const sample = Array.from({ length: sampled }, (_, i) => Float64Array.from(rowAt(Math.floor((i * count) / sampled))));
  const mean = new Float64Array(dimension);
  for (const row of sample) for (let j = 0; j < dimension; j++) mean[j]! += row[j]! / sampled;
  let variance = 0;
  for (const row of sample) {
    for (let j = 0; j < dimension; j++) {
      row[j]! -= mean[j]!;
      variance += row[j]! ** 2 / sampled;
    }
  }
  const first = start(dimension, 1);
  const second = start(dimension, 2);
  let spread = 0;
  for (let i = 0; i < ITERATIONS; i++) {
    const a = spreadAlong(sample, first);
    const b = spreadAlong(sample, second);
    first.set(a);
    normalize(first, 0);
    second.set(b);
    orthogonalize(second, first);
    normalize(second, 1);
    spread = meanSquare(sample, first) + meanSquare(sample, second);
  }
  fixSign(first);
  fixSign(second);
  return { mean, first, second, share: variance === 0 ? 1 : Math.min(1, spread / variance) };
}

export function project(plane: PrincipalPlane, vector: ArrayLike<number>): [x: number, y: number] {
  let x = 0;
  let y = 0;
  for (let j = 0; j < plane.mean.length; j++) {
    const centered = vector[j]! - plane.mean[j]!;
    x += centered * plane.first[j]!;
    y += centered * plane.second[j]!;
  }
  return [x, y];
}

/** The vector at a place in the plane. */
export function lift(plane: PrincipalPlane, x: number, y: number): Float32Array {
  return Float32Array.from(plane.mean, (value, j) => value + x * plane.first[j]! + y * plane.second[j]!);
}

/** Two start vectors that are orthogonal to the data only by coincidence. */
function start(dimension: number, seed: number): Float64Array {
  return Float64Array.from({ length: dimension }, (_, j) => Math.cos((j + 1) * seed * 1.7) + 0.3 * seed);
}

/** Sᵀ S v. */
function spreadAlong(sample: readonly Float64Array[], direction: Float64Array): Float64Array {
  const sum = new Float64Array(direction.length);
  for (const row of sample) {
    const along = dot(row, direction);
    for (let j = 0; j < sum.length; j++) sum[j]! += along * row[j]!;
  }
  return sum;
}

function meanSquare(sample: readonly Float64Array[], direction: Float64Array): number {
  let sum = 0;
  for (const row of sample) sum += dot(row, direction) ** 2;
  return sum / sample.length;
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let j = 0; j < a.length; j++) sum += a[j]! * b[j]!;
  return sum;
}

function orthogonalize(vector: Float64Array, against: Float64Array): void {
  const along = dot(vector, against);
  for (let j = 0; j < vector.length; j++) vector[j]! -= along * against[j]!;
}

/** @param axis  used if nothing is left (all records on one line, or at one point). */
function normalize(vector: Float64Array, axis: number): void {
  const norm = Math.sqrt(dot(vector, vector));
  if (norm > 1e-12) for (let j = 0; j < vector.length; j++) vector[j]! /= norm;
  else vector.fill(0)[axis % vector.length] = 1;
}

/** Makes the element of greatest magnitude positive. */
function fixSign(vector: Float64Array): void {
  const greatest = vector.reduce((best, value) => (Math.abs(value) > Math.abs(best) ? value : best), 0);
  if (greatest < 0) for (let j = 0; j < vector.length; j++) vector[j] = -vector[j]!;
}
