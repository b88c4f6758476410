/**
 * Keeps one branch of the search engine up to date with the records. It reads the branch in full once, then
 * follows the change feed in rounds.
 *
 * A round reads all pending changes and applies them at once, so searches always see exactly one position of
 * the feed. If the schema has changed, new columns and tables are read first and applied in the same step. If
 * the branch was recreated, or the position is too old for the feed, the branch is read again on the side and
 * then replaces the old copy.
 */
import { LodestoneError } from "../errors.ts";
import type { ChangeFeed, FeedBatch, FeedPosition, SharedSnapshot } from "../records/feed/feed-types.ts";
import type { Part } from "../records/feed/part.ts";
import { isSeenBy } from "../records/feed/position.ts";
import type { BranchInfo, BranchRef } from "../records/schema.ts";
import {
  differsInParts,
  type FollowedSchema,
  type FollowedTable,
  followedSchema,
  inParts,
  missingData,
  partsOf,
} from "./followed-schema.ts";
import { IndexFullError } from "./index-full.ts";
import { buffersOf, type ReadChanges, readChanges } from "./read-changes.ts";
import { RoundTurns } from "./round-turns.ts";
import { EngineChangedError, type SearchEngine } from "./search-engine.ts";
import { type BranchKey, type BranchStats, MIN_SNAPSHOT_VECTORS } from "./search-messages.ts";

/** The part of the record store's interface that the search store needs. */
export interface FollowedRecords {
  readonly feed: ChangeFeed;
  branch(ref: BranchRef): Promise<BranchInfo>;
  allBranches(): Promise<readonly BranchRef[]>;
}

export interface FollowerOptions {
  /** Path of the branch's snapshot file; undefined: no snapshots. */
  readonly snapshotPath: string | undefined;
  /**
   * A journal longer than this is replaced by a new snapshot. undefined: half of the index's memory, at least
   * 16 MiB.
   */
  readonly journalBytes: number | undefined;
  /** Which part to hold of the tables that can be split into parts; undefined: all. */
  readonly part?: Part | undefined;
  /** Receives faults that are recovered from. */
  readonly onFault: (error: unknown) => void;
}

interface FollowedState {
  readonly incarnation: string;
  readonly version: number;
  readonly position: FeedPosition;
  readonly schema: FollowedSchema;
  /**
   * False for a restored snapshot until the changes since then are applied. It is not searched before that.
   */
  readonly isWhole: boolean;
}

/** A journal shorter than this never triggers a new snapshot. */
const MIN_LONG_JOURNAL_BYTES = 1 << 24;

/** If the schema changes during a read, the read is repeated, at most this often in one round. */
const MAX_SCHEMA_ATTEMPTS = 20;
const SCHEMA_RETRY_MS = 20;
/**
 * If another server changes the engine's state at the same time, that state is adopted, at most this often in
 * one round.
 */
const MAX_CHANGED_ATTEMPTS = 20;
const ACKNOWLEDGE_EVERY_MS = 1_000;

let nextBuild = 1;

type Tail<List extends unknown[]> = List extends [unknown, ...infer Rest] ? Rest : never;

export class BranchFollower {
  readonly ref: BranchRef;
  readonly key: BranchKey;
  readonly #records: FollowedRecords;
  readonly #engine: SearchEngine;
  #state: FollowedState | undefined;
  #stats: BranchStats = { vectors: 0, memoryBytes: 0 };
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #isGone = false;
  #isBuilding = false;
  /** Incremented each time the engine is lost. Results of work begun in an earlier epoch are discarded. */
  #epoch = 0;
  readonly #turns = new RoundTurns();
  readonly #part: Part | undefined;
  #acknowledgedAt = Number.NEGATIVE_INFINITY;

  readonly #snapshotPath: string | undefined;
  readonly #maxJournalBytes: number | undefined;
  readonly #onFault: (error: unknown) => void;
  /** Whether there are changes that the snapshot on disk does not have. */
  #isUnsaved = false;
  /** undefined: no journal continues the snapshot. */
  #journalBytes: number | undefined;
  /** The snapshot on disk failed its checks. It is not tried again until another one is written. */
  #isSnapshotBad = false;

