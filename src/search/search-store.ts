/** The search store as `http` sees it. See design: eventually consistent, rebuildable, each search answers from one consistent position. */
import type { AnswerBudget } from "../budget/memory-budget.ts";
import type { Similarity } from "../core/similarity.ts";
import type { BranchRef } from "../records/schema.ts";

export type SimilarityFunction = Similarity;

export interface VectorSearchRequest {
  column: string;
  queryVector: readonly number[];
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
  /** True once the feed of every branch is caught up after start. */
  ready: boolean;
  /** What is not ready, for /readyz. */
  pending: string[];
  /** Age of the oldest change that searches do not see yet, or may not see because the records cannot be read. */
  lagMs: number;
  /** Why changes cannot be read at the moment; undefined when they can. For whoever runs the server: it may name branches. */
  fault: string | undefined;
  /** How long changes had to wait, of the last thousand rounds of the branch where it was longest. */
  lagP99Ms: number;
  /** Searches that wait for the worker. */
  waiting: number;
  rows: number;
  memoryBytes: number;
  /** Of a server that holds one part of the vectors. */
  parts?: SearchPartsStatus;
}

export interface SearchPartsStatus {
  index: number;
  of: number;
  /** Parts that nobody who holds them answers for, as of the last seconds. */
  missing: number[];
  /** Tables with vectors that this server, as all others, holds whole, because links lead to them. */
  wholeTables: number;
  /** Strong searches that were asked once more because a part had gone beyond their position, since the start. */
  retries: number;
}

export interface SearchCallOptions {
  /** Aborted when nobody waits for the answer any more: a search that has not begun is given up, and rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Charged with the answers; beyond it the search rejects with TOO_LARGE or OVERLOADED. */
  readonly budget?: AnswerBudget;
}

export interface SearchStore {
  vectorSearch(ref: BranchRef, table: string, request: VectorSearchRequest, options?: SearchCallOptions): Promise<VectorSearchResponse>;
  /** `queryVectors` (1 to 100) instead of `queryVector`: one answer each, scanned together, from one position. */
  vectorSearchMany(
    ref: BranchRef,
    table: string,
    request: Omit<VectorSearchRequest, "queryVector"> & { queryVectors: readonly (readonly number[])[] },
    options?: SearchCallOptions,
  ): Promise<VectorSearchResponse[]>;
  status(): SearchStoreStatus;
  close(): Promise<void>;
}
