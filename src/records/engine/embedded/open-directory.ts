/** Opens a path as a locked, whole data directory. */
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { DirectoryLock } from "../../../directory-lock.ts";
import { checkDataDirectory, copyTree, ensureDirectory, pgDataPath, publish, removeLeftovers, templateName } from "./data-directory.ts";
import { createPgData } from "./embedded-session.ts";

/** The major version of PostgreSQL inside the pinned PGlite. */
const POSTGRES_MAJOR = "18";

export interface OpenDirectory {
  readonly dataDir: string;
  readonly pgDataDirectory: string;
  readonly lock: DirectoryLock;
}

/**
 * @param options.templateDir  keeps a pristine database for further first starts (tests make hundreds): a new
 *   directory is a copy of it.
 * @param onLockLost  called when another process took over the directory: nothing may be written any more.
 */
export async function openDataDirectory(
  options: { dataDir: string; templateDir?: string },
  onLockLost: () => void,
): Promise<OpenDirectory> {
  const dataDir = resolve(options.dataDir);
  ensureDirectory(dataDir);
  const lock = await DirectoryLock.acquire(dataDir, onLockLost);
  try {
    removeLeftovers(dataDir);
    if (!(await checkDataDirectory(dataDir, POSTGRES_MAJOR))) await makeDatabase(dataDir, options.templateDir);
  } catch (error) {
    lock.release();
    throw error;
  }
  return { dataDir, pgDataDirectory: pgDataPath(dataDir), lock };
}

async function makeDatabase(dataDir: string, templateDir: string | undefined): Promise<void> {
  const built = mkdtempSync(join(dataDir, "postgres.new-"));
  if (templateDir === undefined) await createPgData(built);
  else {
    rmSync(built, { recursive: true });
    copyTree(await template(templateDir), built);
  }
  // A directory without PG_VERSION comes from an interrupted copy by hand: it holds no database.
  if (existsSync(pgDataPath(dataDir))) rmSync(pgDataPath(dataDir), { recursive: true });
  await publish(dataDir, built);
}

async function template(templateDir: string): Promise<string> {
  const path = join(templateDir, templateName());
  if (existsSync(path)) return path;
  ensureDirectory(templateDir);
  const built = mkdtempSync(join(templateDir, "building-"));
  await createPgData(built);
  try {
    renameSync(built, path);
  } catch (error) {
    // Another process was faster.
    if (!existsSync(path)) throw error;
    rmSync(built, { recursive: true, force: true });
  }
  return path;
}
