/**
 * The record store: what `http` and `cli` call. Implementations of each group stand in files of their own below `records/`.
 * Every method rejects with a LodestoneError (INVALID, NOT_FOUND, CONFLICT, TIMEOUT …) whose message names the field and the fix, and then has changed nothing.
 * Records go in and out as plain JSON objects in the API's shape: `{id, ...columns, xata: {version, createdAt, updatedAt}}`.
 */
import type { BranchCheck } from "./check/check-branch.ts";
import type { ChangeFeed } from "./feed.ts";
import type { MigrationStore } from "./migrations/migration-store.ts";
import type { BranchInfo, BranchRef, BranchSchema, ColumnSchema, TableSchema } from "./schema.ts";

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** `columns` of the API: "*", "name", "team.*", "team.name", "config->a->b", reverse links. undefined: none but id and xata. */
export type Selection = readonly (string | JsonObject)[];

export interface AnswerOptions {
  /**
   * Columns of type json as JSON text instead of values. For the SDK, which parses them, and would take the array [5] for the number 5; to everybody
   * else a json column is a value. Only for clients that announce themselves as the SDK.
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

/** What is searched for, and how: the same for a table and for a branch. */
export interface TextQuery {
  query: string;
  /** How many letters may differ: 0, 1 (the default) or 2. */
  fuzziness?: number;
  /** "phrase": the last word may be the beginning of one. Default "disabled". */
  prefix?: "phrase" | "disabled";
  highlight?: { enabled?: boolean; encodeHTML?: boolean };
  /** Default size 25, at most 200; offset at most 800. */
  page?: { size?: number; offset?: number };
}

/** Where in a table. */
export interface TextSearchScope {
  filter?: JsonValue;
  /** Columns, with a weight of 1 to 10: `"name"` or `{column, weight}`. Default: all with text, of weight 1. */
  target?: JsonValue;
  boosters?: JsonValue;
}

export interface TextSearchRequest extends TextQuery, TextSearchScope {}

export interface BranchSearchRequest extends TextQuery {
  /** Default: all of the branch. */
  tables?: readonly (string | (TextSearchScope & { table: string }))[];
}

export interface TextSearchResponse {
  records: JsonObject[];
  totalCount: number;
}

export interface SqlStatement {
  statement: string;
  params?: readonly JsonValue[] | null;
}

export interface SqlRequest extends SqlStatement {
  responseType?: "json" | "array";
  consistency?: "strong" | "eventual";
  /** Refuses (FORBIDDEN) whatever is not a SELECT through and through; runs in a read-only transaction. For keys that may only read. */
  readOnly?: boolean;
}

export interface SqlBatchRequest extends Omit<SqlRequest, "statement" | "params"> {
  statements: readonly SqlStatement[];
}

export interface SqlResponse {
  records?: JsonObject[];
  rows?: JsonValue[][];
  columns: { name: string; type: string }[];
  total: number;
  rowCount: number;
  warning?: string;
}

export interface RecordStore {
  readonly kind: "embedded" | "server";
  readonly feed: ChangeFeed;
  /** Schema changes as operations, and the history of a branch. */
  readonly migrations: MigrationStore;

  listDatabases(): Promise<{ name: string; createdAt: string }[]>;
  listBranches(database: string): Promise<{ name: string; createdAt: string }[]>;
  /**
   * Creates the branch, and its database with the first one. A branch that exists is answered as it is (`created: false`), so that set-up scripts can
   * run twice; with `from` (a branch of the same database to copy, records included) it is a CONFLICT, since its records would not be those asked for.
   */
  createBranch(ref: BranchRef, options?: { from?: string }): Promise<{ branch: BranchInfo; created: boolean }>;
  dropBranch(ref: BranchRef): Promise<void>;
  dropDatabase(database: string): Promise<void>;
  /** NOT_FOUND says whether the database or the branch is missing. Cheap (cached): http calls it on every request. */
  branch(ref: BranchRef): Promise<BranchInfo>;

  schema(ref: BranchRef): Promise<BranchSchema>;
  createTable(ref: BranchRef, table: string, columns?: readonly ColumnSchema[]): Promise<void>;
  renameTable(ref: BranchRef, table: string, to: string): Promise<void>;
  dropTable(ref: BranchRef, table: string): Promise<void>;
  tableSchema(ref: BranchRef, table: string): Promise<TableSchema>;
  /** Makes the table's columns those given: adds and drops, refuses a change of type. */
  setTableSchema(ref: BranchRef, table: string, columns: readonly ColumnSchema[]): Promise<void>;
  addColumn(ref: BranchRef, table: string, column: ColumnSchema): Promise<void>;
  column(ref: BranchRef, table: string, column: string): Promise<ColumnSchema>;
  renameColumn(ref: BranchRef, table: string, column: string, to: string): Promise<void>;
  dropColumn(ref: BranchRef, table: string, column: string): Promise<void>;

