/**
 * A search engine holds the vectors and filter columns of the followed branches and searches them. The search
 * store (open-search-store.ts) reads the records and the change feed, and handles queueing, deadlines and
 * strong reads. It tells the engine what to hold (`EngineCalls`). The worker thread with its indexes is one
 * engine.
 *
 * For each branch:
 * - `begin`, `load`…, `install` (or `abandon`) build it on the side.
 * - `stage`… and `commit` change it, atomically with respect to searches.
 * - `restore` recovers what an earlier process left, if the engine keeps anything.
 * - `search` answers from one position, after all commits whose promises have resolved.
 */
import type { TransferListItem } from "node:worker_threads";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { DatabaseAwayError } from "../records/database-away.ts";
import type { BranchKey, EngineCalls, Method } from "./search-messages.ts";

export interface SearchEngine {
  /**
   * True if commits, including the position, outlive this process. `restore` then needs no file. Only a
   * commit moves the position, so nothing is written while nothing changes. Default false.
   */
  readonly keepsState?: boolean;
  /** False: words are another engine's. Default true. */
  readonly holdsTexts?: boolean;
  /** How many searches it handles at once. Default: one, plus one that waits. */
  readonly searchesAtOnce?: number;
  /**
   * @param transfer  buffers and ports of the argument; the engine owns them from now on.
   * @throws {LodestoneError} UNAVAILABLE while the engine cannot be reached; otherwise whatever the call
   *   itself rejects with.
   */
  call<M extends Method>(
    method: M,
    argument: Parameters<EngineCalls[M]>[0],
    transfer?: readonly TransferListItem[],
  ): Promise<ReturnType<EngineCalls[M]>>;
  close(): Promise<void>;
}

export interface EngineEvents {
  /**
   * The engine lost its data. Every branch will be restored or rebuilt, and `call` rejects with UNAVAILABLE
   * until `onRestart`.
   */
  onLost(error: Error): void;
  /** An empty engine has replaced it. */
  onRestart(): void;
}

export type StartEngine = (events: EngineEvents) => SearchEngine;

/**
 * The engine's copy of a branch is not the one that this process left or found there, because another server
 * has changed it. Restore it and begin the round again.
 */
export class EngineChangedError extends LodestoneError {
  constructor(key: BranchKey) {
    super("UNAVAILABLE", `Another server has changed what is held of branch ${key}; try again in a moment.`, { retryAfterSeconds: 1 });
  }
}

/** Retrying at once does not help. */
const FULL_RETRY_SECONDS = 60;

/** The branch's index does not fit into the memory limit for indexes. */
export class IndexFullError extends LodestoneError {
  constructor(cause: LodestoneError) {
    super("UNAVAILABLE", cause.message, { retryAfterSeconds: FULL_RETRY_SECONDS, cause });
  }
}

/** The database of `--search-url` is away, not the one that holds the records. */
export class SearchDatabaseAwayError extends DatabaseAwayError {
  constructor(cause?: unknown) {
    super(cause, "search database");
  }
}
