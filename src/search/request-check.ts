/**
 * Checks a vector search as far as possible without the worker: its shape, and the column against the
 * branch's schema.
 *
 * The schema of `/vectorSearch` says the same of size, offset, minScore and similarityFunction. It stays here
 * because the requests of other servers (http/parts) come by another way, where `request` is any object.
 */
import { SIMILARITIES } from "../core/similarity.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { inWords, quoted } from "../errors/value-in-words.ts";
import { requireTable } from "../records/catalog/branch-rows.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../records/schema.ts";
import { isWholeNumber } from "../text/whole-number.ts";
import { expectedFloat32, firstNotFloat32 } from "./query-vector.ts";
import type { SearchJob } from "./search-messages.ts";
import type { QueryVector, SimilarityFunction, VectorSearchRequest } from "./search-store.ts";

export const DEFAULT_SIZE = 10;
export const MAX_SIZE = 1_000;
export const MAX_OFFSET = 10_000;
export const MAX_QUERY_VECTORS = 100;

export interface Query {
  /** `queryVector` or `queryVectors[3]`, for messages. */
  readonly name: string;
  readonly vector: QueryVector;
}

/**
 * @throws {LodestoneError} NOT_FOUND for the table, INVALID for everything else. The message begins with the
 *   field.
 */
export function checkSearch(
  info: BranchInfo,
  tableName: string,
  request: Omit<VectorSearchRequest, "queryVector">,
  queries: readonly Query[],
): Omit<SearchJob, "key" | "maxBytes"> {
  const table = requireTable(info, tableName);
  const column = checkColumn(table, request.column);
  const { dimension } = column.vector!;
  const similarity = checkSimilarity(request.similarityFunction);
  const matrix = new Float32Array(queries.length * dimension);
  queries.forEach((query, i) => {
    checkQuery(query, column, dimension, similarity, matrix.subarray(i * dimension, (i + 1) * dimension));
  });
  if (request.minScore !== undefined && !Number.isFinite(request.minScore)) {
    throw invalid("minScore", `expected a finite number, got ${inWords(request.minScore)}`);
  }
  return {
    incarnation: info.incarnation,
    tableId: table.id,
    columnId: column.id,
    queries: matrix,
    count: queries.length,
    similarity,
    size: checkInteger("size", request.size ?? DEFAULT_SIZE, 1, MAX_SIZE),
    offset: checkInteger("offset", request.offset ?? 0, 0, MAX_OFFSET),
    minScore: request.minScore,
    filter: request.filter ?? undefined,
  };
}

export function checkQueryVectors(vectors: unknown): Query[] {
  if (!Array.isArray(vectors)) throw invalid("queryVectors", `expected a list of vectors, got ${inWords(vectors)}`);
  if (vectors.length < 1 || vectors.length > MAX_QUERY_VECTORS) {
    throw invalid("queryVectors", `expected 1 to ${MAX_QUERY_VECTORS} vectors, got ${vectors.length}`);
  }
  return vectors.map((vector, i) => ({ name: `queryVectors[${i}]`, vector: vector as QueryVector }));
}

function checkColumn(table: TableInfo, name: unknown): ColumnInfo {
  if (typeof name !== "string") throw invalid("column", `expected the name of a vector column, got ${inWords(name)}`);
  const column = table.columns.get(name);
  if (column === undefined) throw invalid("column", `table "${table.name}" has no column ${quoted(name)}${vectorColumns(table)}`);
  if (column.type !== "vector")
    throw invalid("column", `column ${quoted(name)} is of type ${column.type}, not vector${vectorColumns(table)}`);
  return column;
}

function vectorColumns(table: TableInfo): string {
  const names = [...table.columns.values()].filter((column) => column.type === "vector").map((column) => JSON.stringify(column.name));
  return names.length === 0 ? `; the table has no vector column` : `; its vector columns are ${names.slice(0, 20).join(", ")}`;
}

function checkSimilarity(name: unknown): SimilarityFunction {
  if (name === undefined) return "cosineSimilarity";
  const known = SIMILARITIES.find((similarity) => similarity === name);
  if (known === undefined)
    throw invalid("similarityFunction", `expected ${SIMILARITIES.map((f) => `"${f}"`).join(", ")}, got ${inWords(name)}`);
  return known;
}

/** Writes the query to `target` as float32. */
function checkQuery(
  { name, vector }: Query,
  column: ColumnInfo,
  dimension: number,
  similarity: SimilarityFunction,
  target: Float32Array,
): void {
  if (!Array.isArray(vector) && !(vector instanceof Float32Array))
    throw invalid(name, `expected a list of ${dimension} numbers, got ${inWords(vector)}`);
  if (vector.length !== dimension) {
    const elements = `${vector.length} ${vector.length === 1 ? "element" : "elements"}`;
    throw new LodestoneError("INVALID", `${name} has ${elements}; column ${quoted(column.name)} has dimension ${dimension}.`);
  }
  if (vector instanceof Float32Array) target.set(vector);
  else {
    const index = firstNotFloat32(vector, target);
    if (index >= 0) throw invalid(`${name}[${index}]`, expectedFloat32(vector[index]));
  }
  if (similarity === "cosineSimilarity" && target.every((element) => element === 0)) {
    throw invalid(name, "the zero vector has no direction, so cosineSimilarity is not defined for it; use l1 or l2, or another vector");
  }
}

function checkInteger(name: string, value: unknown, minimum: number, maximum: number): number {
  if (isWholeNumber(value, minimum, maximum)) return value;
  throw invalid(name, `expected an integer from ${minimum} to ${maximum.toLocaleString("en")}, got ${inWords(value)}`);
}

function invalid(field: string, problem: string): LodestoneError {
  return new LodestoneError("INVALID", `${field}: ${problem}.`);
}
