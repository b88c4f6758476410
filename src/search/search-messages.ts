/**
 * The requests of the search store to an engine, which are also the messages between main thread and search
 * worker. All data can be structured-cloned; large buffers are transferred.
 */
import type { FeedBatch, FeedPosition, Part } from "../records/feed/feed-types.ts";
import type { BranchRef } from "../records/schema.ts";
import type { ErrorReply } from "../threads/worker-calls.ts";
import type { FollowedSchema } from "./followed-schema.ts";
import type { SimilarityFunction } from "./search-store.ts";
import type { TextJob, TextTableAnswer } from "./text/search-texts.ts";

/** Identifies one branch in the worker. */
export type BranchKey = string;

export function branchKey(ref: BranchRef): BranchKey {
  return `${ref.database}:${ref.branch}`;
}

/**
 * One or several searches over one column and filter. Everything that does not depend on the schema has been
 * checked.
 */
export interface SearchJob {
  readonly key: BranchKey;
  readonly incarnation: string;
  /** By id, because a column dropped and recreated under the same name is a different one. */
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
  /** Size limit of all answers together, counted as `RESULT_BYTES` plus the ids. Beyond it: TOO_LARGE. */
  readonly maxBytes: number;
}

/** A search for words in tables of one branch. */
export interface TextSearchJob extends TextJob {
  readonly key: BranchKey;
  readonly incarnation: string;
  /** False: if many words are still to be read, the answer is "reading". */
  readonly mayWait: boolean;
}

/** Branches with fewer vectors and searched texts get no snapshot: reading the records is as fast as reading a file. */
export const MIN_SNAPSHOT_ROWS = 1_000;

/** Bytes per result in an answer, besides its id. */
export const RESULT_BYTES = 32;

export interface SearchAnswer {
  readonly totalCount: number;
  readonly ids: string[];
  readonly scores: Float64Array;
}

export interface FoundAnswers {
  readonly answers: SearchAnswer[];
  /** Their size, counted as for `maxBytes`. */
  readonly bytes: number;
  /** The schema version of the state that they come from. */
  readonly schemaVersion: number;
  /** The part of the table in that state. */
  readonly part: Part | undefined;
}

export interface FoundTexts {
  /** In the order of the job. */
  readonly tables: readonly TextTableAnswer[];
  /** Of the feed: answers of one position are of the same records. */
  readonly position: FeedPosition;
  readonly schemaVersion: number;
}

export type SearchOutcome = ({ readonly kind: "answers" } & FoundAnswers) | NotAnswered;
export type TextSearchOutcome = ({ readonly kind: "answers" } & FoundTexts) | { readonly kind: "reading" } | NotAnswered;

export type NotAnswered =
  /** The worker does not have that version of the schema yet. */
  | { readonly kind: "behind" }
  /** There is no memory for the branch. */
  | { readonly kind: "full"; readonly message: string }
  /** The filter is invalid by the schema that the worker has. */
  | { readonly kind: "invalid"; readonly message: string; readonly schemaVersion: number };

/*
 * Calls that make a branch larger (`begin`, `load`, `install`, `commit`, `restore`) reject with OUT_OF_MEMORY
 * when there is no memory for it. The engine then holds nothing of the branch.
 */

/**
 * A change of a branch, besides the batches staged for it, which come first. The fields are applied in the
 * order given, atomically with respect to searches.
 */
export interface Commit {
  readonly key: BranchKey;
  /** Set if the schema changed. */
  readonly schema?: { readonly version: number; readonly tables: FollowedSchema };
  readonly batches: readonly FeedBatch[];
  /** The position reached by the batches. */
  readonly position: FeedPosition;
}

export interface BranchStats {
  /** Number of searchable vectors. */
  readonly vectors: number;
  /** Number of records whose words are searched. */
  readonly texts: number;
  readonly memoryBytes: number;
  /** Of the files of vectors that are not in memory. */
  readonly fileBytes: number;
  /** Columns whose vectors are in files. */
  readonly columnsInFiles: number;
}

export interface RestoredState {
  readonly version: number;
  readonly schema: FollowedSchema;
  readonly position: FeedPosition;
  readonly stats: BranchStats;
  /** Of the journal that continues the snapshot, if there is one. */
  readonly journalBytes?: number | undefined;
}

export interface EngineCalls {
  /**
   * Starts to rebuild a branch on the side. `path` of its snapshot: files of its vectors go beside it; undefined: it has none,
   * and all are in memory.
   */
  begin(call: {
    readonly build: number;
    readonly key: BranchKey;
    readonly incarnation: string;
    readonly version: number;
    readonly tables: FollowedSchema;
    readonly path?: string | undefined;
  }): void;
  load(call: { readonly build: number; readonly batch: FeedBatch }): void;
  /** The build, now at that position, replaces the branch's previous state. */
  install(call: { readonly build: number; readonly key: BranchKey; readonly position: FeedPosition }): BranchStats;
  abandon(call: { readonly build: number }): void;
  /**
   * Keeps a batch for the next commit. `schema`: the schema that the commit moves to; the batch uses its
   * names.
   */
  stage(call: { readonly key: BranchKey; readonly batch: FeedBatch; readonly schema?: FollowedSchema }): void;
  unstage(call: { readonly key: BranchKey }): void;
  commit(call: Commit): BranchStats;
  /**
   * Restores a branch from what the engine keeps, or else from a snapshot at `path`. A snapshot is between
   * positions until the changes after `position` are applied, so it is not searched before the next commit.
   * null: there is none of that incarnation. Rejects with CORRUPT when it cannot be trusted.
   */
  restore(call: {
    readonly key: BranchKey;
    readonly incarnation: string;
    readonly path: string | undefined;
    /** Shared memory; its element says meanwhile how many percent have been read. */
    readonly percent: Int32Array;
  }): RestoredState | null;
  /**
   * Writes the branch to a file, and returns the position of the file. null:
   * abandoned, because the branch was replaced or its schema changed meanwhile.
   */
  snapshot(call: {
    readonly key: BranchKey;
    readonly path: string;
    readonly position: FeedPosition;
  }): { readonly position: FeedPosition; readonly bytes: number } | null;
  /**
   * Writes to disk what was applied since the snapshot. null: there is no snapshot that it would continue. If it
   * rejects, nothing continues the snapshot any more.
   */
  flush(call: { readonly key: BranchKey }): { readonly position: FeedPosition; readonly bytes: number } | null;
  /** The files of snapshots belong to another server now: nothing is written to them any more, and none is removed. */
  leaveSnapshots(call: object): void;
  drop(call: { readonly key: BranchKey }): void;
  search(call: SearchJob): SearchOutcome;
  /** Not of an engine that holds no words. */
  searchTexts(call: TextSearchJob): TextSearchOutcome;
  /** Resolves when the words of the branch's records have been read, as far as they are there now. */
  textsRead(call: { readonly key: BranchKey }): void;
}

export type Method = keyof EngineCalls;

/** Options that a worker is started with. */
export interface WorkerOptions {
  /** Memory limit of all indexes together; default: no limit. */
  readonly maxIndexBytes?: number | undefined;
  readonly shardedFromBytes?: number | undefined;
  /** From this many bytes of float32 on the vectors of a column are in files beside its snapshot; default: never. */
  readonly onDiskFromBytes?: number | undefined;
}

export interface CallMessage {
  readonly number: number;
  readonly method: Method;
  readonly argument: unknown;
}

export type ReplyMessage = { readonly number: number; readonly result: unknown } | { readonly number: number; readonly error: ErrorReply };
