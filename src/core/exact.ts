/**
 * The scores of assembly/exact/exact.ts and assembly/exact/similarity.ts in plain JavaScript, operation by
 * operation, so the results are identical in every bit. Lane j adds the terms of the elements i ≡ j (mod 8)
 * in ascending i. The lanes are joined as ((l0 + l2) + (l4 + l6)) + ((l1 + l3) + (l5 + l7)).
 */
import type { Similarity } from "./similarity.ts";

/** Rows are f32 in `data`, starting at `at`. The query is float32 widened to float64. */
type Sum = (data: Float32Array, at: number, query: Float64Array) => number;

const lanes = new Float64Array(8);

function joinLanes(): number {
  return lanes[0]! + lanes[2]! + (lanes[4]! + lanes[6]!) + (lanes[1]! + lanes[3]! + (lanes[5]! + lanes[7]!));
}

const dot: Sum = (data, at, query) => {
  lanes.fill(0);
  for (let i = 0; i < query.length; i++) lanes[i & 7]! += data[at + i]! * query[i]!;
  return joinLanes();
};

const sumOfDistances: Sum = (data, at, query) => {
  lanes.fill(0);
  for (let i = 0; i < query.length; i++) lanes[i & 7]! += Math.abs(data[at + i]! - query[i]!);
  return joinLanes();
};

const sumOfSquaredDistances: Sum = (data, at, query) => {
  lanes.fill(0);
  for (let i = 0; i < query.length; i++) {
    const z = data[at + i]! - query[i]!;
    lanes[i & 7]! += z * z;
  }
  return joinLanes();
};

/** Σ x², added in the defined order. */
export function squares(data: Float32Array, at: number, dimension: number): number {
  lanes.fill(0);
  for (let i = 0; i < dimension; i++) lanes[i & 7]! += data[at + i]! * data[at + i]!;
  return joinLanes();
}

/** @returns the scorer of one query: (data, at) -> score of the row at `at`, whose Σ x² is `rowSquares`. */
export function scorer(similarity: Similarity, query: Float32Array): (data: Float32Array, at: number, rowSquares: number) => number {
  const wide = Float64Array.from(query);
  if (similarity === "l1") return (data, at) => 1 / (1 + sumOfDistances(data, at, wide));
  if (similarity === "l2") return (data, at) => 1 / (1 + sumOfSquaredDistances(data, at, wide));
  const querySquares = squares(query, 0, query.length);
  return (data, at, rowSquares) => {
    if (rowSquares === 0) return 1;
    return 1 + Math.max(-1, Math.min(1, dot(data, at, wide) / Math.sqrt(querySquares * rowSquares)));
  };
}
