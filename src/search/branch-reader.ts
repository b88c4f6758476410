/**
 * Reads whole tables of a branch from the records into the engine: the branch in full, or what a change of its
 * schema has brought.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { ChangeFeed, FeedBatch, FeedPosition } from "../records/feed/feed-types.ts";
import type { Part } from "../records/feed/part.ts";
import type { BranchInfo, BranchRef } from "../records/schema.ts";
import { branchKey, type FollowedRecords, type FollowedState } from "./followed-branch.ts";
import { differsInParts, followedSchema, missingData, partsOf } from "./followed-schema.ts";
import { buffersOf } from "./read-changes.ts";
import type { SearchEngine } from "./search-engine.ts";
import type { BranchKey, BranchStats } from "./search-messages.ts";

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
  readonly #part: Part | undefined;
  #loaded: { readonly table: string; readonly records: number } | undefined;

  constructor(ref: BranchRef, records: FollowedRecords, engine: SearchEngine, part: Part | undefined) {
    this.#ref = ref;
    this.#key = branchKey(ref);
    this.#records = records;
    this.#engine = engine;
    this.#part = part;
  }

  /** How far `build` is, in words; undefined: it does not read. */
  get progress(): string | undefined {
    return this.#loaded && `table ${this.#loaded.table}, ${this.#loaded.records} records so far`;
  }

  /**
   * Reads the branch in full. Starts over if its schema changes meanwhile.
   *
   * @param draftPath  where the snapshot is written meanwhile; undefined: none.
   */
  async build(first: BranchInfo, draftPath: string | undefined): Promise<ReachedState> {
    let info = first;
    for (let attempt = 0; attempt < MAX_SCHEMA_ATTEMPTS; attempt++) {
      const schema = followedSchema(info, this.#part);
      const build = nextBuild++;
      const { incarnation, version } = info;
      const begin = async (position: FeedPosition): Promise<void> => {
        const draft = draftPath === undefined ? {} : { draft: { path: draftPath, position } };
        await this.#engine.call("begin", { build, key: this.#key, incarnation, version, tables: schema, ...draft });
      };
      try {
        const tables = [...schema.values()].map(({ name, part }) => ({ table: name, ...(part && { part }) }));
        const load = async (batch: FeedBatch): Promise<void> => {
          const { table, ids } = batch;
          await this.#engine.call("load", { build, batch }, buffersOf([batch]));
          this.#loaded = { table, records: ids.length + (this.#loaded?.table === table ? this.#loaded.records : 0) };
        };
        const read = await this.#readAll(tables, load, begin);
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
      const schema = followedSchema(info, this.#part);
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
    ...[tables, onBatch, onStart]: Tail<Parameters<ChangeFeed["readAll"]>>
  ): Promise<Awaited<ReturnType<ChangeFeed["readAll"]>> | null> {
    try {
      return await this.#records.feed.readAll(this.#ref, tables, onBatch, onStart);
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
