/**
 * Keeps one branch of the search engine up to date with the records. It reads the branch in full once, then
 * follows the change feed in rounds: wait, read, apply, checkpoint.
 *
 *   wait        followed-branches.ts: a NOTIFY (records/feed/wake-ups.ts), a poll or a retry calls `sync`
 *   restore     nothing is held: from what the engine keeps, or from a snapshot
 *   build       nothing to restore, another incarnation, or a position too old for the feed: in full
 *   read        `readChanges` calls the feed's `readSince` until a read is complete
 *   alter       the read has another version of the schema: its new columns and tables, then read again
 *   apply       one commit of the engine: from here on searches see the changes
 *   checkpoint  the feed may discard them (`#acknowledge`; with snapshots, once they are on disk: saved-branch.ts)
 *
 * A failed round leaves what searches see; the next one begins at its position. Three things reset it to
 * "nothing is held": the engine lost its data, another server changed it, or it has no room for the branch. A
 * dropped branch is removed from the engine.
 *
 * A round reads all pending changes and applies them at once, so searches always see exactly one position of
 * the feed. If the schema has changed, new columns and tables are read first and applied in the same step. If
 * the branch was recreated, or the position is too old for the feed, the branch is read again on the side and
 * then replaces the old copy.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { FeedPosition, Part, SharedSnapshot } from "../records/feed/feed-types.ts";
import { isSeenBy } from "../records/feed/position.ts";
import type { BranchInfo, BranchRef } from "../records/schema.ts";
import { BranchReader, buffersOf, type ReadChanges, readChanges } from "./branch-reader.ts";
import {
  differsInParts,
  type FollowedRecords,
  type FollowedSchema,
  type FollowedState,
  type FollowedTable,
  inParts,
} from "./followed-schema.ts";
import { RoundTurns } from "./round-turns.ts";
import { EngineChangedError, IndexFullError, type SearchEngine } from "./search-engine.ts";
import { type BranchKey, type BranchStats, branchKey } from "./search-messages.ts";
import { SavedBranch, type SavedBranchOptions } from "./snapshot/saved-branch.ts";
import { lacksTexts, WantedTexts } from "./text/wanted-texts.ts";

export interface FollowerOptions extends SavedBranchOptions {
  /** Which part to hold of the tables that can be split into parts; undefined: all. */
  readonly part?: Part | undefined;
  /** False: vectors are another store's, and this one has words only. */
  readonly vectors?: boolean | undefined;
}

/**
 * If another server changes the engine's state at the same time, that state is adopted, at most this often in
 * one round.
 */
const MAX_CHANGED_ATTEMPTS = 20;
const CHANGED_RETRY_MS = 20;
const ACKNOWLEDGE_EVERY_MS = 1_000;
const NOTHING_HELD: BranchStats = { vectors: 0, texts: 0, memoryBytes: 0, fileBytes: 0, columnsInFiles: 0 };

export class BranchFollower {
  readonly ref: BranchRef;
  readonly key: BranchKey;
  readonly #records: FollowedRecords;
  readonly #engine: SearchEngine;
  #state: FollowedState | undefined;
  #changes = 0;
  #stats = NOTHING_HELD;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #isGone = false;
  /** The incarnation that is being read in full. */
  #building: string | undefined;
  /** Incremented each time the engine is lost. Results of work begun in an earlier epoch are discarded. */
  #epoch = 0;
  readonly #turns = new RoundTurns();
  readonly #part: Part | undefined;
  readonly #reader: BranchReader;
  /** Whose words are held or are to be. */
  readonly #texts = new WantedTexts();
  readonly #saved: SavedBranch;
  #acknowledgedAt = Number.NEGATIVE_INFINITY;
  /** The engine still holds what is damaged. */
  #isDamaged = false;

