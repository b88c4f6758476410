/** The files of one branch that the worker holds: the journals that get its changes. */
import { randomUUID } from "node:crypto";
import type { FeedBatch, FeedPosition } from "../../records/feed/feed-types.ts";
import type { BranchState } from "../branch-state.ts";
import type { BranchKey } from "../search-messages.ts";
import type { VectorFolders } from "../vector-folders.ts";
import { BranchJournal, type JournalEnd, journalPath, removeOtherFiles } from "./branch-journal.ts";
import { writeBranchSnapshot } from "./branch-snapshot.ts";

/** What the disk has afterwards. */
interface Saved {
  readonly position: FeedPosition;
  readonly bytes: number;
}

export class BranchFiles {
  /** One behind the snapshot, and one behind the snapshot being written. */
  readonly #journals = new Set<BranchJournal>();
  #hasEnded: boolean;

  /** @param isOurs  false: the files of snapshots are another server's, and nothing is written. */
  constructor(isOurs: boolean) {
    this.#hasEnded = !isOurs;
  }

  /**
   * Changes applied from now on do not continue the files. What is on disk stays: a snapshot with its journal leads
   * to the position at which the journal ends, and the feed keeps all changes since.
   *
   * @param isDropped  the branch is gone, and so are its journals.
   * @returns when the journals are closed. Never rejects.
   */
  async end(isDropped = false): Promise<void> {
    this.#hasEnded = true;
    const journals = [...this.#journals];
    this.#journals.clear();
    await Promise.allSettled(journals.map((journal) => (isDropped ? journal.remove() : journal.close())));
  }

  /** Continues the journal of the snapshot that the branch was restored from, and deletes what a kill has left of earlier ones. */
  async resume(path: string, end: JournalEnd): Promise<void> {
    const journal = await BranchJournal.resume(end);
    // The branch's state may have been replaced meanwhile.
    if (this.#hasEnded) return journal.close();
    this.#journals.add(journal);
    // Tried again after the next snapshot.
    await removeOtherFiles(path, journal).catch(() => {});
  }

  async append(batches: readonly FeedBatch[], position: FeedPosition): Promise<void> {
    for (const journal of this.#journals) await journal.append(batches, position);
  }

  /** Writes the branch's snapshot. null: abandoned, because the files have ended meanwhile. */
  async save(path: string, key: BranchKey, state: BranchState, position: FeedPosition, folders: VectorFolders): Promise<Saved | null> {
    if (this.#hasEnded) return null;
    const id = randomUUID().slice(0, 8);
    const journal = await BranchJournal.create(journalPath(path, id), position);
    if (this.#hasEnded) {
      await journal.remove();
      return null;
    }
    const before = [...this.#journals];
    this.#journals.add(journal);
    const isCurrent = (): boolean => !this.#hasEnded;
    const bytes = await writeBranchSnapshot(path, key, state, position, id, isCurrent).catch(async (error: unknown) => {
      await this.#remove(journal);
      throw error;
    });
    if (bytes === null) await this.#remove(journal);
    if (bytes === null || !isCurrent()) return null;
    for (const old of before) await this.#remove(old);
    await removeOtherFiles(path, journal);
    await folders.removeOthers(path, []);
    return { position, bytes };
  }

  /** Writes to disk what was appended. null: there is no snapshot that it would continue. */
  async flush(): Promise<Saved | null> {
    const [journal] = this.#journals;
    if (journal === undefined) return null;
    try {
      return await journal.sync();
    } catch (error) {
      // A full disk, say. What was written before is good; the next snapshot will have a new journal.
      this.#journals.delete(journal);
      await journal.close();
      throw error;
    }
  }

  async #remove(journal: BranchJournal): Promise<void> {
    this.#journals.delete(journal);
    await journal.remove();
  }
}
