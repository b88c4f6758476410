/**
 * Replaces a file whole and durably: a reader sees the old content or the new one, never a part, even after a
 * crash.
 */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LodestoneError } from "./errors.ts";

const LOCK_PATIENCE_MS = 5_000;
const LOCK_RETRY_MS = 20;

/**
 * For one writer only. The content is written beside the file and renamed into its place. For several writers
 * there is `updateFile`.
 */
export async function replaceFile(path: string, content: string): Promise<void> {
  const file = await open(besides(path), "w");
  await finish(file, path, content);
}

/**
 * The same where the new content depends on the old one and several processes may write. The file beside it is
 * the lock.
 *
 * @param update  reads what is there and returns the new content. When it throws, nothing changes.
 * @param mode  of the new file, as in `chmod`.
 * @throws {LodestoneError} CONFLICT when another writer does not finish within five seconds.
 */
export async function updateFile(path: string, update: () => Promise<string>, mode: number): Promise<void> {
  const file = await openAlone(besides(path), mode);
  let content: string;
  try {
    content = await update();
  } catch (error) {
    await file.close();
    await rm(besides(path), { force: true });
    throw error;
  }
  await finish(file, path, content);
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

async function openAlone(path: string, mode: number): Promise<FileHandle> {
  const patience = performance.now() + LOCK_PATIENCE_MS;
  for (;;) {
    try {
      return await open(path, "wx", mode);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (performance.now() > patience) {
      throw new LodestoneError(
        "CONFLICT",
        `${path} exists: another process is writing. If no other process is running, a crash left this file behind: remove it, then try again.`,
      );
    }
    await sleep(LOCK_RETRY_MS);
  }
}

/** Closes the file, whatever happens; a fault leaves the old content in place and nothing beside it. */
async function finish(file: FileHandle, path: string, content: string): Promise<void> {
  try {
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(besides(path), path);
  } catch (error) {
    await rm(besides(path), { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}
