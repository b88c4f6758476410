/**
 * Keeps one branch of the search engine up to date with the records: reads it whole, then follows the change
 * feed, one round after another.
 *
 * A round reads everything that is there to read and applies it at once, so what searches see is always one
 * position of the feed. When the schema has changed, new columns and tables are read first and come with the
 * same step; when the branch was made again, or the position is too old, the branch is read again aside and
 * takes the old one's place.
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

/** What the search store needs of the record store; the record store has more. */
export interface FollowedRecords {
  readonly feed: ChangeFeed;
  branch(ref: BranchRef): Promise<BranchInfo>;
  allBranches(): Promise<readonly BranchRef[]>;
}

export interface FollowerOptions {
  /** Where the branch's snapshot stands; undefined for none. */
  readonly snapshotPath: string | undefined;
  /** A longer journal is replaced by a new snapshot; undefined: half of the index's memory, at least 16 MiB. */
  readonly journalBytes: number | undefined;
  /** What is held of the tables that can be held in parts; undefined: all. */
  readonly part?: Part | undefined;
  /** Told of faults that are recovered from. */
  readonly onFault: (error: unknown) => void;
}

interface FollowedState {
  readonly incarnation: string;
  readonly version: number;
  readonly position: FeedPosition;
  readonly schema: FollowedSchema;
  /** False for what a snapshot gave, until the changes since are applied: it is not searched before. */
  readonly isWhole: boolean;
}

/** A journal that is shorter is not worth a new snapshot. */
const MIN_LONG_JOURNAL_BYTES = 1 << 24;

/** A schema that changes while it is read is read again, at most this often in one round. */
const MAX_SCHEMA_ATTEMPTS = 20;
const SCHEMA_RETRY_MS = 20;
/** What another server changes at the same time is taken up and followed on from, at most this often in one round. */
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
  /** Grows with each loss of the engine: what began before it must not be believed after it. */
  #epoch = 0;
  readonly #turns = new RoundTurns();
  readonly #part: Part | undefined;
  #acknowledgedAt = Number.NEGATIVE_INFINITY;

  readonly #snapshotPath: string | undefined;
  readonly #maxJournalBytes: number | undefined;
  readonly #onFault: (error: unknown) => void;
  /** Whether there is anything that the snapshot on disk does not have. */
  #isUnsaved = false;
  /** undefined: there is no journal that continues from the snapshot. */
  #journalBytes: number | undefined;
  /** The snapshot on disk failed its checks: not to be tried again before another is written. */
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

  /** The incarnation and version of the schema that searches see; undefined before the branch was read. */
  get state(): { readonly incarnation: string; readonly version: number } | undefined {
    return this.#state;
  }

  get stats(): BranchStats {
    return this.#stats;
  }

  /** Tables with vectors that are held whole although the store holds a part. */
  get wholeTables(): number {
    if (this.#part === undefined) return 0;
    const hasVectors = ({ columns }: FollowedTable): boolean => [...columns.values()].some(({ vector }) => vector !== undefined);
    return [...(this.#state?.schema.values() ?? [])].filter((table) => table.part === undefined && hasVectors(table)).length;
  }

  /** The branch was dropped. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** What searches see is not of this branch as it is now: it is being read whole. */
  get isBuilding(): boolean {
    return this.#isBuilding;
  }

  /** What the engine had is lost. */
  reset(): void {
    this.#epoch++;
    this.#state = undefined;
    this.#journalBytes = undefined;
    this.#stats = { vectors: 0, memoryBytes: 0 };
  }

  /**
   * Resolves once searches see everything that was committed before the call: after a round that started after
   * it. Calls that come while a round runs share the next.
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
   * Brings what searches see to exactly what the snapshot sees, and calls `work`, which asks the engine before
   * it goes any further (what it asks is not waited for). undefined: searches see more than that already, or
   * another schema; it can be done with a later snapshot.
   */
  async at<Result>(snapshot: SharedSnapshot, work: () => Result): Promise<{ readonly result: Result } | undefined> {
    const outcome = await this.#turns.runFirst(() => this.#moveTo(snapshot, work));
    if (outcome === "passed") this.#turns.holdBack();
    // Nobody waits for that round here, and its fault is told by the next.
    else if (outcome === "changed") this.sync().catch(() => {});
    return typeof outcome === "string" ? undefined : outcome;
  }

  async #moveTo<Result>(snapshot: SharedSnapshot, work: () => Result): Promise<{ readonly result: Result } | "passed" | "changed"> {
    const epoch = this.#epoch;
    const state = this.#state;
    if (state?.isWhole !== true) return "changed";
    // Nothing at all was committed between the two.
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
      // Was it the branch, or only a table that went while it was read?
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
   * Takes the branch from what the engine keeps, or from its snapshot, if there is one to be trusted; the round
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

  /** There is something to save that is worth a file, and no journal has it, or the journal has grown too long. */
  get needsSnapshot(): boolean {
    if (this.#snapshotPath === undefined || this.#state?.isWhole !== true || !this.#isLarge) return false;
    return this.#journalBytes === undefined
      ? this.#isUnsaved
      : this.#journalBytes > (this.#maxJournalBytes ?? Math.max(MIN_LONG_JOURNAL_BYTES, this.#stats.memoryBytes / 2));
  }

  get hasJournal(): boolean {
    return this.#journalBytes !== undefined;
  }

  /** Puts on disk what has changed since the snapshot. Afterwards the feed may forget what came before. */
  async flush(): Promise<void> {
    const state = this.#state;
    if (this.#snapshotPath === undefined || !this.#isUnsaved || state?.isWhole !== true) return;
    this.#isUnsaved = false;
    const flushed = await this.#engine.call("flush", { key: this.key }).catch(() => null);
    this.#journalBytes = flushed?.bytes;
    if (flushed === null) this.#isUnsaved = true;
    else await this.#records.feed.acknowledge(this.ref, flushed.position, state.incarnation);
  }

  /** Writes the branch to its file, while it is searched and changes. Afterwards the feed may forget what came before. */
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

  /** Reads the branch whole, and again as long as its schema changes meanwhile. */
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

  /** Applies what has changed. false: the branch has to be read whole. */
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
      // What a complete read delivers is all that its snapshot sees, and that was taken after the round began.
      return true;
    }
  }

  /** @returns the position that searches are at. */
  async #apply(state: FollowedState, read: ReadChanges, epoch: number): Promise<FeedPosition> {
    const { batches, isStaged } = read;
    const hasChanged = isStaged || batches.length > 0;
    // The position that the engine keeps is the one to continue from: nothing is acknowledged beyond it.
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
   * Goes over to the schema of at least `version`: reads what is new, then the changes since the position that
   * searches see, and applies both at once. Reading the changes last makes the result right whatever was
   * written while the new columns were read. false: the branch has to be read whole.
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

  /** Lets the feed forget, now and then; where there are snapshots, only what the last one has (`saveSnapshot`). */
  async #acknowledge(position: FeedPosition, incarnation: string): Promise<void> {
    if (this.#snapshotPath !== undefined && this.#isLarge) return;
    if (performance.now() - this.#acknowledgedAt < ACKNOWLEDGE_EVERY_MS) return;
    this.#acknowledgedAt = performance.now();
    await this.#records.feed.acknowledge(this.ref, position, incarnation);
  }

  /** The branch as the catalog knows it, once it knows more than `before`. The catalog hears of changes by other servers a moment later. */
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
