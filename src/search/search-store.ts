/**
 * The interface of the search store for `http`. It is eventually consistent and can be rebuilt; each search
 * answers from one consistent position.
 */
import type { AnswerBudget } from "../budget/memory-budget.ts";
import type { Similarity } from "../core/similarity.ts";
import type { BranchRef } from "../records/schema.ts";
import type { FoundText, ReadTables } from "./text/found-text.ts";
import type { TextPlan } from "./text/text-request.ts";

export type SimilarityFunction = Similarity;

/** A Float32Array holds finite numbers alone: it was checked when it was made. A list is checked by the search. */
export type QueryVector = readonly number[] | Float32Array;

export interface VectorSearchRequest {
  column: string;
  queryVector: QueryVector;
  similarityFunction?: SimilarityFunction;
  /** 1 to 1,000; default 10. */
  size?: number;
  offset?: number;
  minScore?: number;
  filter?: unknown;
  consistency?: "strong" | "eventual";
}

export interface VectorSearchResponse {
  totalCount: number;
  results: { id: string; score: number }[];
}

export interface SearchStoreStatus {
  /** True once the feed of every branch has caught up after the start. */
  ready: boolean;
  /** What is not ready yet, and how far it is or why it fails, for /readyz and the log. */
  pending: string[];
  /**
   * Age in ms of the oldest change that searches do not see yet, or may not see because of a fault.
   */
  lagMs: number;
  /**
   * Why changes cannot be read at the moment; undefined when they can. For operators: it may name branches.
   */
  fault: string | undefined;
  /** The fault is that the database of `--search-url` cannot be reached. */
  isSearchDatabaseAway?: boolean;
  /**
   * 99th percentile of the time that changes waited, over the last thousand rounds, of the slowest branch.
   */
  lagP99Ms: number;
  /** Number of searches waiting for the worker. */
  waiting: number;
  rows: number;
  memoryBytes: number;
  /** Of the files of vectors that are not in memory. */
  fileBytes: number;
  /** Set on a server that holds one part of the vectors. */
  parts?: SearchPartsStatus;
}

/** How far one branch is searchable. */
export interface BranchSearchStatus {
  /** It has been read, and is followed from there on. */
  ready: boolean;
  /** Age in ms of its oldest change that searches do not see yet; 0 if they see all. */
  lagMs: number;
  /** Vectors that this server holds. */
  vectors: number;
  memoryBytes: number;
  /** Of the files of vectors that are not in memory. */
  fileBytes: number;
}

export interface SearchPartsStatus {
  index: number;
  of: number;
  /** Parts for which no server has answered in the last seconds. */
  missing: number[];
  /** Number of tables with vectors that every server holds in full, because links lead to them. */
  wholeTables: number;
  /** Strong searches since the start that were repeated because a part had passed their position. */
  retries: number;
}

export interface SearchCallOptions {
  /**
   * Abort it when nobody waits for the answer any more. A search that has not begun is then cancelled and
   * rejects with the signal's reason.
   */
  readonly signal?: AbortSignal;
  /** Charged with the answers. Beyond it the search rejects with TOO_LARGE or OVERLOADED. */
  readonly budget?: AnswerBudget;
}

export interface SearchStore {
  vectorSearch(ref: BranchRef, table: string, request: VectorSearchRequest, options?: SearchCallOptions): Promise<VectorSearchResponse>;
  /**
   * `queryVectors` (1 to 100) instead of `queryVector`. They are scanned together, from one position, and
   * each gets its own answer.
   */
  vectorSearchMany(
    ref: BranchRef,
    table: string,
    request: Omit<VectorSearchRequest, "queryVector"> & { queryVectors: readonly QueryVector[] },
    options?: SearchCallOptions,
  ): Promise<VectorSearchResponse[]>;
  /** Records by their words, of each table the best, all tables at one position. */
  textSearch(ref: BranchRef, plan: TextPlan, tables: ReadTables, options?: SearchCallOptions): Promise<FoundText[]>;
  status(): SearchStoreStatus;
  /** Of one branch that there is. */
  branchStatus(ref: BranchRef): BranchSearchStatus;
  close(): Promise<void>;
}
