/**
 * What is on disk: `<data>/lodestone.json` (format and versions), `<data>/postgres` (PostgreSQL's own files),
 * `<data>/lodestone.lock.<n>`.
 *
 * Invariant: `postgres` exists only whole. It is made as `postgres.new-…`, synced, and renamed. A kill at any
 * moment of the first start therefore leaves either nothing or a good directory. The next start removes what
 * such a kill left (under the lock).
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { crashPoint } from "../../../files/fault-points.ts";
import { replaceFile, syncDirectory } from "../../../files/replace-file.ts";

/**
 * Incremented when what Lodestone keeps in the directory changes in a way that an older version cannot read.
 */
const DATA_FORMAT = 1;

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

export function removeLeftovers(dataDir: string): void {
  for (const name of readdirSync(dataDir))
    if (name.startsWith("postgres.new-")) rmSync(join(dataDir, name), { recursive: true, force: true });
}

/**
 * Checks that this version can open the directory. What decides is PostgreSQL's major version; PGlite's minor
 * versions keep the format.
 * @returns true when there is a database, false when there is none yet.
 * @throws {LodestoneError} CORRUPT
 */
export async function checkDataDirectory(dataDir: string, supportedMajor: string): Promise<boolean> {
  if (!existsSync(join(pgDataPath(dataDir), "PG_VERSION"))) return false;
  const major = readFileSync(join(pgDataPath(dataDir), "PG_VERSION"), "utf8").trim();
  if (major !== supportedMajor) {
    throw new LodestoneError(
      "CORRUPT",
      `The data directory ${dataDir} was written by PostgreSQL ${major}; this version of Lodestone runs PostgreSQL ${supportedMajor}. ` +
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
export async function publish(dataDir: string, built: string): Promise<void> {
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

export function ensureDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}
