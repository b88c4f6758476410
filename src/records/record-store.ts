/**
 * The record store: what `http` and `cli` call. The implementation of each group is in a file of its own below
 * `records/`. Every method rejects with a LodestoneError (INVALID, NOT_FOUND, CONFLICT, TIMEOUT …) whose
 * message names the field and the fix, and has then changed nothing. Records go in and out as plain JSON
 * objects in the API's shape: `{id, ...columns, xata: {version, createdAt, updatedAt}}`.
 */
import type { AnswerBudget } from "../budget/memory-budget.ts";
import type { SystemNaming } from "../filter/system-columns.ts";
import type { LanguageOrNone } from "../text/languages.ts";
import type { TableStatistics } from "./catalog/table-statistics.ts";
import type { BranchCheck } from "./check/check-branch.ts";
import type { EngineHealth } from "./engine/engine.ts";
import type { ChangeFeed, SnapshotSharing } from "./feed/feed-types.ts";
import type { MigrationStore } from "./migrations/migration-store.ts";
import type { ReadOnlyOption } from "./read-only.ts";
import type {
  AggregateRequest,
  AnswerOptions,
  JsonObject,
  QueryRequest,
  QueryResponse,
  ReadOptions,
  SqlBatchRequest,
  SqlRequest,
  SqlResponse,
  SummarizeRequest,
  TransactionOperation,
  TransactionResult,
  VectorPage,
  VectorsRequest,
  WriteOptions,
} from "./requests.ts";
import type { BranchInfo, BranchRef, BranchSchema, ColumnSchema, TableSchema } from "./schema.ts";

export interface RecordStore {
  readonly feed: ChangeFeed & SnapshotSharing;
  /** Schema changes as operations, and the history of a branch. */
  readonly migrations: MigrationStore;

  listDatabases(): Promise<{ name: string; createdAt: string }[]>;
  listBranches(database: string): Promise<{ name: string; createdAt: string }[]>;
  allBranches(): Promise<BranchRef[]>;
  /**
   * Creates the branch, and its database with the first one. A branch that exists is answered as it is
   * (`created: false`), so that set-up scripts can run twice; with `from` (a branch of the same database to
   * copy, records included) it is a CONFLICT, since its records would not be those asked for.
   */
  createBranch(ref: BranchRef, options?: { from?: string }): Promise<{ branch: BranchInfo; created: boolean }>;
  dropBranch(ref: BranchRef): Promise<void>;
  dropDatabase(database: string): Promise<void>;
  /** CONFLICT when the database has a branch of the new name. At once: nobody sees a part of it under either name. */
  renameBranch(ref: BranchRef, to: string): Promise<void>;
  /** CONFLICT when a database has the new name. All branches move with it. */
  renameDatabase(database: string, to: string): Promise<void>;
  /** NOT_FOUND says whether the database or the branch is missing. Cheap (cached): http calls it on every request. */
  branch(ref: BranchRef): Promise<BranchInfo>;
  /** The same as the database has it now: another server may have changed it a moment ago. A statement, where there may be others. */
  currentBranch(ref: BranchRef): Promise<BranchInfo>;

  schema(ref: BranchRef): Promise<BranchSchema>;
  /** The size and the estimated number of records of each table. One statement over PostgreSQL's catalog: no table is read. */
  tableStatistics(ref: BranchRef): Promise<TableStatistics[]>;
  /** What answers and SQL of the branch call the columns that every table has; requests may use either. */
  setSystemNaming(ref: BranchRef, naming: SystemNaming): Promise<void>;
  createTable(ref: BranchRef, table: string, columns?: readonly ColumnSchema[]): Promise<void>;
  renameTable(ref: BranchRef, table: string, to: string): Promise<void>;
  dropTable(ref: BranchRef, table: string): Promise<void>;
  tableSchema(ref: BranchRef, table: string): Promise<TableSchema>;
  /** Makes the table's columns those given: adds and drops, refuses a change of type. */
  setTableSchema(ref: BranchRef, table: string, columns: readonly ColumnSchema[]): Promise<void>;
  addColumn(ref: BranchRef, table: string, column: ColumnSchema): Promise<void>;
  column(ref: BranchRef, table: string, column: string): Promise<ColumnSchema>;
  renameColumn(ref: BranchRef, table: string, column: string, to: string): Promise<void>;
  /** Of the texts of a column; "none": none. */
  setColumnLanguage(ref: BranchRef, table: string, column: string, language: LanguageOrNone): Promise<void>;
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
   * All records of a table (by default with all columns), in the order of their ids, page by page: the next
   * page is read when it is asked for, so a slow reader holds nothing up and memory stays bounded. A page is
   * one consistent state; records written meanwhile come as they were or as they are.
   */
  scanRecords(ref: BranchRef, table: string, options?: ReadOptions): AsyncGenerator<JsonObject[], void, undefined>;
  /**
   * The vectors of the records that have one, in one statement of bounded size; continue after the last id.
   * NOT_FOUND without the column.
   */
  readVectors(ref: BranchRef, table: string, request: VectorsRequest): Promise<VectorPage>;
  query(ref: BranchRef, table: string, request: QueryRequest, options?: AnswerOptions): Promise<QueryResponse>;
  transaction(
    ref: BranchRef,
    operations: readonly TransactionOperation[],
    options?: AnswerOptions & ReadOnlyOption,
  ): Promise<TransactionResult[]>;
  /**
   * Groups and counts as the API's `aggregate`; without `aggs` the number of records: `{aggs: {count}}`. Exact,
   * and as of now. One statement per aggregation.
   */
  aggregate(ref: BranchRef, table: string, request: AggregateRequest): Promise<{ aggs: JsonObject }>;
  /** One row per group of equal `columns`, with a value for each of `summaries`. No columns: one row over all. */
  summarize(ref: BranchRef, table: string, request: SummarizeRequest, options?: AnswerOptions): Promise<{ summaries: JsonObject[] }>;
  sql(ref: BranchRef, request: SqlRequest): Promise<SqlResponse>;
  /** Up to 1,000 statements as one transaction; the message names the one that failed. */
  sqlBatch(ref: BranchRef, request: SqlBatchRequest): Promise<SqlResponse[]>;

  /**
   * Verifies schema, records, indexes and change feed of a branch against the catalog; reads every record, and
   * changes nothing.
   */
  check(ref: BranchRef): Promise<BranchCheck>;
  /**
   * Copies the whole embedded database, while it is in use, to a new directory that is a data directory of its
   * own. INVALID on a server: use its own tools.
   * @param signal  ends it, leaving nothing; that of the caller (`forCaller`) does not.
   */
  backup(directory: string, signal?: AbortSignal): Promise<void>;
  /** Size of the embedded database's write-ahead log on disk; null on a server, whose own monitoring knows it. */
  walBytes?(): Promise<number>;
  /** What the embedded database cannot do at the moment; see EngineHealth. */
  health(): EngineHealth;

  /**
   * The same store on behalf of one caller: when the signal aborts, what has not begun is not begun, and
   * reading is ended; what may change records is left to run. The promises of what was not done reject with the
   * signal's reason. What is read is charged to `budget`; beyond it the promise rejects with TOO_LARGE or
   * OVERLOADED, and nothing was changed. Cheap: made for each request.
   */
  forCaller(signal: AbortSignal, budget?: AnswerBudget): RecordStore;

  close(): Promise<void>;
}
