/**
 * What the search store asks of an engine; main thread and search worker say it to each other. Everything is
 * structured-cloneable; large buffers are transferred.
 */
import type { FeedBatch, FeedPosition } from "../records/feed/feed-types.ts";
import type { Part } from "../records/feed/part.ts";
import type { ErrorReply } from "../worker-calls.ts";
import type { FollowedSchema } from "./followed-schema.ts";
import type { SimilarityFunction } from "./search-store.ts";

/** One branch, as the worker knows it. */
export type BranchKey = string;

/** A search or several over one column and filter; checked as far as the schema is not needed. */
export interface SearchJob {
  readonly key: BranchKey;
  readonly incarnation: string;
  /** By id: a column that was dropped and made again under its name is another one. */
  readonly tableId: number;
  readonly columnId: number;
  /** f32[count × dimension], row-major. */
  readonly queries: Float32Array;
  readonly count: number;
  readonly similarity: SimilarityFunction;
  readonly size: number;
  readonly offset: number;
  readonly minScore: number | undefined;
  readonly filter: unknown;
  /** Of all answers together, by `RESULT_BYTES` and the ids; beyond it TOO_LARGE. */
  readonly maxBytes: number;
}

/** Smaller branches have no snapshot: they are read from the records as fast as from a file. */
export const MIN_SNAPSHOT_VECTORS = 1_000;

/** What a result takes in an answer, beside its id. */
export const RESULT_BYTES = 32;

export interface SearchAnswer {
  readonly totalCount: number;
  readonly ids: string[];
  readonly scores: Float64Array;
}

export interface FoundAnswers {
  readonly answers: SearchAnswer[];
  /** What they take, as `maxBytes` counts it. */
  readonly bytes: number;
  /** Of the state that they are from. */
  readonly schemaVersion: number;
  /** Of the table, in that state. */
  readonly part: Part | undefined;
}

export type SearchOutcome =
  | ({ readonly kind: "answers" } & FoundAnswers)
  /** The worker does not have that state of the schema yet. */
  | { readonly kind: "behind" }
  /** There is no room for the branch. */
  | { readonly kind: "full"; readonly message: string }
  /** The filter does not parse by the schema that the worker has. */
  | { readonly kind: "invalid"; readonly message: string; readonly schemaVersion: number };

/*
 * What makes a branch larger (`begin`, `load`, `install`, `commit`, `restore`) rejects with OUT_OF_MEMORY when
 * there is no room for it: the engine holds nothing of the branch then.
 */

/**
 * What changes a branch, with the batches that are staged for it first; the parts are applied in the order
 * given, all at once with regard to searches.
 */
export interface Commit {
  readonly key: BranchKey;
  /** When the schema changed. */
  readonly schema?: { readonly version: number; readonly tables: FollowedSchema };
  readonly batches: readonly FeedBatch[];
  /** What the batches lead to. */
  readonly position: FeedPosition;
}

export interface BranchStats {
  /** Vectors that can be searched. */
  readonly vectors: number;
  readonly memoryBytes: number;
}

export interface RestoredState {
  readonly version: number;
  readonly schema: FollowedSchema;
  readonly position: FeedPosition;
  readonly stats: BranchStats;
}

export interface EngineCalls {
  /**
   * Starts to build a branch again, aside. With `draft`, its snapshot is written from what is loaded; the
   * loading begins at that position.
   */
  begin(call: {
    readonly build: number;
    readonly key: BranchKey;
    readonly incarnation: string;
    readonly version: number;
    readonly tables: FollowedSchema;
    readonly draft?: { readonly path: string; readonly position: FeedPosition };
  }): void;
  load(call: { readonly build: number; readonly batch: FeedBatch }): void;
  /** The build, which is at that position now, takes the place of what was there for the branch. */
  install(call: { readonly build: number; readonly key: BranchKey; readonly position: FeedPosition }): BranchStats;
  abandon(call: { readonly build: number }): void;
  /** Keeps a batch for the next commit. `schema`: the one that the commit goes over to, by which the batch is named. */
  stage(call: { readonly key: BranchKey; readonly batch: FeedBatch; readonly schema?: FollowedSchema }): void;
  unstage(call: { readonly key: BranchKey }): void;
  commit(call: Commit): BranchStats;
  /**
   * Takes a branch from what the engine keeps, or else from a snapshot at `path`. That is not searched before
   * the next commit, since it stands between positions until the changes after `position` are applied. null:
   * there is none of that incarnation. Rejects with CORRUPT when it cannot be trusted.
   */
  restore(call: { readonly key: BranchKey; readonly incarnation: string; readonly path: string | undefined }): RestoredState | null;
  /**
   * Writes the branch to a file, or ends the draft of one, and says which position that has. null: given up,
   * because the branch was replaced or its schema changed meanwhile.
   */
  snapshot(call: {
    readonly key: BranchKey;
    readonly path: string;
    readonly position: FeedPosition;
  }): { readonly position: FeedPosition; readonly bytes: number } | null;
  /** Puts on disk what was applied since the snapshot. null: there is no snapshot that it would belong to. */
  flush(call: { readonly key: BranchKey }): { readonly position: FeedPosition; readonly bytes: number } | null;
  drop(call: { readonly key: BranchKey }): void;
  search(call: SearchJob): SearchOutcome;
}

export type Method = keyof EngineCalls;

/** What a worker is started with. */
export interface WorkerOptions {
  /** Of all indexes together; default: no limit. */
  readonly maxIndexBytes?: number | undefined;
  readonly shardedFromBytes?: number | undefined;
}

export interface CallMessage {
  readonly number: number;
  readonly method: Method;
  readonly argument: unknown;
}

export type ReplyMessage = { readonly number: number; readonly result: unknown } | { readonly number: number; readonly error: ErrorReply };
