/** Reads what has changed in a branch since the position that searches see, and has the engine hold what is not the last of it. */
import type { ChangeFeed, FeedBatch, FeedPosition, SharedSnapshot } from "../records/feed/feed-types.ts";
import type { BranchRef } from "../records/schema.ts";
import { type FollowedSchema, partsOf } from "./followed-schema.ts";
import type { SearchEngine } from "./search-engine.ts";
import type { BranchKey } from "./search-messages.ts";

export interface ReadChanges {
  /** What is not staged in the engine. */
  readonly batches: readonly FeedBatch[];
  readonly position: FeedPosition;
  readonly version: number;
  readonly isStaged: boolean;
}

/** More of them go to the engine one by one. */
const MAX_COMMIT_BATCHES = 8;

interface FollowedState {
  readonly ref: BranchRef;
  readonly key: BranchKey;
  /** What searches see. */
  readonly state: {
    readonly incarnation: string;
    readonly version: number;
    readonly position: FeedPosition;
    readonly schema: FollowedSchema;
  };
}

/**
 * All changes since the state's position. Those of a read that is not the last go to the engine at once, to
 * wait there for the commit: copied all together they would hold up this thread. With a `snapshot` that the
 * position does not go beyond: exactly what that sees. null: the position is too old. Of another version of the
 * schema only that is told.
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
      // Names are those of the schema at the time of the read: what was read by older names is read again.
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

/** Vector elements are moved to the engine, not copied. */
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
