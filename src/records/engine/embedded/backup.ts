/**
 * Makes a consistent copy of the embedded database while it is in use, by PostgreSQL's low-level backup:
 * pg_backup_start, copy, pg_backup_stop.
 *
 * Statements keep changing the files while they are copied. Two things make the copy whole: the write-ahead
 * log since the start, which is copied last, and the label that tells recovery where to begin. Nothing may
 * remove log files in the meantime, so checkpoints wait (`hold`). The result is a data directory with checksums of
 * its files (backup-checksums.ts), from which `restoreBackup` makes another one.
 */
import { cpSync, existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { replaceFile, syncDirectory } from "../../../files/replace-file.ts";
import type { Connection } from "../engine.ts";
import { CHECKSUMS_NAME, copySealed, sealFiles } from "./backup-checksums.ts";
import { pgDataPath, writeMarkerFor } from "./data-directory.ts";

export interface BackupHost {
  /** One unit: nothing else runs on the session meanwhile. */
  unit<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result>;
  /** While set, no checkpoint is made and the session is not replaced. */
  hold(isHeld: boolean): void;
}

/** Never part of the main copy: the log comes last, the others belong to the running session. */
const LEFT_OUT = new Set(["pg_wal", "postmaster.pid", "postmaster.opts", "pgsql_tmp", "backup_label", "pg_stat_tmp"]);

/** SQLSTATE of pg_backup_stop without a start in the same session. */
const NOT_IN_PROGRESS = "55000";

/**
 * @param target  must not exist; appears whole or not at all.
 * @param signal  ends it between two files.
 * @throws {LodestoneError} INVALID (the target exists), UNAVAILABLE (the session was restarted meanwhile;
 *   nothing was written). The signal's reason.
 */
export async function backupTo(host: BackupHost, dataDir: string, target: string, signal?: AbortSignal): Promise<void> {
  const path = resolve(target);
  if (existsSync(path)) throw new LodestoneError("INVALID", `The backup's directory ${path} exists already; name a new one.`);
  await mkdir(dirname(path), { recursive: true });
  const building = await mkdtemp(join(dirname(path), `${basename(path)}.part-`));
  const source = pgDataPath(dataDir);
  const copy = pgDataPath(building);
  host.hold(true);
  try {
    await host.unit((connection) => connection.query("SELECT pg_backup_start('lodestone', true)"));
    await copyTreeWhileInUse(source, copy, LEFT_OUT, signal);
    await host.unit(async (connection) => {
      const { rows } = await connection.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)");
      await copyTreeWhileInUse(join(source, "pg_wal"), join(copy, "pg_wal"), new Set(), signal);
      await writeFile(join(copy, "backup_label"), rows[0]!.labelfile);
    });
    await writeMarkerFor(building, await sealFiles(building, signal));
    signal?.throwIfAborted();
    await rename(building, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(building, { recursive: true, force: true });
    if ((error as { code?: string }).code === NOT_IN_PROGRESS) {
      throw new LodestoneError("UNAVAILABLE", "The database was restarted during the backup; nothing was written. Try again.", {
        cause: error,
      });
    }
    // The session must not stay in a backup that nobody finishes. If it has ended already, this fails and
    // nothing is lost.
    await host.unit((connection) => connection.query("SELECT pg_backup_stop(false)")).catch(() => {});
    throw error;
  } finally {
    host.hold(false);
  }
}

/** A file that disappears meanwhile is one that replaying the log would remove too. */
async function copyTreeWhileInUse(from: string, to: string, leftOut: ReadonlySet<string>, signal?: AbortSignal): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (leftOut.has(entry.name)) continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTreeWhileInUse(source, target, leftOut, signal);
    else {
      signal?.throwIfAborted();
      await copyFile(source, target).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
      });
    }
  }
}

// Makes the files of a data directory from those of a backup.

/**
 * @param target  an empty directory. It has to be opened once, which replays the log up to the end of the backup.
 * @returns whether the files were compared with their checksums. Backups of early versions have none.
 * @throws {LodestoneError} INVALID: it is not a backup. CORRUPT: it is not as it was made. The signal's reason.
 */
export async function copyBackup(backup: string, target: string, signal: AbortSignal): Promise<boolean> {
  const { checksums, ...marker } = readMarker(backup);
  if (checksums !== undefined) await copySealed(backup, checksums, target, signal);
  else {
    if (existsSync(join(backup, CHECKSUMS_NAME))) {
      throw new LodestoneError(
        "CORRUPT",
        `The backup ${backup} is not as it was made: lodestone.json is not what it was. Nothing was restored.`,
      );
    }
    // Without the label PostgreSQL would take the files for those of a database that was stopped, and open what is no
    // whole.
    const missing = ["PG_VERSION", "backup_label"].find((name) => !existsSync(join(backup, "postgres", name)));
    if (missing !== undefined) {
      throw new LodestoneError(
        "CORRUPT",
        `${backup} is not a backup, or not a whole one: it has no postgres/${missing}. Nothing was restored. (A data directory that a server ran on is served as it is, or copied whole.)`,
      );
    }
    cpSync(join(backup, "postgres"), join(target, "postgres"), { recursive: true });
  }
  await replaceFile(join(target, "lodestone.json"), `${JSON.stringify(marker)}\n`);
  return checksums !== undefined;
}

function readMarker(backup: string): { readonly checksums?: string } {
  let marker: unknown;
  try {
    marker = JSON.parse(readFileSync(join(backup, "lodestone.json"), "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
      throw new LodestoneError("CORRUPT", `The backup ${backup} is not as it was made: lodestone.json is damaged. Nothing was restored.`);
    }
  }
  if (typeof marker !== "object" || marker === null)
    throw new LodestoneError("INVALID", `${backup} is not a backup: it has no lodestone.json.`);
  return marker;
}
