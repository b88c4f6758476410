/**
 * hnswlib-node: BruteforceSearch, its exact index. Built by node-gyp at installation: needs a C++ compiler
 * and Node's headers.
 */
import hnswlib from "hnswlib-node";

export function open({ dimension, rows }) {
  const index = new hnswlib.BruteforceSearch("cosine", dimension);
  index.initIndex(rows);
  return {
    add(firstRow, matrix) {
      for (let i = 0; i * dimension < matrix.length; i++)
        index.addPoint(Array.from(matrix.subarray(i * dimension, (i + 1) * dimension)), firstRow + i);
    },
    prepare: (vector) => Array.from(vector),
    search: (query, k) => index.searchKnn(query, k),
    answerOf: ({ neighbors }) => ({ rows: neighbors }),
  };
}
