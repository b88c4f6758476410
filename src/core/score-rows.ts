/** The scores of given rows, by the search itself: it asks for as many results as there are rows. */
import type { Similarity } from "./similarity.ts";
import type { VectorShard } from "./vector-shard.ts";

/**
 * @param query  f32[dimension].
 * @param rows  each once, in any order.
 * @returns for each row its score, in float64 as a search gives it; NaN for a row without a vector.
 */
export function scoreRows(shard: VectorShard, query: Float32Array, rows: Uint32Array, similarity: Similarity): Float64Array {
  const scores = new Float64Array(rows.length).fill(Number.NaN);
  if (rows.length === 0) return scores;
  let capacity = 0;
  for (let i = 0; i < rows.length; i++) capacity = Math.max(capacity, rows[i]! + 1);
  const mask = new Uint32Array(Math.ceil(capacity / 32));
  const places = new Uint32Array(capacity);
  for (let i = 0; i < rows.length; i++) {
    mask[rows[i]! >>> 5]! |= 1 << (rows[i]! & 31);
    places[rows[i]!] = i;
  }
  const found = shard.search(query, { k: rows.length, similarity, mask })[0]!;
  for (let i = 0; i < found.rows.length; i++) scores[places[found.rows[i]!]!] = found.scores[i]!;
  return scores;
}
