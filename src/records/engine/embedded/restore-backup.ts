/** Makes the files of a data directory from those of a backup. */
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { replaceFile } from "../../../files/replace-file.ts";
import { CHECKSUMS_NAME, copySealed } from "./backup-checksums.ts";

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
