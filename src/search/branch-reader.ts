/**
 * Reads a branch from the records into the engine: in full (`build`), what a change of its schema has brought
 * (`alter`), or the changes since the position that searches see (`readChanges`).
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { ChangeFeed, FeedBatch, FeedPosition, SharedSnapshot } from "../records/feed/feed-types.ts";
import type { BranchInfo, BranchRef } from "../records/schema.ts";
import {
  differsInParts,
  type FollowedRecords,
  type FollowedScope,
  type FollowedState,
  followedSchema,
  missingData,
  partsOf,
} from "./followed-schema.ts";
import type { SearchEngine } from "./search-engine.ts";
import { type BranchKey, type BranchStats, branchKey } from "./search-messages.ts";

/** If the schema changes during a read, the read is repeated, at most this often. */
const MAX_SCHEMA_ATTEMPTS = 20;

let nextBuild = 1;

type Tail<List extends unknown[]> = List extends [unknown, ...infer Rest] ? Rest : never;

/** The state that the engine has reached. */
export interface ReachedState {
  readonly state: FollowedState;
  readonly stats: BranchStats;
}

export class BranchReader {
  readonly #ref: BranchRef;
  readonly #key: BranchKey;
  readonly #records: FollowedRecords;
  readonly #engine: SearchEngine;
  readonly #scope: () => FollowedScope;
  #loaded: { readonly table: string; readonly records: number } | undefined;

  constructor(ref: BranchRef, records: FollowedRecords, engine: SearchEngine, scope: () => FollowedScope) {
    this.#ref = ref;
    this.#key = branchKey(ref);
    this.#records = records;
    this.#engine = engine;
    this.#scope = scope;
  }

  /** How far `build` is, in words; undefined: it does not read. */
  get progress(): string | undefined {
    return this.#loaded && `table ${this.#loaded.table}, ${this.#loaded.records} records so far`;
  }

