/**
 * Writes a branch of the search store to a file and reads it back, while searches and changes continue.
 *
 * The snapshot is fuzzy: rows are written a piece at a time, each in its current state. Some rows may be
 * newer than the position in the header; none is older. After reading it, apply the changes since that
 * position before searching it. They bring every record that changed or was deleted during the write to its
 * current state, and then all rows are at one position again.
 *
 * A draft is a snapshot that is written while its branch is read from the records. When the reading ends
 * little is left to do, so a stop soon afterwards leaves a complete snapshot on disk. It holds the batches in
 * the order in which they were read, and the position at which the reading began. Its journal begins where
 * the reading ended.
 */

import { randomUUID } from "node:crypto";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { FeedBatch, FeedPosition } from "../../records/feed/feed-types.ts";
import { BranchState } from "../branch-state.ts";
import type { FollowedSchema } from "../followed-schema.ts";
import type { BranchKey } from "../search-messages.ts";
import { BranchJournal, draftPath, type JournalEnd, journalPath, readJournal, removeOtherFiles } from "./branch-journal.ts";
import { readSnapshot, SnapshotWriter } from "./snapshot-file.ts";

export interface SnapshotHeader {
  readonly key: BranchKey;
  readonly incarnation: string;
  readonly version: number;
  readonly schema: FollowedSchema;
  readonly position: FeedPosition;
  /** Id of the journal with the changes since the snapshot; older files have none. */
  readonly journal?: string;
}

/** Bytes written before searches get a turn. */
const PIECE_BYTES = 1 << 20;

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
  const writer = await SnapshotWriter.create(path, draftPath(path, journal));
  try {
    await writer.write({ key, incarnation, version, schema, position, journal } satisfies SnapshotHeader);
    const isUsable = (): boolean => isCurrent() && state.version === version;
    for (const name of schema.keys()) {
      if (!isUsable()) break;
      for await (const batch of state.read(name, PIECE_BYTES)) {
        if (!isUsable()) break;
        await writer.write(batch, vectorBytesOf(batch));
      }
    }
    if (!isUsable()) {
      await writer.abandon();
      return null;
    }
    return await writer.finish();
  } catch (error) {
    await writer.abandon();
    throw error;
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
 * Reads one message at a time, so that besides the branch itself no more than a piece is held.
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
  shardedFromBytes: number | undefined,
  onGrowth: (state: BranchState, leastBytes: number) => void = () => {},
): Promise<RestoredBranch | null> {
  let leastBytes = 0;
  const messages = readSnapshot(path, (vectorBytes) => {
    leastBytes = vectorBytes;
  });
  let state: BranchState | undefined;
  try {
    const first = await messages.next();
    if (first.done) throw new LodestoneError("CORRUPT", `The search snapshot ${path} is empty.`);
    const header = first.value as SnapshotHeader;
    if (header.key !== key || header.incarnation !== incarnation) return null;
    state = await BranchState.create(incarnation, header.version, header.schema, shardedFromBytes);
    const restored = state;
    onGrowth(restored, leastBytes);
    const apply = async (batch: FeedBatch): Promise<void> => {
      restored.apply([batch]);
      await restored.settled();
      onGrowth(restored, leastBytes);
    };
    for await (const batch of messages) await apply(batch as FeedBatch);
    const journal = header.journal === undefined ? undefined : await readJournal(journalPath(path, header.journal), header.position, apply);
    return { state, position: journal?.position ?? header.position, journal };
  } catch (error) {
    state?.free();
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    if (error instanceof LodestoneError) throw error;
    throw new LodestoneError("CORRUPT", `The search snapshot ${path} cannot be used: ${(error as Error).message}`, { cause: error });
  } finally {
    await messages.return();
  }
}

/** If more batches than this (some MiB) are not written yet, the next batch waits. */
const MAX_BACKLOG_BATCHES = 8;

export class SnapshotDraft {
  readonly path: string;
  readonly #key: BranchKey;
  readonly #state: BranchState;
  /** Where the reading began. */
  readonly #position: FeedPosition;
  readonly #id = randomUUID().slice(0, 8);
  #writer: SnapshotWriter | undefined;
  #writing: Promise<void> = Promise.resolve();
  #backlog = 0;
  #fault: unknown;

  /** Nothing is written before the first batch. */
  constructor(path: string, key: BranchKey, state: BranchState, position: FeedPosition) {
    this.path = path;
    this.#key = key;
    this.#state = state;
    this.#position = position;
  }

  /** Resolves when there is room for more; it does not wait for the write. */
  async add(batch: FeedBatch): Promise<void> {
    this.#backlog++;
    this.#write(async () => {
      const writer = this.#writer ?? (await this.#open());
      await writer.write(batch, vectorBytesOf(batch));
    });
    this.#writing = this.#writing.then(() => {
      this.#backlog--;
    });
    if (this.#backlog > MAX_BACKLOG_BATCHES) await this.#writing;
  }

  /** Creates the journal for what is applied after `position`, where the reading ended. */
  async createJournal(position: FeedPosition): Promise<BranchJournal> {
    const journal = await BranchJournal.create(journalPath(this.path, this.#id), this.#position);
    await journal.append([], position);
    return journal;
  }

  /** Makes it the branch's snapshot. @returns its position and size; null if it could not be written. */
  async finish(journal: BranchJournal): Promise<{ readonly position: FeedPosition; readonly bytes: number } | null> {
    let bytes: number | undefined;
    this.#write(async () => {
      bytes = await this.#writer?.finish();
      this.#writer = undefined;
    });
    await this.#writing;
    if (bytes === undefined) {
      await this.abandon();
      return null;
    }
    await removeOtherFiles(this.path, journal);
    return { position: this.#position, bytes };
  }

  /** Never rejects. */
  async abandon(): Promise<void> {
    this.#fault ??= new Error("The draft was abandoned.");
    await this.#writing;
    // A file that cannot be removed is removed with the next snapshot.
    await this.#writer?.abandon().catch(() => {});
    this.#writer = undefined;
  }

  async #open(): Promise<SnapshotWriter> {
    const { incarnation, version, schema } = this.#state;
    this.#writer = await SnapshotWriter.create(this.path, draftPath(this.path, this.#id));
    const header: SnapshotHeader = { key: this.#key, incarnation, version, schema, position: this.#position, journal: this.#id };
    await this.#writer.write(header);
    return this.#writer;
  }

  #write(step: () => Promise<void>): void {
    this.#writing = this.#writing.then(async () => {
      if (this.#fault !== undefined) return;
      // On a failure, such as a full disk, there is no draft, and the snapshot is written later.
      await step().catch((error: unknown) => {
        this.#fault = error;
      });
    });
  }
}
