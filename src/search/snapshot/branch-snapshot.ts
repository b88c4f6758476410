/**
 * Writes a branch of the search store to a file and reads it back, while searches and changes continue.
 *
 * The snapshot is fuzzy: rows are written a piece at a time, each in its current state. Some rows may be
 * newer than the position in the header; none is older. After reading it, apply the changes since that
 * position before searching it. They bring every record that changed or was deleted during the write to its
 * current state, and then all rows are at one position again.
 *
 * Of vectors in files (vector-folders.ts) it holds the images of their indexes, and of the other records of these tables
 * also the numbers of their rows. The files are part of it: nothing that an image refers to is changed until the next
 * snapshot is complete. If one of them is not what it was, the snapshot is CORRUPT, now or when the row is read.
 */

import { basename } from "node:path";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { crashPoint } from "../../files/fault-points.ts";
import type { FeedBatch, FeedPosition } from "../../records/feed/feed-types.ts";
import { BranchState, type ColumnFiles } from "../branch-state.ts";
import type { ColumnPlacement } from "../column-index.ts";
import type { FollowedSchema } from "../followed-schema.ts";
import type { BranchKey } from "../search-messages.ts";
import type { SavedBatch } from "../table-index.ts";
import type { VectorFolders } from "../vector-folders.ts";
import { draftPath, type JournalEnd, journalPath, readJournal } from "./branch-journal.ts";
import { inTurns, overlapped, Window } from "./overlapped.ts";
import { readSnapshot, SnapshotWriter } from "./snapshot-file.ts";

export interface SnapshotHeader {
  readonly key: BranchKey;
  readonly incarnation: string;
  readonly version: number;
  readonly schema: FollowedSchema;
  readonly position: FeedPosition;
  /** Id of the journal with the changes since the snapshot; older files have none. */
  readonly journal?: string;
  /** Columns whose vectors are in files, with the names of their folders; older files have none. */
  readonly files?: readonly ColumnFiles[];
}

/** A piece of the image of a column; undefined after the last. Read, it is a view of the message's buffer, which goes to the shard whole. */
interface ImageMessage {
  readonly column: number;
  readonly piece: Uint8Array | undefined;
}

/** Bytes written before searches get a turn. */
const PIECE_BYTES = 1 << 20;
/** Pieces of images that shards take in while others are read. */
const LOADS_AT_ONCE = 4;

/**
 * @param position   a position that the state has reached.
 * @param journal    id of the journal that receives what is applied from now on.
 * @param isCurrent  false when the state is no longer that of the branch; the file is then abandoned.
 * @returns the file's size in bytes, or null if it was abandoned (also when the schema changed meanwhile).
 */
export async function writeBranchSnapshot(
  path: string,
  key: BranchKey,
  state: BranchState,
  position: FeedPosition,
  journal: string,
  isCurrent: () => boolean,
): Promise<number | null> {
  const { incarnation, version, schema } = state;
  const files = state.files.map((file) => ({ ...file, folder: basename(file.folder) }));
  const writer = await SnapshotWriter.create(path, draftPath(path, journal));
  let isKept = false;
  try {
    await writer.write({ key, incarnation, version, schema, position, journal, files } satisfies SnapshotHeader);
    const isUsable = (): boolean => isCurrent() && state.version === version;
    // In turns: when they are read, the rows are this thread's work and the images that of the shards.
    for await (const message of inTurns<SavedBatch | ImageMessage>(rowsOf(state), state.images())) {
      if (!isUsable()) break;
      await writer.write(message, "piece" in message ? message.piece?.length : vectorBytesOf(message));
    }
    // A column that has got files meanwhile has no rows in this snapshot.
    const isSame = files.length === state.files.length && files.every(({ folder }, i) => folder === basename(state.files[i]!.folder));
    if (!isUsable() || !isSame) {
      await writer.abandon();
      return null;
    }
    crashPoint("vectors-flushed");
    const bytes = await writer.finish();
    crashPoint("snapshot-placed");
    isKept = true;
    return bytes;
  } catch (error) {
    await writer.abandon();
    throw error;
  } finally {
    await state.endImages(isKept);
  }
}

async function* rowsOf(state: BranchState): AsyncGenerator<SavedBatch, void, void> {
  for (const name of [...state.schema.keys()]) {
    // The schema may have changed.
    if (!state.schema.has(name)) return;
    yield* state.read(name, PIECE_BYTES, true);
  }
}

function vectorBytesOf({ columns }: FeedBatch): number {
  let bytes = 0;
  for (const column of columns.values()) if (column.kind === "vector") bytes += column.elements.byteLength;
  return bytes;
}

export interface RestoredBranch {
  readonly state: BranchState;
  readonly position: FeedPosition;
  /** Where the snapshot's journal continues; undefined when it has none (any more). */
  readonly journal: JournalEnd | undefined;
}

/**
 * Reads on while messages are taken in, so that besides the branch itself no more than LOADS_AT_ONCE + 3 pieces are held.
 *
 * @param onGrowth  called with the empty branch before its rows are read, and after each batch, with the bytes
 *   that the branch takes at least in the end. What it throws ends the reading, and is thrown.
 * @returns null when there is no file, or it is of another branch or incarnation.
 * @throws {LodestoneError} CORRUPT when it cannot be trusted.
 */
export async function readBranchSnapshot(
  path: string,
  key: BranchKey,
  incarnation: string,
  placement: ColumnPlacement,
  folders: VectorFolders,
  onGrowth: (state: BranchState, leastBytes: number) => void = () => {},
): Promise<RestoredBranch | null> {
  let leastBytes = 0;
  const messages = readSnapshot(path, (vectorBytes) => {
    leastBytes = vectorBytes;
  });
  let state: BranchState | undefined;
  const opened: ColumnFiles[] = [];
  const loads = new Window(LOADS_AT_ONCE);
  try {
    const first = await messages.next();
    if (first.done) throw new LodestoneError("CORRUPT", `The search snapshot ${path} is empty.`);
    const header = first.value as SnapshotHeader;
    if (header.key !== key || header.incarnation !== incarnation) return null;
    const { version, schema, files = [] } = header;
    await folders.removeOthers(
      path,
      files.map(({ folder }) => folder),
    );
    for (const file of files) opened.push({ ...file, folder: folders.reopen(path, file.folder) });
    state = await BranchState.create(incarnation, version, schema, placement, opened);
    const restored = state;
    onGrowth(restored, leastBytes);
    const apply = async (batches: readonly FeedBatch[]): Promise<void> => {
      restored.apply(batches);
      await restored.settled();
      onGrowth(restored, leastBytes);
    };
    const take = async (message: SavedBatch | ImageMessage): Promise<void> => {
      if ("piece" in message) await loads.begin(restored.loadImage(message.column, message.piece as Uint8Array<ArrayBuffer> | undefined));
      else restored.applySaved(message);
      await restored.settled();
      onGrowth(restored, leastBytes);
    };
    await overlapped(messages as AsyncIterable<SavedBatch | ImageMessage>, take);
    await loads.end();
    await restored.adoptRows();
    const journal = header.journal === undefined ? undefined : await readJournal(journalPath(path, header.journal), header.position, apply);
    return { state, position: journal?.position ?? header.position, journal };
  } catch (error) {
    await loads.end().catch(() => {}); // a consequence
    if (state === undefined) for (const { folder } of opened) folders.close(folder);
    else void state.free();
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    if (error instanceof LodestoneError) throw error;
    throw new LodestoneError("CORRUPT", `The search snapshot ${path} cannot be used: ${(error as Error).message}`, { cause: error });
  } finally {
    await messages.return();
  }
}
