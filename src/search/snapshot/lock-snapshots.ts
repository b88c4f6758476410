/**
 * Only one server writes the snapshots in a directory. Servers that share a database have no other lock, and
 * are easily started with the same `--data-dir`. Two that write would not harm each other's answers, because
 * every file is checksummed and belongs to one incarnation and part; but neither would find a usable snapshot.
 */
import { mkdir } from "node:fs/promises";
import { DirectoryHeldError, DirectoryLock } from "../../directory-lock.ts";

/**
 * A holder in another container is not waited for: most likely it is the killed predecessor of this server, and
 * a start should be quick.
 *
 * @param onNotice  told in a sentence why there are no snapshots, or when another server has taken them over.
 * @returns undefined when another process holds the directory, or it cannot be written.
 */
export async function lockSnapshots(directory: string, onNotice: (sentence: string) => void): Promise<DirectoryLock | undefined> {
  const onLost = (): void =>
    onNotice(`Another server has taken over the search snapshots in ${directory}. Give each server a --data-dir of its own.`);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    return await DirectoryLock.acquire(directory, onLost, {
      patienceMs: 0,
      onFault: (error) => onNotice((error as Error).message),
      onRecovery: onNotice,
    });
  } catch (error) {
    const why = error instanceof DirectoryHeldError ? `are held by ${error.holder}` : `cannot be written (${(error as Error).message})`;
    onNotice(
      `The search snapshots in ${directory} ${why}. This server runs without snapshots, so its next start reads all records. Give it a --data-dir of its own.`,
    );
    return undefined;
  }
}
