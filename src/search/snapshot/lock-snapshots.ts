/**
 * Only one server writes the snapshots in a directory. Servers that share a database have no other lock, and
 * are easily started with the same `--data-dir`. Two that write would not harm each other's answers, because
 * every file is checksummed and belongs to one incarnation and part; but neither would find a usable snapshot.
 */
import { mkdir } from "node:fs/promises";
import { DirectoryHeldError, DirectoryLock } from "../../files/directory-lock.ts";

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
