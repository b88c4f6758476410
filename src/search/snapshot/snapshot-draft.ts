/**
 * A snapshot that is written while its branch is read from the records. When the reading ends little is left
 * to do, so a stop soon afterwards leaves a complete snapshot on disk.
 *
 * It holds the batches in the order in which they were read, and the position at which the reading began. As
 * with any snapshot, the changes since then have to be applied after reading it back. Its journal begins
 * where the reading ended.
 */
import { randomUUID } from "node:crypto";
import type { FeedBatch, FeedPosition } from "../../records/feed/feed-types.ts";
import type { BranchState } from "../branch-state.ts";
import type { BranchKey } from "../search-messages.ts";
import { BranchJournal, draftPath, journalPath, removeOtherFiles } from "./branch-journal.ts";
import { type SnapshotHeader, vectorBytesOf } from "./branch-snapshot.ts";
import { SnapshotWriter } from "./snapshot-file.ts";

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
