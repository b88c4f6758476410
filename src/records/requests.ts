/**
 * What the record store is asked and what it answers, as types: below every room of `records/`. The service
 * over them is `record-store.ts`. Records go in and out as plain JSON objects in the API's shape: `{id,
 * ...columns, xata: {version, createdAt, updatedAt}}`.
 */
import type { ExactJson } from "./exact-json.ts";
import type { ReadOnlyOption } from "./read-only.ts";

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/**
 * `columns` of the API: "*", "name", "team.*", "team.name", "config->a->b", reverse links. undefined: none but
 * id and xata.
 */
export type Selection = readonly (string | JsonObject)[];

export interface AnswerOptions {
  /**
   * Columns of type json as JSON text instead of values. For the SDK, which parses them, and would take the
   * array [5] for the number 5; to everybody else a json column is a value. Only for clients that announce
   * themselves as the SDK.
   */
  readonly jsonText?: boolean;
}

export interface ReadOptions extends AnswerOptions {
  readonly columns?: Selection;
}

export interface WriteOptions extends ReadOptions {
  readonly createOnly?: boolean;
  readonly ifVersion?: number;
}

export type TransactionOperation =
  | { insert: { table: string; record: JsonObject; createOnly?: boolean; ifVersion?: number; columns?: string[] } }
  | { update: { table: string; id: string; fields: JsonObject; ifVersion?: number; upsert?: boolean; columns?: string[] } }
  | { delete: { table: string; id: string; failIfMissing?: boolean; columns?: string[] } }
  | { get: { table: string; id: string; columns?: string[] } };

export type TransactionResult =
  | { operation: "insert" | "update"; id: string; rows: number; columns?: JsonObject }
  | { operation: "delete"; rows: number; columns?: JsonObject }
  | { operation: "get"; columns: JsonObject };

export interface PageRequest {
  size?: number;
  offset?: number;
  after?: string;
  before?: string;
  start?: string;
  end?: string;
}

export interface QueryRequest {
  filter?: JsonValue;
  sort?: JsonValue;
  page?: PageRequest;
  columns?: Selection;
  consistency?: "strong" | "eventual";
}

export interface QueryResponse {
  records: JsonObject[];
  meta: { page: { cursor: string; more: boolean; size: number } };
}

/** A part of a vector column, in the order of the ids. */
export interface VectorsRequest {
  readonly column: string;
  readonly filter?: JsonValue;
  /** A column whose values come along as text, each cut at 200 characters: a string, number, date, link or boolean. */
  readonly values?: string;
  /** Only records after this id. */
  readonly after?: string;
  /** Maximum number of records; fewer are returned if vectors are long. */
  readonly limit?: number;
}

export interface VectorPage {
  readonly dimension: number;
  readonly ids: readonly string[];
  /** Row-major, of the ids in their order. */
  readonly elements: Float32Array;
  /** Of the column that was asked for; null where a record has none. */
  readonly values: readonly (string | null)[] | undefined;
  /** Whether there are records after the last one. */
  readonly hasMore: boolean;
}

export interface AggregateRequest {
  filter?: JsonValue;
  /** By name: `{count: "*"}`, `{sum: {column}}`, `{topValues: {column, size, aggs}}` … as in the SDK's types. */
  aggs?: JsonObject;
}

export interface SummarizeRequest {
  filter?: JsonValue;
  columns?: readonly string[];
  /** By name: `{count: "*"}`, `{min: "column"}`, `max`, `sum`, `average`. */
  summaries?: JsonObject;
  /** Over the columns and summaries of the groups. */
  summariesFilter?: JsonValue;
  sort?: JsonValue;
  /** Default 20, at most 1,000. */
  page?: { size?: number };
  consistency?: "strong" | "eventual";
}

export interface SqlStatement {
  statement: string;
  params?: readonly JsonValue[] | null;
}

export interface SqlRequest extends SqlStatement, ReadOnlyOption {
  responseType?: "json" | "array";
  consistency?: "strong" | "eventual";
}

export interface SqlBatchRequest extends Omit<SqlRequest, "statement" | "params"> {
  statements: readonly SqlStatement[];
}

/** ExactJson: JSON whose numbers JavaScript cannot hold. */
export type SqlValue = JsonValue | ExactJson | SqlValue[];

export interface SqlResponse {
  records?: { [column: string]: SqlValue }[];
  rows?: SqlValue[][];
  columns: { name: string; type: string }[];
  total: number;
  rowCount: number;
  warning?: string;
}
