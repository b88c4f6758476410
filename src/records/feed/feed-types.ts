/**
 * The change feed as its followers see it. Statement-level triggers write it inside the writer's transaction,
 * so raw SQL is followed as well as the API.
 *
 * A position is the text of a `pg_snapshot`: everything that the snapshot sees has been delivered. The next
 * read delivers the outbox rows whose transaction the last snapshot did not see (`NOT
 * pg_visible_in_snapshot(txid, position)`), with the *current* values of their records, read in the same
 * snapshot. So a transaction that commits late is never skipped, a long one does not hold the feed back, and
 * applying a change twice is harmless.
 */
import type { ColumnValues } from "../../columns/column-values.ts";
import type { BranchRef, TableInfo } from "../schema.ts";

/** Opaque to followers; may be kept on disk with `BranchInfo.incarnation`. */
export type FeedPosition = string;

/** Values of one column for `ids` of a batch, in their order. null is SQL's null. */
export type FeedColumn = ColumnValues;

export interface FeedBatch {
  readonly table: string;
  /** Records that exist, with their current values. */
  readonly ids: readonly string[];
  /**
   * By column name, system columns `xata.version` (int), `xata.createdAt`, `xata.updatedAt` (datetime)
   * included. Only the columns asked for.
   */
  readonly columns: ReadonlyMap<string, FeedColumn>;
  /** Records that were deleted. */
  readonly deleted: readonly string[];
}

export interface FeedChanges {
  readonly position: FeedPosition;
  /**
   * The branch's schema version as this read saw it. When it grows, compare the branch's tables and columns by
   * `id`: what kept its id only may have another name (and is followed on from `position`), what lost its id is
   * gone, and what has a new id is read with `readAll` (an older `position` stays right for it: applying a
   * change twice is harmless).
   */
  readonly schemaVersion: number;
  /**
   * True: everything that this read's snapshot sees has been delivered, and `position` is that snapshot. False:
   * more is to come, of the same transactions too; a state answers from one consistent position only when this
   * is true.
   */
  readonly complete: boolean;
  readonly batches: readonly FeedBatch[];
}

/** Of the records of a table; part.ts says which are in it. */
export interface Part {
  /** From 0. */
  readonly index: number;
  readonly of: number;
}

/** What a read is limited to. */
export interface FeedReadOptions {
  /**
   * From the tables named here, only the records of that part are delivered. The names are those of the schema
   * that the follower has.
   */
  readonly parts?: ReadonlyMap<string, Part> | undefined;
  /** Only these tables, by name, and these of their columns. One that is not there (any more) is left out. */
  readonly only?: ReadonlyMap<string, readonly string[]> | undefined;
  /** A caller's position, not this follower's: nothing is kept for it, nor forgotten when it is too old. */
  readonly isForeign?: boolean;
  /**
   * Reads what this snapshot sees instead of the current state. The snapshot must see everything that the
   * position does (`isSeenBy`).
   */
  readonly snapshot?: SharedSnapshot;
}

/** A moment of a database server at which several processes read. */
export interface SharedSnapshot {
  /** PostgreSQL's name for it. */
  readonly id: string;
  /** The position of a follower that has read everything the snapshot sees. */
  readonly position: FeedPosition;
}

/** For a feed whose database other processes read as well. */
export interface SnapshotSharing {
  /**
   * Of now. It can be read at until `end`; a connection is held for it, and the vacuum is held back. INVALID on
   * the embedded engine.
   */
  shareSnapshot(): Promise<SharedSnapshot & { end(): Promise<void> }>;
}

export interface ChangeFeed {
  /**
   * Called often, and sometimes without cause, when a branch may have changed: its records, its schema, or
   * whether it exists.
   */
  onChange(listener: (ref: BranchRef) => void): () => void;
  /**
   * Reads tables whole, in batches of bounded size, all in one snapshot (or: then followed by changes so that
   * the result is consistent at `position`; `isChange` is true of these). `columns` and `part` limit what is read of a table.
   * Backpressure: the next batch is read when `onBatch` resolves.
   */
  readAll(
    ref: BranchRef,
    tables: readonly { readonly table: string; readonly columns?: readonly string[]; readonly part?: Part }[],
    onBatch: (batch: FeedBatch, isChange: boolean) => Promise<void>,
  ): Promise<{
    readonly position: FeedPosition;
    readonly incarnation: string;
    readonly schemaVersion: number;
    /** The schema in force at `position` (all tables of the branch). */
    readonly tables: readonly TableInfo[];
  }>;
  /**
   * What changed after `position`; at most some thousand records at once (call again until `complete`). null:
   * the position is too old or of another incarnation, read all again.
   */
  readSince(ref: BranchRef, position: FeedPosition, incarnation: string, options?: FeedReadOptions): Promise<FeedChanges | null>;
  /**
   * The same feed for a second follower in this process, which acknowledges by itself. With `vectorsPresentOnly`
   * vectors come with dimension 0: only which records have one.
   */
  forFollower(name: string, options?: { readonly vectorsPresentOnly?: boolean }): ChangeFeed;
  /** Says that this follower will never ask from before `position`; outbox rows that nobody needs are removed. Of a dropped branch: nothing. */
  acknowledge(ref: BranchRef, position: FeedPosition, incarnation: string): Promise<void>;
  /** Says that this follower will not ask for the branch again, unless it reads it anew. Without it, what it has not acknowledged is kept. */
  release(incarnation: string): Promise<void>;
  /** About how many bytes are kept for followers of the branch. NOT_FOUND when it was dropped. */
  backlogBytes(ref: BranchRef): Promise<number>;
}