  /** Inserts with an id made by the service. */
  insertRecord(ref: BranchRef, table: string, record: JsonObject, options?: WriteOptions): Promise<JsonObject>;
  /** PUT: replaces, or creates (`created` tells). */
  replaceRecord(
    ref: BranchRef,
    table: string,
    id: string,
    record: JsonObject,
    options?: WriteOptions,
  ): Promise<{ record: JsonObject; created: boolean }>;
  /** PATCH: NOT_FOUND when there is none. Takes $increment, $decrement, $multiply, $divide. */
  updateRecord(ref: BranchRef, table: string, id: string, fields: JsonObject, options?: WriteOptions): Promise<JsonObject>;
  /** POST …/data/{id}: updates or creates. */
  upsertRecord(
    ref: BranchRef,
    table: string,
    id: string,
    fields: JsonObject,
    options?: WriteOptions,
  ): Promise<{ record: JsonObject; created: boolean }>;
  getRecord(ref: BranchRef, table: string, id: string, options?: ReadOptions): Promise<JsonObject>;
  /** Records in the order of `ids`; those that are gone are left out. One statement. */
  getRecords(ref: BranchRef, table: string, ids: readonly string[], options?: ReadOptions): Promise<JsonObject[]>;
  /** Returns the removed record when `columns` is given. NOT_FOUND when there is none. */
  deleteRecord(ref: BranchRef, table: string, id: string, options?: ReadOptions): Promise<JsonObject | undefined>;
  /** Up to 1,000 records, all or nothing. INVALID with `errors[{index}]` otherwise. */
  insertRecords(ref: BranchRef, table: string, records: readonly JsonObject[], options?: ReadOptions): Promise<JsonObject[]>;

  /**
   * All records of a table (by default with all columns), in the order of their ids, page by page: the next page is read when it is asked for, so a slow
   * reader holds nothing up and memory stays bounded. A page is one consistent state; records written meanwhile come as they were or as they are.
   */
  scanRecords(ref: BranchRef, table: string, options?: ReadOptions): AsyncGenerator<JsonObject[], void, undefined>;
  query(ref: BranchRef, table: string, request: QueryRequest, options?: AnswerOptions): Promise<QueryResponse>;
  transaction(ref: BranchRef, operations: readonly TransactionOperation[], options?: AnswerOptions): Promise<TransactionResult[]>;
  /** Groups and counts as the API's `aggregate`; without `aggs` the number of records: `{aggs: {count}}`. Exact, and as of now. One statement per aggregation. */
  aggregate(ref: BranchRef, table: string, request: AggregateRequest): Promise<{ aggs: JsonObject }>;
  /** One row per group of equal `columns`, with a value for each of `summaries`. No columns: one row over all. */
  summarize(ref: BranchRef, table: string, request: SummarizeRequest, options?: AnswerOptions): Promise<{ summaries: JsonObject[] }>;
  /** Free text search in one table. Records come whole, best first, with `xata.score`, `xata.table` and `xata.highlight`. */
  searchTable(ref: BranchRef, table: string, request: TextSearchRequest, options?: AnswerOptions): Promise<TextSearchResponse>;
  /** The same over several tables; NOT_FOUND for one that is not there. */
  searchBranch(ref: BranchRef, request: BranchSearchRequest, options?: AnswerOptions): Promise<TextSearchResponse>;
  sql(ref: BranchRef, request: SqlRequest): Promise<SqlResponse>;
  /** Up to 1,000 statements as one transaction; the message names the one that failed. */
  sqlBatch(ref: BranchRef, request: SqlBatchRequest): Promise<SqlResponse[]>;

  /** Verifies schema, records, indexes and change feed of a branch against the catalog; reads every record, and changes nothing. */
  check(ref: BranchRef): Promise<BranchCheck>;
  /** Copies the whole embedded database, while it is in use, to a new directory that is a data directory of its own. INVALID on a server: use its own tools. */
  backup(directory: string): Promise<void>;
  /** Size of the embedded database's write-ahead log on disk; null on a server, whose own monitoring knows it. */
  walBytes(): Promise<number | null>;

  /**
   * The same store on behalf of one caller: when the signal aborts, what has not begun is not begun, and reading is ended; what may change records is left to run.
   * The promises of what was not done reject with the signal's reason. Cheap: made for each request.
   */
  forCaller(signal: AbortSignal): RecordStore;

  close(): Promise<void>;
}