  /**
   * Reads the branch in full. Starts over if its schema changes meanwhile.
   *
   * @param path  of its snapshot; undefined: there is none.
   */
  async build(first: BranchInfo, path: string | undefined): Promise<ReachedState> {
    let info = first;
    for (let attempt = 0; attempt < MAX_SCHEMA_ATTEMPTS; attempt++) {
      const schema = followedSchema(info, this.#scope());
      const build = nextBuild++;
      const { incarnation, version } = info;
      try {
        await this.#engine.call("begin", { build, key: this.#key, incarnation, version, tables: schema, path });
        const tables = [...schema.values()].map(({ name, part }) => ({ table: name, ...(part && { part }) }));
        const load = async (batch: FeedBatch): Promise<void> => {
          const { table, ids } = batch;
          await this.#engine.call("load", { build, batch }, buffersOf([batch]));
          this.#loaded = { table, records: ids.length + (this.#loaded?.table === table ? this.#loaded.records : 0) };
        };
        const read = await this.#readAll(tables, load);
        if (read !== null && read.schemaVersion === version && read.incarnation === incarnation) {
          const stats = await this.#engine.call("install", { build, key: this.#key, position: read.position });
          return { state: { incarnation, version, position: read.position, schema, isWhole: true }, stats };
        }
      } catch (error) {
        await this.#engine.call("abandon", { build }).catch(() => {}); // an engine that is gone has no build
        throw error;
      } finally {
        this.#loaded = undefined;
      }
      await this.#engine.call("abandon", { build });
      info = await this.#records.currentBranch(this.#ref);
    }
    throw changing(this.#key);
  }

  /**
   * Moves to the present schema. Reads what is new, then the changes since the position that
   * searches see, and applies both at once. The changes are read last, so the result is right whatever was
   * written while the new columns were read. undefined: the branch has to be read in full.
   */
  async alter(from: FollowedState): Promise<ReachedState | undefined> {
    const { feed } = this.#records;
    const { incarnation } = from;
    let info = await this.#records.currentBranch(this.#ref);
    for (let attempt = 0; attempt < MAX_SCHEMA_ATTEMPTS; attempt++) {
      if (info.incarnation !== incarnation) return undefined;
      const schema = followedSchema(info, this.#scope());
      if (differsInParts(from.schema, schema)) return undefined;
      const missing = missingData(from.schema, schema);
      try {
        let isStable = true;
        if (missing.length > 0) {
          const read = await this.#readAll(missing, async (batch) => {
            await this.#engine.call("stage", { key: this.#key, batch, schema }, buffersOf([batch]));
          });
          if (read !== null && read.incarnation !== incarnation) return undefined;
          isStable = read?.schemaVersion === info.version;
        }
        const batches: FeedBatch[] = [];
        let { position } = from;
        for (let complete = false; isStable && !complete; ) {
          const changes = await feed.readSince(this.#ref, position, incarnation, { parts: partsOf(schema) });
          if (changes === null) return undefined;
          isStable = changes.schemaVersion === info.version;
          batches.push(...changes.batches);
          position = changes.position;
          complete = changes.complete;
        }
        if (isStable) {
          const commit = { key: this.#key, schema: { version: info.version, tables: schema }, batches, position };
          const stats = await this.#engine.call("commit", commit, buffersOf(batches));
          return { state: { incarnation, version: info.version, position, schema, isWhole: true }, stats };
        }
      } finally {
        await this.#engine.call("unstage", { key: this.#key });
      }
      info = await this.#records.currentBranch(this.#ref);
    }
    throw changing(this.#key);
  }

  /** null: the schema changed while the tables were read. */
  async #readAll(
    ...[tables, onBatch]: Tail<Parameters<ChangeFeed["readAll"]>>
  ): Promise<Awaited<ReturnType<ChangeFeed["readAll"]>> | null> {
    try {
      return await this.#records.feed.readAll(this.#ref, tables, onBatch);
    } catch (error) {
      if (error instanceof LodestoneError && error.code === "CONFLICT") return null;
      throw error;
    }
  }
}

function changing(key: BranchKey): LodestoneError {
  return new LodestoneError("UNAVAILABLE", `The schema of branch ${key} keeps changing; the search store tries again.`, {
    retryAfterSeconds: 1,
  });
}

export interface ReadChanges {
  /** Batches that are not staged in the engine. */
  readonly batches: readonly FeedBatch[];
  readonly position: FeedPosition;
  readonly version: number;
  readonly isStaged: boolean;
}

/** Beyond this many, batches go to the engine one by one. */
const MAX_COMMIT_BATCHES = 8;

interface FollowedFrom {
  readonly ref: BranchRef;
  readonly key: BranchKey;
  /** The state that searches see. */
  readonly state: FollowedState;
}

/**
 * Reads all changes since the state's position. Batches of every read but the last go to the engine at once
 * and wait there for the commit (only the last are returned), because copying all of them together would block
 * this thread. With a `snapshot` at or after the position, reads exactly the changes that it sees. null: the
 * position is too old. If the schema has another version, only that version is returned.
 */
export async function readChanges(
  feed: ChangeFeed,
  engine: SearchEngine,
  { ref, key, state }: FollowedFrom,
  snapshot?: SharedSnapshot,
): Promise<ReadChanges | null> {
  const options = { parts: partsOf(state.schema), ...(snapshot && { snapshot }) };
  let { position, version } = state;
  let isStaged = false;
  const unstage = async (): Promise<void> => {
    if (isStaged) await engine.call("unstage", { key });
    isStaged = false;
  };
  try {
    for (;;) {
      const changes = await feed.readSince(ref, position, state.incarnation, options);
      if (changes === null) {
        await unstage();
        return null;
      }
      // Names are those of the schema at the time of the read, so batches that use older names are read
      // again.
      if (changes.schemaVersion !== version) {
        await unstage();
        version = changes.schemaVersion;
        if (position !== state.position) {
          position = state.position;
          continue;
        }
      }
      if (version !== state.version) return { batches: [], position, version, isStaged };
      position = changes.position;
      const { complete, batches } = changes;
      const isFew = batches.length <= MAX_COMMIT_BATCHES;
      if (complete && isFew) return { batches, position, version, isStaged };
      for (const batch of batches) {
        isStaged = true;
        await engine.call("stage", { key, batch }, buffersOf([batch]));
      }
      if (complete) return { batches: [], position, version, isStaged };
    }
  } catch (error) {
    await unstage().catch(() => {}); // an engine that is gone has nothing staged
    throw error;
  }
}

/** The buffers of the vectors, to be transferred to the engine instead of copied. */
export function buffersOf(batches: readonly FeedBatch[]): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const batch of batches) {
    for (const column of batch.columns.values()) {
      if (column.kind !== "vector") continue;
      const { buffer, byteLength } = column.elements;
      // A view into a larger buffer may share it with others.
      if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffers.add(buffer);
    }
  }
  return [...buffers];
}
