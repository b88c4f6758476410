/**
 * usearch's exactSearch over the caller's own matrix (its Index is approximate). It reads an ArrayBuffer from
 * its first byte, whatever the view says (usearch 2.25.3, javascript/lib.cpp), so every array passed to it
 * starts at byte 0.
 */
import usearch from "usearch";

const { exactSearch, MetricKind } = usearch;

export function open({ dimension, rows }) {
  const matrix = new Float32Array(rows * dimension);
  const search = (queries, k) => exactSearch(matrix, queries, dimension, k, MetricKind.Cos, 1);
  return {
    add: (firstRow, part) => matrix.set(part, firstRow * dimension),
    prepare: (vector) => Float32Array.from(vector),
    prepareMany: (vectors) => Float32Array.from(vectors.flatMap((vector) => Array.from(vector))),
    search,
    searchMany: search,
    answerOf: ({ keys }) => ({ rows: Array.from(keys, Number) }),
    answersOf: ({ keys }, k) =>
      Array.from({ length: keys.length / k }, (_, i) => ({ rows: Array.from(keys.subarray(i * k, i * k + k), Number) })),
  };
}
