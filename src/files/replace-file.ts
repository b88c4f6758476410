/**
 * Replaces a file whole and durably: a reader sees the old content or the new one, never a part, even after a
 * crash.
 */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { crashPoint } from "./fault-points.ts";
import { withFileLock } from "./file-lock.ts";

/**
 * For one writer only. The content is written beside the file and renamed into its place. For several writers
 * there is `updateFile`.
 */
export async function replaceFile(path: string, content: string): Promise<void> {
  const file = await open(besides(path), "w");
  await finish(file, path, content);
}

/**
 * The same where the new content depends on the old one and several processes may write: they take turns
 * (file-lock.ts).
 *
 * @param update  reads what is there and returns the new content. When it throws, nothing changes.
 * @param mode  of the new file, as in `chmod`.
 * @throws {LodestoneError} CONFLICT when another writer does not finish within five seconds.
 */
export async function updateFile(path: string, update: () => Promise<string>, mode: number): Promise<void> {
  await withFileLock(path, async (requireLock) => {
    const content = await update();
    // A writer that was killed may have left one.
    await rm(besides(path), { force: true });
    crashPoint("file-locked");
    await finish(await open(besides(path), "wx", mode), path, content, () => {
      requireLock();
      crashPoint("file-written");
    });
  });
}

/** Makes what was created, renamed or removed in the directory last through a crash. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

const besides = (path: string): string => `${path}.new`;

/** Closes the file, whatever happens; a fault leaves the old content in place and nothing beside it. */
async function finish(file: FileHandle, path: string, content: string, beforeRename = (): void => {}): Promise<void> {
  try {
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    beforeRename();
    await rename(besides(path), path);
  } catch (error) {
    await rm(besides(path), { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}
