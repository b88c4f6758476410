/**
 * The directory of snapshots: decides when they are written and where, and deletes those that belong to no
 * branch any more.
 *
 * Only one server writes there. Servers that share a database have no other lock, and are easily started with
 * the same `--data-dir`. Two that write would not harm each other's answers, because every file is checksummed
 * and belongs to one incarnation and part; but neither would find a usable snapshot.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { FaultListeners } from "../../errors/fault-state.ts";
import { DirectoryHeldError, DirectoryLock } from "../../files/directory-lock.ts";
import { BranchFaults } from "../branch-faults.ts";
import type { BranchFollower } from "../branch-follower.ts";
import type { BranchKey } from "../search-messages.ts";

export interface SnapshotScheduleOptions extends FaultListeners {
  readonly everyMs: number;
  /**
   * A close waits this long for the last snapshots. A branch whose snapshot is unfinished by then keeps its
   * previous one, and the next start reads more from the records.
   */
  readonly closeMs: number;
}

/** The share of time that writing a snapshot may take; slow ones are written less often. */
const MAX_SHARE_OF_TIME = 0.05;
/** The same while so much is written that the next start would be slow. */
const URGENT_SHARE_OF_TIME = 0.25;
const CHECKS_PER_INTERVAL = 10;

const OURS = /^([0-9a-f]{32})\.(snapshot(\.tmp)?|[0-9a-f]{8}\.(journal|draft|vectors))$/;
/** Changes are on disk after at most this long. */
const FLUSH_EVERY_MS = 5_000;

export class SnapshotSchedule {
  readonly #directory: string;
  readonly #followers: () => Iterable<BranchFollower>;
  readonly #everyMs: number;
  readonly #closeMs: number;
  readonly #snapshots: BranchFaults;
  readonly #journals: BranchFaults;
  /** When the branch's last one was written, and how long that took. */
  readonly #written = new Map<BranchKey, { readonly endedAt: number; readonly elapsedMs: number }>();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(directory: string, followers: () => Iterable<BranchFollower>, options: SnapshotScheduleOptions) {
    this.#directory = directory;
    this.#followers = followers;
    this.#everyMs = options.everyMs;
    this.#closeMs = options.closeMs;
    this.#snapshots = new BranchFaults("Writing search snapshots", options);
    this.#journals = new BranchFaults("Writing the changes since a search snapshot", options);
    this.#plan();
  }

  pathOf(key: BranchKey): string {
    return join(this.#directory, snapshotFileName(key));
  }

  /** Deletes the files of branches that are not followed (any more). */
  async removeOrphans(): Promise<void> {
    const known = new Set([...this.#followers()].map((follower) => snapshotFileName(follower.key)));
    const files = await readdir(this.#directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    for (const file of files) {
      const branch = OURS.exec(file)?.[1];
      if (branch !== undefined && !known.has(`${branch}.snapshot`)) await rm(join(this.#directory, file), { force: true, recursive: true });
    }
  }

  /** Writes nothing any more. */
  leave(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Writes what is not saved, within `closeMs` at most. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#closeMs);
    });
    const all = this.#running.then(async () => {
      // First the quick writes, then the branches without a snapshot to continue.
      for (const follower of this.#followers()) await this.#flush(follower);
      for (const follower of this.#followers()) if (!follower.hasJournal) await this.#save(follower);
    });
    await Promise.race([all, late]);
    clearTimeout(timer);
    for (const faults of [this.#snapshots, this.#journals]) faults.close();
  }

  #plan(): void {
    this.#timer = setTimeout(
      () => {
        this.#running = this.#saveDue().finally(() => {
          if (!this.#isClosed) this.#plan();
        });
      },
      Math.min(this.#everyMs / CHECKS_PER_INTERVAL, FLUSH_EVERY_MS),
    );
    this.#timer.unref();
  }

  async #saveDue(): Promise<void> {
    for (const follower of this.#followers()) {
      if (this.#isClosed) return;
      await this.#flush(follower);
      if (this.#isDue(follower)) await this.#save(follower);
    }
  }

  #isDue({ key, isJournalLong }: BranchFollower): boolean {
    const last = this.#written.get(key);
    if (last === undefined) return true;
    const pauseMs = isJournalLong ? last.elapsedMs / URGENT_SHARE_OF_TIME : Math.max(this.#everyMs, last.elapsedMs / MAX_SHARE_OF_TIME);
    return performance.now() >= last.endedAt + pauseMs;
  }

  async #flush(follower: BranchFollower): Promise<void> {
    try {
      await follower.flush();
      if (follower.hasJournal) this.#journals.works(follower.key);
    } catch (error) {
      this.#journals.failed(follower.key, error);
    }
  }

  async #save(follower: BranchFollower): Promise<void> {
    if (!follower.needsSnapshot) return;
    const startedAt = performance.now();
    try {
      await follower.saveSnapshot();
      for (const faults of [this.#snapshots, this.#journals]) faults.works(follower.key);
    } catch (error) {
      this.#snapshots.failed(follower.key, error);
    }
    const endedAt = performance.now();
    this.#written.set(follower.key, { endedAt, elapsedMs: endedAt - startedAt });
  }
}

/** Hashed, because branch names contain characters that are special to file systems. */
export function snapshotFileName(key: BranchKey): string {
  return `${createHash("sha256").update(key).digest("hex").slice(0, 32)}.snapshot`;
}

export interface SnapshotLock {
  /** Aborted when another server has taken it over. */
  readonly lost: AbortSignal;
  release(): void;
}

/**
 * A holder in another container is not waited for: most likely it is the killed predecessor of this server, and
 * a start should be quick.
 *
 * @param onNotice  told in a sentence why there are no snapshots, or when another server has taken them over.
 * @returns undefined when another process holds the directory, or it cannot be written.
 */
export async function lockSnapshots(directory: string, onNotice: (sentence: string) => void): Promise<SnapshotLock | undefined> {
  const lost = new AbortController();
  const onLost = (): void => {
    onNotice(
      `Another server has taken over the search snapshots in ${directory}. This server goes on without snapshots, so its next start reads all records. Give each server a --data-dir of its own.`,
    );
    lost.abort();
  };
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const lock = await DirectoryLock.acquire(directory, onLost, {
      patienceMs: 0,
      onFault: (error) => onNotice((error as Error).message),
      onRecovery: onNotice,
    });
    return { lost: lost.signal, release: () => lock.release() };
  } catch (error) {
    const why = error instanceof DirectoryHeldError ? `are held by ${error.holder}` : `cannot be written (${(error as Error).message})`;
    onNotice(
      `The search snapshots in ${directory} ${why}. This server runs without snapshots, so its next start reads all records. Give it a --data-dir of its own.`,
    );
    return undefined;
  }
}