  constructor(ref: BranchRef, records: FollowedRecords, engine: SearchEngine, options: FollowerOptions) {
    this.ref = ref;
    this.key = branchKey(ref);
    this.#records = records;
    this.#engine = engine;
    this.#part = options.part;
    const { part, vectors } = options;
    this.#reader = new BranchReader(ref, records, engine, () => ({
      part,
      texts: this.#texts.tables,
      ...(vectors !== undefined && { vectors }),
    }));
    this.#saved = new SavedBranch(ref, records, engine, options);
  }

  /** Counts what has changed what searches see, its schema included: while it stays, so does what they see. */
  get changes(): number {
    return this.#changes;
  }

  /** The incarnation and version of the schema that searches see; undefined until the branch has been read. */
  get state(): { readonly incarnation: string; readonly version: number } | undefined {
    return this.#state;
  }

  get stats(): BranchStats {
    return this.#stats;
  }

  /** Number of tables with vectors that are held in full although the store holds a part. */
  get wholeTables(): number {
    if (this.#part === undefined) return 0;
    const hasVectors = ({ columns }: FollowedTable): boolean => [...columns.values()].some(({ vector }) => vector !== undefined);
    return [...(this.#state?.schema.values() ?? [])].filter((table) => table.part === undefined && hasVectors(table)).length;
  }

  /**
   * Asks for the words of these tables. From the first search on they are held, as long as the branch is.
   *
   * @returns false: the next round reads them.
   * @throws {IndexFullError} they did not fit into the memory for indexes lately.
   */
  holdsTexts(tables: readonly number[]): boolean {
    this.#texts.add(tables);
    return this.#state !== undefined && !lacksTexts(this.#state.schema, tables);
  }

  /** Their words did not fit: they are asked for no longer, for a while. */
  refuseTexts(error: LodestoneError): IndexFullError {
    return this.#texts.refuse(error);
  }

  /** True once the branch has been dropped. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** How far its first reading is, in words, where that is known. */
  get progress(): string | undefined {
    return this.#reader.progress ?? this.#saved.progress;
  }

  /** True while the branch is being read in full: searches still see an outdated copy, or none. */
  get isBuilding(): boolean {
    return this.#building !== undefined;
  }

  /** True while it is read in full again: searches see its past. A branch created anew under the name has none. */
  get isReadAgain(): boolean {
    return this.isBuilding && this.#building === this.#state?.incarnation;
  }

  /** Call this when the engine has lost its data. */
  reset(): void {
    this.#epoch++;
    this.#state = undefined;
    this.#saved.reset();
    this.#stats = NOTHING_HELD;
  }

  /** Call this when what the engine holds of the branch, or its snapshot, has turned out to be damaged: the records are read again. */
  damaged(): void {
    this.#saved.spoil();
    this.reset();
    this.#isDamaged = true;
  }

  /**
   * Resolves once searches see everything that was committed before the call, that is, after a round that
   * started later than the call. Calls made during a round share the next one.
   */
  sync(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#turns
        .run(() => this.#round())
        .finally(() => {
          this.#running = undefined;
        });
      return this.#running;
    }
    this.#next ??= this.#running
      .catch(() => {}) // told to those who wait for that round
      .then(() => {
        this.#next = undefined;
        return this.sync();
      });
    return this.#next;
  }

  /**
   * Brings searches to exactly the state that the snapshot sees, then calls `work`. `work` must send its
   * requests to the engine synchronously; their answers are not awaited here. Otherwise searches are already
   * beyond the snapshot ("passed"), or have another schema or nothing yet ("changed": they need a round). A later
   * snapshot may succeed.
   */
  async at<Result>(snapshot: SharedSnapshot, work: () => Result): Promise<{ readonly result: Result } | "passed" | "changed"> {
    const outcome = await this.#turns.runFirst(() => this.#moveTo(snapshot, work));
    if (outcome === "passed") this.#turns.holdBack();
    return outcome;
  }

  async #moveTo<Result>(snapshot: SharedSnapshot, work: () => Result): Promise<{ readonly result: Result } | "passed" | "changed"> {
    const epoch = this.#epoch;
    const state = this.#state;
    if (state?.isWhole !== true) return "changed";
    // Nothing was committed between the two.
    if (state.position === snapshot.position) return { result: work() };
    if (!isSeenBy(state.position, snapshot.position)) return "passed";
    const read = await readChanges(this.#records.feed, this.#engine, { ref: this.ref, key: this.key, state }, snapshot);
    if (read === null || read.version !== state.version) return "changed";
    await this.#apply(state, read, epoch);
    return { result: work() };
  }

  async #round(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#roundOnce();
      } catch (error) {
        if (!(error instanceof EngineChangedError)) throw error;
        this.reset();
        if (attempt === MAX_CHANGED_ATTEMPTS) throw error;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * CHANGED_RETRY_MS));
      }
    }
  }

  async #roundOnce(): Promise<void> {
    let info: BranchInfo;
    try {
      info = await this.#records.branch(this.ref);
      if (this.#isDamaged) await this.#engine.call("drop", { key: this.key });
      this.#isDamaged = false;
      // A snapshot may have the words that did not fit.
      if (this.#state === undefined && !this.#texts.isRefused) await this.#restore(info);
      if (this.#state === undefined || this.#state.incarnation !== info.incarnation) await this.#build(info);
      if (await this.#follow()) return;
      await this.#build(await this.#records.currentBranch(this.ref));
    } catch (error) {
      if (error instanceof LodestoneError && error.code === "OUT_OF_MEMORY") {
        this.reset();
        this.#building = undefined;
        // Perhaps the vectors fit alone.
        if (this.#texts.tables.size > 0) this.#texts.refuse(error);
        throw new IndexFullError(error);
      }
      if (error instanceof LodestoneError && error.code === "CORRUPT") {
        this.damaged();
        this.#building = undefined;
        throw damagedIndex(this.key, error);
      }
      if (!(error instanceof LodestoneError && error.code === "NOT_FOUND")) throw error;
      // Was the branch dropped, or only a table while it was being read?
      if (await this.#exists()) throw new LodestoneError("UNAVAILABLE", `Branch ${this.key} changed while it was read.`, { cause: error });
      this.reset();
      this.#isGone = true;
      await this.#engine.call("drop", { key: this.key });
    }
  }

  async #exists(): Promise<boolean> {
    try {
      await this.#records.currentBranch(this.ref);
      return true;
    } catch (error) {
      if (error instanceof LodestoneError && error.code === "NOT_FOUND") return false;
      throw error;
    }
  }

  /**
   * Restores the branch from what the engine keeps, or from a snapshot. The round continues from its position.
   */
  async #restore({ incarnation }: BranchInfo): Promise<void> {
    const epoch = this.#epoch;
    const restored = await this.#saved.restore(incarnation);
    if (restored === null) return;
    const { version, schema, position, stats } = restored;
    this.#texts.addHeld(schema);
    if (differsInParts(schema, this.#inParts(schema))) await this.#engine.call("drop", { key: this.key });
    else this.#enter({ incarnation, version, position, schema, isWhole: this.#engine.keepsState === true }, stats, epoch);
  }

  /** True if there are changes worth a snapshot. */
  get needsSnapshot(): boolean {
    return this.#saved.needsSnapshot(this.#state, this.#stats);
  }

  /** See SavedBranch. */
  get isJournalLong(): boolean {
    return this.#saved.isJournalLong(this.#stats);
  }

  get hasJournal(): boolean {
    return this.#saved.hasJournal;
  }

  /** Its snapshot is another server's from now on. */
  leaveSnapshot(): void {
    this.#saved.leave();
  }

  /** Writes the changes since the snapshot to disk. */
  flush(): Promise<void> {
    return this.#saved.flush(this.#state);
  }

  /** Writes the branch to its file while it is searched and changed. */
  async saveSnapshot(): Promise<void> {
    if (this.#state !== undefined && this.needsSnapshot) await this.#saved.save(this.#state, this.#stats);
  }

  async #build(info: BranchInfo): Promise<void> {
    this.#building = info.incarnation;
    const epoch = this.#epoch;
    const { state, stats } = await this.#reader.build(info, this.#saved.path);
    this.#saved.changed();
    this.#enter(state, stats, epoch);
    this.#building = undefined;
  }

  /** Applies the pending changes. false: the branch has to be read in full. */
  async #follow(): Promise<boolean> {
    const epoch = this.#epoch;
    for (;;) {
      const state = this.#state!;
      const read = this.#texts.isMetBy(state.schema)
        ? await readChanges(this.#records.feed, this.#engine, { ref: this.ref, key: this.key, state })
        : undefined;
      if (read === null) return false;
      if (read === undefined || read.version !== state.version) {
        const altered = await this.#reader.alter(state);
        if (altered === undefined) return false;
        this.#saved.changed();
        this.#enter(altered.state, altered.stats, epoch);
        continue;
      }
      const position = await this.#apply(state, read, epoch);
      await this.#acknowledge(position, state.incarnation);
      // A complete read delivers everything that its snapshot sees, and the snapshot was taken after the
      // round began.
      return true;
    }
  }

  /** @returns the position that searches are at afterwards. */
  async #apply(state: FollowedState, read: ReadChanges, epoch: number): Promise<FeedPosition> {
    const { batches, isStaged } = read;
    const hasChanged = isStaged || batches.length > 0;
    // Continue from the position that the engine keeps: nothing beyond it is acknowledged.
    const position = this.#engine.keepsState === true && !hasChanged ? state.position : read.position;
    let stats = this.#stats;
    if (hasChanged || !state.isWhole) {
      this.#changes++;
      stats = await this.#engine.call("commit", { key: this.key, batches, position }, buffersOf(batches));
      if (hasChanged) this.#saved.changed();
    }
    this.#enter({ ...state, position, isWhole: true }, stats, epoch);
    return position;
  }

  #inParts(schema: FollowedSchema): FollowedSchema {
    return this.#part === undefined
      ? new Map([...schema].map(([name, { part: _part, ...table }]) => [name, table]))
      : inParts(schema, this.#part);
  }

  #enter(state: FollowedState, stats: BranchStats, epoch: number): void {
    if (this.#state?.version !== state.version || this.#state.incarnation !== state.incarnation) this.#changes++;
    if (epoch !== this.#epoch) {
      throw new LodestoneError("UNAVAILABLE", "The search store is starting again after a fault; try again in a moment.", {
        retryAfterSeconds: 1,
      });
    }
    this.#state = state;
    this.#stats = stats;
    this.#isGone = false;
    this.#texts.keepThoseOf(state.schema);
  }

  /**
   * Lets the feed discard old changes, from time to time. Where there are snapshots, only those that the last
   * snapshot contains (`saveSnapshot`).
   */
  async #acknowledge(position: FeedPosition, incarnation: string): Promise<void> {
    if (this.#saved.isKept(this.#stats)) return;
    if (performance.now() - this.#acknowledgedAt < ACKNOWLEDGE_EVERY_MS) return;
    this.#acknowledgedAt = performance.now();
    await this.#records.feed.acknowledge(this.ref, position, incarnation);
  }
}

/** What searches are told until the records have been read again. */
export function damagedIndex(key: BranchKey, cause: LodestoneError): LodestoneError {
  return new LodestoneError("UNAVAILABLE", `The index of branch ${key} is made again from its records. ${cause.message}`, {
    retryAfterSeconds: 1,
    cause,
  });
}