  constructor(ref: BranchRef, records: FollowedRecords, engine: SearchEngine, options: FollowerOptions) {
    this.ref = ref;
    this.#snapshotPath = options.snapshotPath;
    this.#maxJournalBytes = options.journalBytes;
    this.#onFault = options.onFault;
    this.#part = options.part;
    this.key = branchKey(ref);
    this.#records = records;
    this.#engine = engine;
  }

  /**
   * The incarnation and version of the schema that searches see; undefined until the branch has been read.
   */
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

  /** True once the branch has been dropped. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** True while the branch is being read in full: searches still see an outdated copy, or none. */
  get isBuilding(): boolean {
    return this.#isBuilding;
  }

  /** Call this when the engine has lost its data. */
  reset(): void {
    this.#epoch++;
    this.#state = undefined;
    this.#journalBytes = undefined;
    this.#stats = { vectors: 0, memoryBytes: 0 };
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
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.sync();
      });
    return this.#next;
  }

  /**
   * Brings searches to exactly the state that the snapshot sees, then calls `work`. `work` must send its
   * requests to the engine synchronously; their answers are not awaited here. undefined: searches are already
   * beyond the snapshot, or have another schema. A later snapshot may succeed.
   */
  async at<Result>(snapshot: SharedSnapshot, work: () => Result): Promise<{ readonly result: Result } | undefined> {
    const outcome = await this.#turns.runFirst(() => this.#moveTo(snapshot, work));
    if (outcome === "passed") this.#turns.holdBack();
    // Nobody waits for that round here. The next round reports its fault.
    else if (outcome === "changed") this.sync().catch(() => {});
    return typeof outcome === "string" ? undefined : outcome;
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
        await new Promise((resolve) => setTimeout(resolve, Math.random() * SCHEMA_RETRY_MS));
      }
    }
  }

  async #roundOnce(): Promise<void> {
    let info: BranchInfo;
    try {
      info = await this.#records.branch(this.ref);
      if (this.#state === undefined) await this.#restore(info);
      if (this.#state === undefined || this.#state.incarnation !== info.incarnation) await this.#build(info);
      if (await this.#follow()) return;
      await this.#build(await this.#records.branch(this.ref));
    } catch (error) {
      if (error instanceof LodestoneError && error.code === "OUT_OF_MEMORY") {
        this.reset();
        this.#isBuilding = false;
        throw new IndexFullError(error);
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
      await this.#records.branch(this.ref);
      return true;
    } catch (error) {
      if (error instanceof LodestoneError && error.code === "NOT_FOUND") return false;
      throw error;
    }
  }

  /**
   * Restores the branch from what the engine keeps, or from a snapshot that passes its checks. The round
   * continues from its position.
   */
  async #restore(info: BranchInfo): Promise<void> {
    const isKept = this.#engine.keepsState === true;
    if (!isKept && (this.#snapshotPath === undefined || this.#isSnapshotBad)) return;
    const epoch = this.#epoch;
    const { incarnation } = info;
    try {
      const restored = await this.#engine.call("restore", { key: this.key, incarnation, path: this.#snapshotPath });
      if (restored === null) return;
      const { version, schema, position, stats } = restored;
      if (differsInParts(schema, this.#inParts(schema))) {
        await this.#engine.call("drop", { key: this.key });
        return;
      }
      this.#isUnsaved = false;
      this.#enter({ incarnation, version, position, schema, isWhole: isKept }, stats, epoch);
    } catch (error) {
      if (isKept || (error instanceof LodestoneError && (error.code === "UNAVAILABLE" || error.code === "OUT_OF_MEMORY"))) throw error;
      this.#isSnapshotBad = true;
      this.#onFault(error);
    }
  }

  /**
   * True if there are unsaved changes worth a file, and either no journal holds them or the journal has grown
   * too long.
   */
  get needsSnapshot(): boolean {
    if (this.#snapshotPath === undefined || this.#state?.isWhole !== true || !this.#isLarge) return false;
    return this.#journalBytes === undefined
      ? this.#isUnsaved
      : this.#journalBytes > (this.#maxJournalBytes ?? Math.max(MIN_LONG_JOURNAL_BYTES, this.#stats.memoryBytes / 2));
  }

  get hasJournal(): boolean {
    return this.#journalBytes !== undefined;
  }

  /** Writes the changes since the snapshot to disk. Afterwards the feed may discard older changes. */
  async flush(): Promise<void> {
    const state = this.#state;
    if (this.#snapshotPath === undefined || !this.#isUnsaved || state?.isWhole !== true) return;
    this.#isUnsaved = false;
    const flushed = await this.#engine.call("flush", { key: this.key }).catch(() => null);
    this.#journalBytes = flushed?.bytes;
    if (flushed === null) this.#isUnsaved = true;
    else await this.#records.feed.acknowledge(this.ref, flushed.position, state.incarnation);
  }

  /**
   * Writes the branch to its file while it is searched and changed. Afterwards the feed may discard older
   * changes.
   */
  async saveSnapshot(): Promise<void> {
    let position: FeedPosition;
    const state = this.#state;
    if (!this.needsSnapshot || state === undefined) return;
    this.#isUnsaved = false;
    try {
      const saved = await this.#engine.call("snapshot", { key: this.key, path: this.#snapshotPath!, position: state.position });
      if (saved === null) {
        this.#isUnsaved = true;
        return;
      }
      this.#journalBytes = 0;
      position = saved.position;
    } catch (error) {
      this.#isUnsaved = true;
      throw error;
    }
    this.#isSnapshotBad = false;
    await this.#records.feed.acknowledge(this.ref, position, state.incarnation);
  }

  get #isLarge(): boolean {
    return this.#stats.vectors >= MIN_SNAPSHOT_VECTORS;
  }

  /** Reads the branch in full. Starts over if its schema changes meanwhile. */
  async #build(first: BranchInfo): Promise<void> {
    this.#isBuilding = true;
    await this.#buildWhole(first);
    this.#isBuilding = false;
  }

  async #buildWhole(first: BranchInfo): Promise<void> {
    let info = first;
    const epoch = this.#epoch;
    for (let attempt = 0; attempt < MAX_SCHEMA_ATTEMPTS; attempt++) {
      const schema = followedSchema(info, this.#part);
      const build = nextBuild++;
      const { incarnation, version } = info;
      const begin = async (position: FeedPosition): Promise<void> => {
        const draft = this.#snapshotPath === undefined ? {} : { draft: { path: this.#snapshotPath, position } };
        await this.#engine.call("begin", { build, key: this.key, incarnation, version, tables: schema, ...draft });
      };
      try {
        const tables = [...schema.values()].map(({ name, part }) => ({ table: name, ...(part && { part }) }));
        const load = async (batch: FeedBatch): Promise<void> => {
          await this.#engine.call("load", { build, batch }, buffersOf([batch]));
        };
        const read = await this.#readAll(tables, load, begin);
        if (read !== null && read.schemaVersion === version && read.incarnation === incarnation) {
          const stats = await this.#engine.call("install", { build, key: this.key, position: read.position });
          this.#isUnsaved = true;
          this.#enter({ incarnation, version, position: read.position, schema, isWhole: true }, stats, epoch);
          return;
        }
      } catch (error) {
        await this.#engine.call("abandon", { build }).catch(() => {});
        throw error;
      }
      await this.#engine.call("abandon", { build });
      info = await this.#infoAfter(info);
    }
    throw changing(this.key);
  }

  /** Applies the pending changes. false: the branch has to be read in full. */
  async #follow(): Promise<boolean> {
    const epoch = this.#epoch;
    for (;;) {
      const state = this.#state!;
      const read = await readChanges(this.#records.feed, this.#engine, { ref: this.ref, key: this.key, state });
      if (read === null) return false;
      if (read.version !== state.version) {
        if (!(await this.#alter(state, read.version))) return false;
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
      stats = await this.#engine.call("commit", { key: this.key, batches, position }, buffersOf(batches));
      this.#isUnsaved ||= hasChanged;
    }
    this.#enter({ ...state, position, isWhole: true }, stats, epoch);
    return position;
  }

  #inParts(schema: FollowedSchema): FollowedSchema {
    return this.#part === undefined
      ? new Map([...schema].map(([name, { part: _part, ...table }]) => [name, table]))
      : inParts(schema, this.#part);
  }

  /**
   * Moves to the schema of at least `version`. Reads what is new, then the changes since the position that
   * searches see, and applies both at once. The changes are read last, so the result is right whatever was
   * written while the new columns were read. false: the branch has to be read in full.
   */
  async #alter(state: FollowedState, version: number): Promise<boolean> {
    const { feed } = this.#records;
    const epoch = this.#epoch;
    let info = await this.#infoAfter(state, version);
    for (let attempt = 0; attempt < MAX_SCHEMA_ATTEMPTS; attempt++) {
      if (info.incarnation !== state.incarnation) return false;
      const schema = followedSchema(info, this.#part);
      if (differsInParts(state.schema, schema)) return false;
      const missing = missingData(state.schema, schema);
      try {
        let isStable = true;
        if (missing.length > 0) {
          const read = await this.#readAll(missing, async (batch) => {
            await this.#engine.call("stage", { key: this.key, batch, schema }, buffersOf([batch]));
          });
          if (read !== null && read.incarnation !== state.incarnation) return false;
          isStable = read?.schemaVersion === info.version;
        }
        const batches: FeedBatch[] = [];
        let { position } = state;
        for (let complete = false; isStable && !complete; ) {
          const changes = await feed.readSince(this.ref, position, state.incarnation, { parts: partsOf(schema) });
          if (changes === null) return false;
          isStable = changes.schemaVersion === info.version;
          batches.push(...changes.batches);
          position = changes.position;
          complete = changes.complete;
        }
        if (isStable) {
          const commit = { key: this.key, schema: { version: info.version, tables: schema }, batches, position };
          const stats = await this.#engine.call("commit", commit, buffersOf(batches));
          this.#isUnsaved = true;
          this.#enter({ incarnation: state.incarnation, version: info.version, position, schema, isWhole: true }, stats, epoch);
          return true;
        }
      } finally {
        await this.#engine.call("unstage", { key: this.key });
      }
      info = await this.#infoAfter(info);
    }
    throw changing(this.key);
  }

  /** null: the schema changed while the tables were read. */
  async #readAll(
    ...[tables, onBatch, onStart]: Tail<Parameters<ChangeFeed["readAll"]>>
  ): Promise<Awaited<ReturnType<ChangeFeed["readAll"]>> | null> {
    try {
      return await this.#records.feed.readAll(this.ref, tables, onBatch, onStart);
    } catch (error) {
      if (error instanceof LodestoneError && error.code === "CONFLICT") return null;
      throw error;
    }
  }

  #enter(state: FollowedState, stats: BranchStats, epoch: number): void {
    if (epoch !== this.#epoch) {
      throw new LodestoneError("UNAVAILABLE", "The search store is starting again after a fault; try again in a moment.", {
        retryAfterSeconds: 1,
      });
    }
    this.#state = state;
    this.#stats = stats;
    this.#isGone = false;
  }

  /**
   * Lets the feed discard old changes, from time to time. Where there are snapshots, only those that the last
   * snapshot contains (`saveSnapshot`).
   */
  async #acknowledge(position: FeedPosition, incarnation: string): Promise<void> {
    if (this.#snapshotPath !== undefined && this.#isLarge) return;
    if (performance.now() - this.#acknowledgedAt < ACKNOWLEDGE_EVERY_MS) return;
    this.#acknowledgedAt = performance.now();
    await this.#records.feed.acknowledge(this.ref, position, incarnation);
  }

  /**
   * The catalog's entry for the branch, once it is newer than `before`. The catalog learns of changes by
   * other servers with a short delay.
   */
  async #infoAfter(before: { readonly incarnation: string; readonly version: number }, version = before.version + 1): Promise<BranchInfo> {
    for (let attempt = 0; ; attempt++) {
      const info = await this.#records.branch(this.ref);
      if (info.incarnation !== before.incarnation || info.version >= version || attempt === MAX_SCHEMA_ATTEMPTS) return info;
      await new Promise((resolve) => setTimeout(resolve, SCHEMA_RETRY_MS));
    }
  }
}

export function branchKey(ref: BranchRef): BranchKey {
  return `${ref.database}:${ref.branch}`;
}

function changing(key: BranchKey): LodestoneError {
  return new LodestoneError("UNAVAILABLE", `The schema of branch ${key} keeps changing; the search store tries again.`, {
    retryAfterSeconds: 1,
  });
}
