/**
 * What the disk has of one branch: its snapshot, and the journal with the changes since. Says when it is due to
 * be written, has the engine write it, and lets the feed discard the changes that are on disk.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { FeedPosition } from "../../records/feed/feed-types.ts";
import type { BranchRef } from "../../records/schema.ts";
import type { FollowedRecords, FollowedState } from "../followed-schema.ts";
import type { SearchEngine } from "../search-engine.ts";
import { type BranchKey, type BranchStats, branchKey, MIN_SNAPSHOT_ROWS, type RestoredState } from "../search-messages.ts";

export interface SavedBranchOptions {
  /** Path of the branch's snapshot file; undefined: no snapshots. */
  readonly snapshotPath: string | undefined;
  /**
   * A journal longer than this is replaced by a new snapshot. undefined: half of the index's memory, a sixteenth when vectors are
   * in files (the snapshot has only their codes, the journal has them whole), at least 16 MiB.
   */
  readonly journalBytes: number | undefined;
  /** While nothing has changed for this long, a journal that is an eighth as long is replaced as well: the next start reads less. */
  readonly quietMs: number;
  /** Receives faults that are recovered from. */
  readonly onFault: (error: unknown) => void;
}

/** A journal shorter than this never triggers a new snapshot. */
const MIN_LONG_JOURNAL_BYTES = 1 << 24;
const QUIET_SHARE = 8;

export class SavedBranch {
  #path: string | undefined;
  readonly #ref: BranchRef;
  readonly #key: BranchKey;
  readonly #records: FollowedRecords;
  readonly #engine: SearchEngine;
  readonly #maxJournalBytes: number | undefined;
  readonly #quietMs: number;
  #changedAt = performance.now();
  readonly #onFault: (error: unknown) => void;
  /** Whether there are changes that the disk does not have. */
  #isBehind = false;
  /** Of the snapshot: columns whose vectors are in files. */
  #columnsInFiles = 0;
  /** undefined: no journal continues the snapshot. */
  #journalBytes: number | undefined;
  /** The snapshot failed its checks, or has no room. It is not tried again until another one is written. */
  #isBad = false;
  /** How much of the snapshot the engine has restored: percent; 0 unless it does. */
  readonly #restoredPercent = new Int32Array(new SharedArrayBuffer(4));

  constructor(ref: BranchRef, records: FollowedRecords, engine: SearchEngine, options: SavedBranchOptions) {
    this.#path = options.snapshotPath;
    this.#ref = ref;
    this.#key = branchKey(ref);
    this.#records = records;
    this.#engine = engine;
    this.#maxJournalBytes = options.journalBytes;
    this.#quietMs = options.quietMs;
    this.#onFault = options.onFault;
  }

  get path(): string | undefined {
    return this.#path;
  }

  /** From now on it has no snapshot, and the feed may discard what searches have seen. */
  leave(): void {
    this.#path = undefined;
    this.#journalBytes = undefined;
  }

  /** The snapshot is not to be used any more. */
  spoil(): void {
    this.#isBad = true;
  }

  /** How far `restore` is, in words; undefined: it does not read. */
  get progress(): string | undefined {
    const percent = Atomics.load(this.#restoredPercent, 0);
    return percent === 0 ? undefined : `${percent} %`;
  }

  /** The engine holds something that the disk does not have. */
  changed(): void {
    this.#isBehind = true;
    this.#changedAt = performance.now();
  }

  /** The engine has lost its data, and with it the journal. */
  reset(): void {
    this.#journalBytes = undefined;
  }

  /**
   * Has the engine restore the branch from what it keeps, or from a snapshot that passes its checks. null:
   * there is none.
   */
  async restore(incarnation: string): Promise<RestoredState | null> {
    const isKept = this.#engine.keepsState === true;
    if (!isKept && (this.#path === undefined || this.#isBad)) return null;
    try {
      const restored = await this.#engine.call("restore", {
        key: this.#key,
        incarnation,
        path: this.#path,
        percent: this.#restoredPercent,
      });
      if (restored !== null) {
        this.#isBehind = false;
        this.#columnsInFiles = restored.stats.columnsInFiles;
        this.#journalBytes = restored.journalBytes;
      }
      return restored;
    } catch (error) {
      const code = error instanceof LodestoneError ? error.code : undefined;
      if (isKept || code === "UNAVAILABLE") throw error;
      this.#isBad = true;
      // The next attempt, minutes later, reads the records, which may be fewer by then than the snapshot holds.
      if (code === "OUT_OF_MEMORY") throw error;
      this.#onFault(error);
      return null;
    } finally {
      Atomics.store(this.#restoredPercent, 0, 0);
    }
  }

  /** Whether a branch of that size is kept on disk at all. */
  isKept({ vectors, texts }: BranchStats): boolean {
    return this.#path !== undefined && vectors + texts >= MIN_SNAPSHOT_ROWS;
  }

  /**
   * True if there are changes worth a file, and either no journal holds them or the journal has grown too long; and when vectors
   * have gone to files since: a start from the snapshot would move them once more.
   */
  needsSnapshot(state: FollowedState | undefined, stats: BranchStats): boolean {
    if (state?.isWhole !== true || !this.isKept(stats)) return false;
    if (this.#journalBytes === undefined) return this.#isBehind;
    if (stats.columnsInFiles > this.#columnsInFiles) return true;
    const isQuiet = performance.now() - this.#changedAt >= this.#quietMs;
    return this.#journalBytes > this.#journalLimit(stats) / (isQuiet ? QUIET_SHARE : 1);
  }

  /** It is twice as long as it should be: the next snapshot should not wait for its time. */
  isJournalLong(stats: BranchStats): boolean {
    return (this.#journalBytes ?? 0) > 2 * this.#journalLimit(stats);
  }

  #journalLimit({ columnsInFiles, memoryBytes }: BranchStats): number {
    return this.#maxJournalBytes ?? Math.max(MIN_LONG_JOURNAL_BYTES, memoryBytes / (columnsInFiles > 0 ? 16 : 2));
  }

  get hasJournal(): boolean {
    return this.#journalBytes !== undefined;
  }

  /** Writes the changes since the snapshot to disk. Afterwards the feed may discard older changes. */
  async flush(state: FollowedState | undefined): Promise<void> {
    if (this.#path === undefined || !this.#isBehind || state?.isWhole !== true) return;
    this.#isBehind = false;
    this.#journalBytes = undefined;
    try {
      const flushed = await this.#engine.call("flush", { key: this.#key });
      if (flushed === null) return this.changed();
      this.#journalBytes = flushed.bytes;
      await this.#records.feed.acknowledge(this.#ref, flushed.position, state.incarnation);
    } catch (error) {
      this.changed();
      throw error;
    }
  }

  /**
   * Writes the branch to its file while it is searched and changed. Afterwards the feed may discard older
   * changes.
   */
  async save({ position: reached, incarnation }: FollowedState, { columnsInFiles }: BranchStats): Promise<void> {
    let position: FeedPosition;
    this.#isBehind = false;
    try {
      const saved = await this.#engine.call("snapshot", { key: this.#key, path: this.#path!, position: reached });
      if (saved === null) {
        this.#isBehind = true;
        return;
      }
      this.#journalBytes = 0;
      this.#columnsInFiles = columnsInFiles;
      position = saved.position;
    } catch (error) {
      this.#isBehind = true;
      throw error;
    }
    this.#isBad = false;
    await this.#records.feed.acknowledge(this.#ref, position, incarnation);
  }
}
