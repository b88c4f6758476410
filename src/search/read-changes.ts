/**
 * Reads the changes of a branch since the position that searches see. Only the last batches are returned;
 * earlier ones are staged in the engine.
 */
import type { ChangeFeed, FeedBatch, FeedPosition, SharedSnapshot } from "../records/feed/feed-types.ts";
import type { BranchRef } from "../records/schema.ts";
import { type FollowedSchema, partsOf } from "./followed-schema.ts";
import type { SearchEngine } from "./search-engine.ts";
import type { BranchKey } from "./search-messages.ts";

export interface ReadChanges {
  /** Batches that are not staged in the engine. */
  readonly batches: readonly FeedBatch[];
  readonly position: FeedPosition;
  readonly version: number;
  readonly isStaged: boolean;
}

/** Beyond this many, batches go to the engine one by one. */
const MAX_COMMIT_BATCHES = 8;

interface FollowedState {
  readonly ref: BranchRef;
  readonly key: BranchKey;
  /** The state that searches see. */
  readonly state: {
    readonly incarnation: string;
    readonly version: number;
    readonly position: FeedPosition;
    readonly schema: FollowedSchema;
  };
}

/**
 * Reads all changes since the state's position. Batches of every read but the last go to the engine at once
 * and wait there for the commit, because copying all of them together would block this thread. With a
 * `snapshot` at or after the position, reads exactly the changes that it sees. null: the position is too old.
 * If the schema has another version, only that version is returned.
 */
export async function readChanges(
  feed: ChangeFeed,
  engine: SearchEngine,
  { ref, key, state }: FollowedState,
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
