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
  const capacity = rows.reduce((most, row) => Math.max(most, row + 1), 0);
  const mask = new Uint32Array(Math.ceil(capacity / 32));
  const places = new Uint32Array(capacity);
  rows.forEach((row, i) => {
    mask[row >>> 5]! |= 1 << (row & 31);
    places[row] = i;
  });
  const [found] = shard.search(query, { k: rows.length, similarity, mask });
  found!.rows.forEach((row, i) => {
    scores[places[row]!] = found!.scores[i]!;
  });
  return scores;
}
