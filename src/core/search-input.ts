/** What search and searchMany take, checked once for both kinds of index. */
import type { RowColumns } from "./row-columns.ts";
import type { RowDirectory } from "./row-directory.ts";
import type { Similarity } from "./similarity.ts";
import { similarityCode } from "./similarity.ts";
import { checkK, toFloat32 } from "./vector-input.ts";
import type { Plan, ShardSearch } from "./vector-shard.ts";

/**
 * Selects rows: a bit mask over rows of the directory (word row >> 5, bit row & 31; missing words select nothing), a test of ids, or a filter over the index's
 * columns, as `{ year: { $ge: 2020 } }`.
 */
export type SearchFilter = Uint32Array | ((id: string) => boolean) | ColumnFilter;

/** In the grammar of the service's `filter`. */
export type ColumnFilter = { readonly [name: string]: unknown };

export interface SearchOptions {
  /** How many results at most; an integer of at least 1, default 10. */
  k?: number;
  /** Default "cosineSimilarity". */
  similarity?: Similarity;
  filter?: SearchFilter | undefined;
  /** Leaves out so many of the best; default 0. */
  offset?: number | undefined;
  /** Leaves out results that score less; `totalCount` counts them still. */
  scoreThreshold?: number | undefined;
  /** Columns whose values come with each result; default none. */
  columns?: readonly string[] | undefined;
  /**
   * For measurements and tests: the same answer, later. "floats" reads float32 only, without the codes. "sketches" first learns and makes
   * sketches of all rows (docs/core.md), whether they pay or not. Default "auto".
   */
  plan?: Plan;
}

export interface SearchHit {
  id: string;
  score: number;
  /** The values of the columns that were asked for. */
  columns?: Record<string, unknown>;
}

export interface SearchResult {
  /** How many vectors pass the filter. */
  totalCount: number;
  /** Best first; equal scores: lower id first, by code points. */
  results: SearchHit[];
}

/** A search, checked: what shards do, and what is made of their answers. */
export interface SearchPlan {
  shardSearch: ShardSearch;
  offset: number;
  scoreThreshold: number | undefined;
  columns: readonly string[] | undefined;
}

/** @throws {TypeError | RangeError} for a bad k, similarity, filter, offset or threshold; {LodestoneError} INVALID for a bad filter over columns. */
export function toSearchPlan(options: SearchOptions, rows: RowDirectory, rowColumns: RowColumns | undefined): SearchPlan {
  const { k = 10, similarity = "cosineSimilarity", filter, plan, offset = 0, scoreThreshold, columns } = options;
  checkK(k);
  similarityCode(similarity);
  if (!Number.isInteger(offset) || offset < 0) throw new RangeError(`offset is ${offset}; expected an integer of at least 0.`);
  if (scoreThreshold !== undefined && !Number.isFinite(scoreThreshold)) {
    throw new RangeError(`scoreThreshold is ${scoreThreshold}; expected a finite number.`);
  }
  if (columns !== undefined) withColumns(rowColumns, "columns").checkNames(columns);
  return { shardSearch: { k: k + offset, similarity, mask: toMask(filter, rows, rowColumns), plan }, offset, scoreThreshold, columns };
}

/** @throws {TypeError} where there are none. */
export function withColumns(columns: RowColumns | undefined, what: string): RowColumns {
  if (columns === undefined) throw new TypeError(`${what} needs columns; give the option \`columns\` when the index is created.`);
  return columns;
}

/** Offset and threshold are applied to the best, and the values looked up. */
export function toSearchResult(
  totalCount: number,
  best: SearchHit[],
  { offset, scoreThreshold, columns }: SearchPlan,
  rows: RowDirectory,
  rowColumns: RowColumns | undefined,
): SearchResult {
  let results = offset === 0 ? best : best.slice(offset);
  if (scoreThreshold !== undefined) results = results.filter(({ score }) => score >= scoreThreshold);
  if (columns !== undefined && rowColumns !== undefined) {
    for (const hit of results) {
      const row = rows.rowOf(hit.id);
      // The id may have been deleted while its shards searched.
      hit.columns = row === undefined ? {} : rowColumns.get(row, columns);
    }
  }
  return { totalCount, results };
}

/** By its tag: it may come from another realm. */
function isMask(filter: object): filter is Uint32Array {
  return ArrayBuffer.isView(filter) && (filter as Uint32Array)[Symbol.toStringTag] === "Uint32Array";
}

function toMask(filter: SearchFilter | undefined, rows: RowDirectory, columns: RowColumns | undefined): Uint32Array | undefined {
  if (filter === undefined) return undefined;
  if (typeof filter === "object" && filter !== null)
    return isMask(filter) ? filter : withColumns(columns, "A filter by values").toMask(filter);
  if (typeof filter !== "function")
    throw new TypeError("filter is neither a Uint32Array over rows, nor a function of an id, nor an object of conditions.");
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
