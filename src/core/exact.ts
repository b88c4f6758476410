/**
 * The scores of assembly/exact/exact.ts and assembly/exact/similarity.ts in plain JavaScript, operation by
 * operation, so the results are identical in every bit. Lane j adds the terms of the elements i ≡ j (mod 8)
 * in ascending i. The lanes are joined as ((l0 + l2) + (l4 + l6)) + ((l1 + l3) + (l5 + l7)).
 *
 * Lanes are local variables: sums that do not wait for each other take less time than the one sum of a plain
 * loop, where each addition waits for the one before. Two rows x and y at a time, so that an element of the query
 * is read once for both; four lanes at a time (of elements first + 0 to 3 mod 8), as registers are sixteen.
 * Each function goes over many rows, because engines optimize a loop inside of one function best; the three differ only
 * in their term, which as a function of its own would be called for each element. Rows and queries
 * are padded with zeros to a multiple of eight elements, which changes no sum.
 */
import type { Similarity } from "./similarity.ts";

/** The number of elements of a padded row. */
export const paddedLength = (dimension: number): number => Math.ceil(dimension / 8) * 8;

/** Sums of `count` padded rows, f32 in `data` from starts[r]. The query is float32 widened to float64. */
type Sums = (data: Float32Array, starts: Uint32Array, count: number, query: Float64Array, sums: Float64Array) => void;

const dots: Sums = (data, starts, count, query, sums) => {
  for (let r = 0; r < count; r += 2) {
    const x = starts[r]!;
    const y = starts[Math.min(r + 1, count - 1)]!;
    let evenX = 0;
    let oddX = 0;
    let evenY = 0;
    let oddY = 0;
    for (let first = 0; first <= 4; first += 4) {
      let x0 = 0;
      let x1 = 0;
      let x2 = 0;
      let x3 = 0;
      let y0 = 0;
      let y1 = 0;
      let y2 = 0;
      let y3 = 0;
      for (let i = first; i < query.length; i += 8) {
        const q0 = query[i]!;
        x0 += data[x + i]! * q0;
        y0 += data[y + i]! * q0;
        const q1 = query[i + 1]!;
        x1 += data[x + i + 1]! * q1;
        y1 += data[y + i + 1]! * q1;
        const q2 = query[i + 2]!;
        x2 += data[x + i + 2]! * q2;
        y2 += data[y + i + 2]! * q2;
        const q3 = query[i + 3]!;
        x3 += data[x + i + 3]! * q3;
        y3 += data[y + i + 3]! * q3;
      }
      evenX += x0 + x2;
      oddX += x1 + x3;
      evenY += y0 + y2;
      oddY += y1 + y3;
    }
    sums[r] = evenX + oddX;
    if (r + 1 < count) sums[r + 1] = evenY + oddY;
  }
};

const sumsOfDistances: Sums = (data, starts, count, query, sums) => {
  for (let r = 0; r < count; r += 2) {
    const x = starts[r]!;
    const y = starts[Math.min(r + 1, count - 1)]!;
    let evenX = 0;
    let oddX = 0;
    let evenY = 0;
    let oddY = 0;
    for (let first = 0; first <= 4; first += 4) {
      let x0 = 0;
      let x1 = 0;
      let x2 = 0;
      let x3 = 0;
      let y0 = 0;
      let y1 = 0;
      let y2 = 0;
      let y3 = 0;
      for (let i = first; i < query.length; i += 8) {
        const q0 = query[i]!;
        x0 += Math.abs(data[x + i]! - q0);
        y0 += Math.abs(data[y + i]! - q0);
        const q1 = query[i + 1]!;
        x1 += Math.abs(data[x + i + 1]! - q1);
        y1 += Math.abs(data[y + i + 1]! - q1);
        const q2 = query[i + 2]!;
        x2 += Math.abs(data[x + i + 2]! - q2);
        y2 += Math.abs(data[y + i + 2]! - q2);
        const q3 = query[i + 3]!;
        x3 += Math.abs(data[x + i + 3]! - q3);
        y3 += Math.abs(data[y + i + 3]! - q3);
      }
      evenX += x0 + x2;
      oddX += x1 + x3;
      evenY += y0 + y2;
      oddY += y1 + y3;
    }
    sums[r] = evenX + oddX;
    if (r + 1 < count) sums[r + 1] = evenY + oddY;
  }
};

