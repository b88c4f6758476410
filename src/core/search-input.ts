/** What search and searchMany take, checked once for both kinds of index. */
import type { RowDirectory } from "./row-directory.ts";
import type { Similarity } from "./similarity.ts";
import { similarityCode } from "./similarity.ts";
import { checkK, toFloat32 } from "./vector-input.ts";
import type { Plan, ShardSearch } from "./vector-shard.ts";

/** Selects rows: a bit mask over rows of the directory (word row >> 5, bit row & 31; missing words select nothing), or a test of ids. */
export type SearchFilter = Uint32Array | ((id: string) => boolean);

export interface SearchOptions {
  /** How many results at most; an integer of at least 1, default 10. */
  k?: number;
  /** Default "cosineSimilarity". */
  similarity?: Similarity;
  filter?: SearchFilter | undefined;
  /** "floats" reads float32 only, without the codes: the same answer, later; for measurements. Default "auto". */
  plan?: Plan;
}

export interface SearchResult {
  /** How many vectors pass the filter. */
  totalCount: number;
  /** Best first; equal scores: lower id first, by code points. */
  results: { id: string; score: number }[];
}

/** @throws {TypeError | RangeError} for a bad k, similarity or filter. */
export function toShardSearch(options: SearchOptions, rows: RowDirectory): ShardSearch {
  const { k = 10, similarity = "cosineSimilarity", filter, plan } = options;
  checkK(k);
  similarityCode(similarity);
  return { k, similarity, mask: toMask(filter, rows), plan };
}

/** By its tag: it may come from another realm. */
function isMask(filter: SearchFilter): filter is Uint32Array {
  return ArrayBuffer.isView(filter) && filter[Symbol.toStringTag] === "Uint32Array";
}

function toMask(filter: SearchFilter | undefined, rows: RowDirectory): Uint32Array | undefined {
  if (filter === undefined || isMask(filter)) return filter;
  if (typeof filter !== "function") throw new TypeError("filter is neither a Uint32Array over rows nor a function of an id.");
  const mask = new Uint32Array(Math.ceil(rows.capacity / 32));
  for (const [id, row] of rows.entries()) if (filter(id)) mask[row >> 5]! |= 1 << (row & 31);
  return mask;
}

/**
 * Queries as f32[queries.length × dimension].
 *
 * @param nameAt  what messages call query i.
 * @throws {TypeError | RangeError} for a bad query, or a zero one with cosineSimilarity.
 */
export function toQueryMatrix(
  queries: readonly ArrayLike<number>[],
  dimension: number,
  similarity: Similarity,
  nameAt: (i: number) => string,
): Float32Array<ArrayBuffer> {
  const matrix = new Float32Array(queries.length * dimension);
  for (let i = 0; i < queries.length; i++) matrix.set(toQuery(queries[i]!, dimension, similarity, nameAt(i)), i * dimension);
  return matrix;
}

/**
 * One query as f32[dimension]: a Float32Array itself, not a copy.
 *
 * @throws as toQueryMatrix.
 */
export function toQuery(query: ArrayLike<number>, dimension: number, similarity: Similarity, name: string): Float32Array {
  const floats = toFloat32(name, query, dimension);
  if (similarity === "cosineSimilarity" && isZero(floats)) {
    throw new RangeError(`${name} is the zero vector, which has no direction; cosineSimilarity needs at least one element other than 0.`);
  }
  return floats;
}

function isZero(vector: Float32Array): boolean {
  for (const x of vector) if (x !== 0) return false;
  return true;
}
