/**
 * Lodestone itself, built by `npm run build`. On Node 20 the relaxed build needs a flag, which the server
 * sets for itself and a user of the library has to set.
 */
import v8 from "node:v8";
import { init, RELAXED_SIMD_FLAG, VectorIndex } from "../../../dist/index.js";
import { idOf } from "../../oracle.mjs";

const answerOf = ({ results }) => ({ rows: results.map(({ id }) => Number(id)), scores: results.map(({ score }) => score) });

export async function open({ dimension, variant }) {
  if (variant === "relaxed" && process.versions.node.startsWith("20.")) v8.setFlagsFromString(RELAXED_SIMD_FLAG);
  init({ build: variant });
  const index = await VectorIndex.create({ dimension });
  return {
    add(firstRow, matrix) {
      index.upsertMany(
        Array.from({ length: matrix.length / dimension }, (_, i) => idOf(firstRow + i)),
        matrix,
      );
    },
    prepare: (vector) => vector,
    search: (query, k) => index.search(query, { k }),
    searchMany: (queries, k) => index.searchMany(queries, { k }),
    answerOf,
  };
}