const sumsOfSquaredDistances: Sums = (data, starts, count, query, sums) => {
  for (let r = 0; r < count; r += 2) {
    const x = starts[r]!;
    const y = starts[Math.min(r + 1, count - 1)]!;
    let evenX = 0;
    let oddX = 0;
    let evenY = 0;
    let oddY = 0;
    for (let first = 0; first <= 4; first += 4) {
      let x0 = 0;
      let x1 = 0;
      let x2 = 0;
      let x3 = 0;
      let y0 = 0;
      let y1 = 0;
      let y2 = 0;
      let y3 = 0;
      for (let i = first; i < query.length; i += 8) {
        const q0 = query[i]!;
        x0 += square(data[x + i]! - q0);
        y0 += square(data[y + i]! - q0);
        const q1 = query[i + 1]!;
        x1 += square(data[x + i + 1]! - q1);
        y1 += square(data[y + i + 1]! - q1);
        const q2 = query[i + 2]!;
        x2 += square(data[x + i + 2]! - q2);
        y2 += square(data[y + i + 2]! - q2);
        const q3 = query[i + 3]!;
        x3 += square(data[x + i + 3]! - q3);
        y3 += square(data[y + i + 3]! - q3);
      }
      evenX += x0 + x2;
      oddX += x1 + x3;
      evenY += y0 + y2;
      oddY += y1 + y3;
    }
    sums[r] = evenX + oddX;
    if (r + 1 < count) sums[r + 1] = evenY + oddY;
  }
};

const square = (z: number): number => z * z;

const FIRST = new Uint32Array(1);
const oneSum = new Float64Array(1);

/** Σ x², added in the defined order. */
export function squares(data: Float32Array, at: number, dimension: number): number {
  const row = new Float32Array(paddedLength(dimension));
  row.set(data.subarray(at, at + dimension));
  dots(row, FIRST, 1, Float64Array.from(row), oneSum);
  return oneSum[0]!;
}

/** Scores of `count` padded rows, f32 in `data` from starts[r], whose Σ x² are squares[r]. */
export type RowsScorer = (data: Float32Array, starts: Uint32Array, count: number, squares: Float64Array, scores: Float64Array) => void;

/** @returns the scorer of one query. */
export function rowsScorer(similarity: Similarity, query: Float32Array): RowsScorer {
  const wide = new Float64Array(paddedLength(query.length));
  wide.set(query);
  if (similarity === "dotProduct") return (data, starts, count, _, scores) => dots(data, starts, count, wide, scores);
  if (similarity !== "cosineSimilarity") {
    const sums = similarity === "l1" ? sumsOfDistances : sumsOfSquaredDistances;
    return (data, starts, count, _, scores) => {
      sums(data, starts, count, wide, scores);
      for (let r = 0; r < count; r++) scores[r] = 1 / (1 + scores[r]!);
    };
  }
  const querySquares = squares(query, 0, query.length);
  return (data, starts, count, rowSquares, scores) => {
    dots(data, starts, count, wide, scores);
    for (let r = 0; r < count; r++) {
      const cosine = rowSquares[r] === 0 ? 0 : scores[r]! / Math.sqrt(querySquares * rowSquares[r]!);
      scores[r] = 1 + Math.max(-1, Math.min(1, cosine));
    }
  };
}

/** @returns the scorer of one query, row by row: (data, at) -> score of the row at `at`, whose Σ x² is `rowSquares`. */
export function scorer(similarity: Similarity, query: Float32Array): (data: Float32Array, at: number, rowSquares: number) => number {
  const scoreRows = rowsScorer(similarity, query);
  const [row, square, score] = [new Float32Array(paddedLength(query.length)), new Float64Array(1), new Float64Array(1)];
  return (data, at, rowSquares) => {
    row.set(data.subarray(at, at + query.length));
    square[0] = rowSquares;
    scoreRows(row, FIRST, 1, square, score);
    return score[0]!;
  };
}
