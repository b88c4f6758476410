/** Checks the input of search and searchMany, for both kinds of index. */
import { inWords } from "../errors/value-in-words.ts";
import type { AbortSignalLike } from "./abort-signal.ts";
import { checkInteger, checkOptions, checkSignal, checkType, SEARCH_OPTIONS } from "./options.ts";
import type { ColumnName, FilterOf, RowColumns } from "./row-columns.ts";
import type { RowDirectory } from "./row-directory.ts";
import type { Similarity } from "./similarity.ts";
import { similarityCode } from "./similarity.ts";
import { toFloat32 } from "./vector-input.ts";
import type { Plan, ShardSearch } from "./vector-shard.ts";

/**
 * Selects rows: a bit mask over rows of the directory (word row >> 5, bit row & 31; missing words select
 * nothing), a predicate on ids, or a filter over the index's columns, such as `{ year: { $ge: 2020 } }`.
 */
export type SearchFilter<Columns extends RowColumns = RowColumns> = Uint32Array | ((id: string) => boolean) | FilterOf<Columns>;

export interface SearchOptions<Columns extends RowColumns = RowColumns> {
  /** Maximum number of results; an integer of at least 1, default 10. */
  k?: number | undefined;
  /** Default "cosineSimilarity". */
  similarity?: Similarity | undefined;
  /** Each result has its `cosine`, too. For cosineSimilarity alone; default false. */
  cosine?: boolean | undefined;
  filter?: SearchFilter<Columns> | undefined;
  /** Number of best results to skip; default 0. */
  offset?: number | undefined;
  /** Drops results with a lower score; `totalCount` still counts them. */
  scoreThreshold?: number | undefined;
  /** Columns whose values are returned with each result; default none. */
  columns?: readonly ColumnName<Columns>[] | undefined;
  /**
   * For measurements and tests: the same answer, but slower. "floats" reads float32 only, without the codes.
   * "sketches" first learns and makes sketches of all rows (docs/core.md), whether they pay or not. Default
   * "auto".
   */
  plan?: Plan | undefined;
}

export interface SearchHit<Row = Record<string, unknown>> {
  id: string;
  score: number;
  /** If `cosine` was asked for: score − 1, from −1 to 1. Of the cosine in the score, 1 + cos, it keeps all but 2^-53. */
  cosine?: number;
  /** The values of the requested columns. */
  columns?: Row;
}

export interface SearchResult<Row = Record<string, unknown>> {
  /** Number of vectors that pass the filter. */
  totalCount: number;
  /** Best first; equal scores: lower id first, by code points. */
  results: SearchHit<Row>[];
}

/** A checked search: what shards do, and how their answers become the result. */
export interface SearchPlan {
  shardSearch: ShardSearch;
  offset: number;
  scoreThreshold: number | undefined;
  columns: readonly string[] | undefined;
  cosine: boolean;
}

/**
 * @throws {TypeError | RangeError} for a bad k, similarity, filter, offset or threshold, or an unknown option;
 *   {LodestoneError} INVALID for a bad filter over columns.
 */
export function toSearchPlan(
  options: SearchOptions & { signal?: AbortSignalLike | undefined },
  rows: RowDirectory,
  rowColumns: RowColumns | undefined,
): SearchPlan {
  checkOptions(options, SEARCH_OPTIONS);
  checkSignal(options.signal);
  const { k = 10, similarity = "cosineSimilarity", filter, plan, offset = 0, scoreThreshold, columns, cosine = false } = options;
  checkInteger("k", k, 1);
  similarityCode(similarity);
  if (cosine !== false && (cosine !== true || similarity !== "cosineSimilarity"))
    throw new TypeError(`cosine is ${inWords(cosine)}, similarity ${similarity}; expected true with cosineSimilarity alone, or false.`);
  checkInteger("offset", offset, 0);
  if (scoreThreshold !== undefined && !Number.isFinite(scoreThreshold)) {
    throw new RangeError(`scoreThreshold is ${inWords(scoreThreshold)}; expected a finite number.`);
  }
  if (columns !== undefined) withColumns(rowColumns, "columns").checkNames(columns);
  const shardSearch = { k: k + offset, similarity, mask: toMask(filter, rows, rowColumns), plan };
  return { shardSearch, offset, scoreThreshold, columns, cosine };
}

/** @throws {TypeError} if there are no columns. */
export function withColumns(columns: RowColumns | undefined, what: string): RowColumns {
  if (columns === undefined) throw new TypeError(`${what} needs columns; give the option \`columns\` when the index is created.`);
  return columns;
}

/** Applies offset and threshold to the best hits, and adds what else was asked for. */
export function toSearchResult(
  totalCount: number,
  best: SearchHit[],
  { offset, scoreThreshold, columns, cosine }: SearchPlan,
  rows: RowDirectory,
  rowColumns: RowColumns | undefined,
): SearchResult {
  let results = offset === 0 ? best : best.slice(offset);
  if (scoreThreshold !== undefined) results = results.filter(({ score }) => score >= scoreThreshold);
  if (cosine) for (const hit of results) hit.cosine = hit.score - 1;
  if (columns !== undefined && rowColumns !== undefined) {
    for (const hit of results) {
      const row = rows.rowOf(hit.id);
      // The id may have been deleted during the search.
      hit.columns = row === undefined ? {} : rowColumns.get(row, columns);
    }
  }
  return { totalCount, results };
}

/** Checked by tag, because it may come from another realm. */
function isMask(filter: object): filter is Uint32Array {
  return ArrayBuffer.isView(filter) && (filter as Uint32Array)[Symbol.toStringTag] === "Uint32Array";
}

function toMask(filter: SearchFilter | undefined, rows: RowDirectory, columns: RowColumns | undefined): Uint32Array | undefined {
  if (filter === undefined) return undefined;
  if (typeof filter === "object" && filter !== null)
    return isMask(filter) ? filter : withColumns(columns, "A filter by values").toMask(filter);
  checkType(typeof filter === "function", "filter", filter, "a Uint32Array over rows, a function of an id or an object of conditions");
  const mask = new Uint32Array(Math.ceil(rows.capacity / 32));
  for (const [id, row] of rows.entries()) {
    const isSelected: unknown = filter(id);
    // A promise would select every row.
    if (typeof isSelected === "object" && isSelected !== null)
      throw new TypeError(`filter answered ${inWords(isSelected)} for an id; expected true or false, at once: it cannot be asynchronous.`);
    if (isSelected) mask[row >> 5]! |= 1 << (row & 31);
  }
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
 * One query as f32[dimension]. A Float32Array is returned as it is, not copied.
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
