/** Opens a path as a locked, whole data directory. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import type { FaultListeners } from "../../../errors/fault-state.ts";
import { DirectoryLock, isDirectoryHeld } from "../../../files/directory-lock.ts";
import { checkDataDirectory, ensureDirectory, pgDataPath, publish, removeLeftovers } from "./data-directory.ts";
import { makeRoom } from "./disk-reserve.ts";
import { unpackDatabase } from "./pristine-database.ts";

/** The major version of PostgreSQL inside the pinned PGlite. */
const POSTGRES_MAJOR = "18";

export interface OpenDirectory {
  readonly dataDir: string;
  readonly pgDataDirectory: string;
  readonly lock: DirectoryLock;
}

/** @param onLockLost  called when another process took over the directory: nothing may be written any more. */
export async function openDataDirectory(
  options: { dataDir: string; onStep?: ((words: string) => void) | undefined } & FaultListeners,
  onLockLost: () => void,
): Promise<OpenDirectory> {
  const dataDir = resolve(options.dataDir);
  options.onStep?.(`opening the data directory ${dataDir}`);
  ensureDirectory(dataDir);
  // The lock itself needs a little.
  if (!isDirectoryHeld(dataDir)) makeRoom(dataDir);
  const lock = await DirectoryLock.acquire(dataDir, onLockLost, { onFault: options.onFault, onRecovery: options.onRecovery });
  try {
    removeLeftovers(dataDir);
    if (!(await checkDataDirectory(dataDir, POSTGRES_MAJOR))) {
      options.onStep?.("making the database");
      await makeDatabase(dataDir);
    }
  } catch (error) {
    lock.release();
    throw error;
  }
  return { dataDir, pgDataDirectory: pgDataPath(dataDir), lock };
}

async function makeDatabase(dataDir: string): Promise<void> {
  const built = mkdtempSync(join(dataDir, "postgres.new-"));
  await unpackDatabase(built);
  // A directory without PG_VERSION comes from an interrupted copy by hand: it holds no database.
  if (existsSync(pgDataPath(dataDir))) rmSync(pgDataPath(dataDir), { recursive: true });
  await publish(dataDir, built);
}
