/**
 * hnswlib-node: HierarchicalNSW, its approximate index. Built by node-gyp at installation: needs a C++
 * compiler and Node's headers.
 */
import hnswlib from "hnswlib-node";
import { HNSW } from "./list.mjs";

export function open({ dimension, rows }) {
  const index = new hnswlib.HierarchicalNSW("cosine", dimension);
  index.initIndex({ maxElements: rows, m: HNSW.connectivity, efConstruction: HNSW.buildExpansion });
  return {
    add(firstRow, matrix) {
      for (let i = 0; i * dimension < matrix.length; i++)
        index.addPoint(Array.from(matrix.subarray(i * dimension, (i + 1) * dimension)), firstRow + i);
    },
    save: (file) => index.writeIndexSync(file),
    load: (file) => index.readIndexSync(file),
    tune: (ef) => index.setEf(ef),
    prepare: (vector) => Array.from(vector),
    search: (query, k) => index.searchKnn(query, k),
    answerOf: ({ neighbors }) => ({ rows: neighbors }),
  };
}
