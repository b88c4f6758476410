/**
 * What is on disk: `<data>/lodestone.json` (format and versions), `<data>/postgres` (PostgreSQL's own files),
 * `<data>/lodestone.lock.<n>`.
 *
 * Invariant: `postgres` exists only whole. It is made as `postgres.new-…`, synced, and renamed. A kill at any
 * moment of the first start therefore leaves either nothing or a good directory. The next start removes what
 * such a kill left (under the lock).
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { FaultListeners } from "../../../errors/fault-state.ts";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { DirectoryLock, isDirectoryHeld } from "../../../files/directory-lock.ts";
import { crashPoint } from "../../../files/fault-points.ts";
import { replaceFile, syncDirectory } from "../../../files/replace-file.ts";
import { makeRoom } from "./disk-reserve.ts";
import { unpackDatabase } from "./pristine-database.ts";

/**
 * Incremented when what Lodestone keeps in the directory changes in a way that an older version cannot read.
 */
const DATA_FORMAT = 1;
/** The major version of PostgreSQL inside the pinned PGlite. */
const POSTGRES_MAJOR = "18";

const pglite = JSON.parse(readFileSync(new URL("../package.json", import.meta.resolve("@electric-sql/pglite")), "utf8")) as {
  version: string;
};

interface Marker {
  readonly format: number;
  readonly postgresMajor: string;
  /** The version that made the directory. */
  readonly pglite: string;
  /** In a backup: the checksum of the list of its files (backup-checksums.ts). */
  readonly checksums?: string;
}

const markerPath = (dataDir: string): string => join(dataDir, "lodestone.json");
export const pgDataPath = (dataDir: string): string => join(dataDir, "postgres");

function removeLeftovers(dataDir: string): void {
  for (const name of readdirSync(dataDir))
    if (name.startsWith("postgres.new-")) rmSync(join(dataDir, name), { recursive: true, force: true });
}

/**
 * Checks that this version can open the directory. What decides is PostgreSQL's major version; PGlite's minor
 * versions keep the format.
 * @returns true when there is a database, false when there is none yet.
 * @throws {LodestoneError} CORRUPT
 */
async function checkDataDirectory(dataDir: string): Promise<boolean> {
  if (!existsSync(join(pgDataPath(dataDir), "PG_VERSION"))) return false;
  const major = readFileSync(join(pgDataPath(dataDir), "PG_VERSION"), "utf8").trim();
  if (major !== POSTGRES_MAJOR) {
    throw new LodestoneError(
      "CORRUPT",
      `The data directory ${dataDir} was written by PostgreSQL ${major}; this version of Lodestone runs PostgreSQL ${POSTGRES_MAJOR}. ` +
        "Export the data with the version that wrote it (lodestone export) and import it into a new directory.",
    );
  }
  let marker: Partial<Marker>;
  try {
    marker = JSON.parse(readFileSync(markerPath(dataDir), "utf8")) as Partial<Marker>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      // Renaming `postgres` is the last step but one of the first start; a kill between the two leaves no
      // marker.
      await writeMarker(dataDir, major);
      return true;
    }
    throw new LodestoneError(
      "CORRUPT",
      `${markerPath(dataDir)} is damaged. It should read {"format":${DATA_FORMAT},"postgresMajor":"${major}"}.`,
      {
        cause: error,
      },
    );
  }
  if (marker.format !== DATA_FORMAT) {
    throw new LodestoneError(
      "CORRUPT",
      `The data directory ${dataDir} has format ${marker.format}; this version of Lodestone reads format ${DATA_FORMAT}. Use the version that wrote it, or export and import.`,
    );
  }
  return true;
}

/** Moves a finished directory into place. */
async function publish(dataDir: string, built: string): Promise<void> {
  crashPoint("first-start-built");
  renameSync(built, pgDataPath(dataDir));
  await syncDirectory(dataDir);
  crashPoint("first-start-placed");
  await writeMarkerFor(dataDir);
}

/** For a copy of a database that is not yet in place. @param checksums of a backup. */
export function writeMarkerFor(dataDir: string, checksums?: string): Promise<void> {
  return writeMarker(dataDir, readFileSync(join(pgDataPath(dataDir), "PG_VERSION"), "utf8").trim(), checksums);
}

function writeMarker(dataDir: string, postgresMajor: string, checksums?: string): Promise<void> {
  const marker: Marker = { format: DATA_FORMAT, postgresMajor, pglite: pglite.version, ...(checksums === undefined ? {} : { checksums }) };
  return replaceFile(markerPath(dataDir), `${JSON.stringify(marker)}\n`);
}

/**
 * Removes the temporary files of a killed statement. PostgreSQL itself does so at start only when it runs as
 * a full server.
 */
export function removeTemporaryFiles(dataDir: string): void {
  rmSync(join(pgDataPath(dataDir), "base", "pgsql_tmp"), { recursive: true, force: true });
}

/** Whether PostgreSQL was shut down in order when it last had the directory; otherwise it recovers when it opens it. */
export function wasShutDown(pgDataDirectory: string): boolean {
  // `state` of ControlFileData (pg_control.h): DB_SHUTDOWNED.
  return readFileSync(join(pgDataDirectory, "global", "pg_control")).readUInt32LE(16) === 1;
}

/** Size in bytes of the write-ahead log's files, including those kept for reuse. */
export async function walBytesOf(dataDir: string): Promise<number> {
  const folder = join(pgDataPath(dataDir), "pg_wal");
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    // A file may disappear between the listing and its stat.
    if (entry.isFile()) bytes += (await stat(join(folder, entry.name)).catch(() => undefined))?.size ?? 0;
  }
  return bytes;
}

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
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  // The lock itself needs a little.
  if (!isDirectoryHeld(dataDir)) makeRoom(dataDir);
  const lock = await DirectoryLock.acquire(dataDir, onLockLost, { onFault: options.onFault, onRecovery: options.onRecovery });
  try {
    removeLeftovers(dataDir);
    if (!(await checkDataDirectory(dataDir))) {
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
