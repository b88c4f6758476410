/**
 * `lodestone backup` asks a running server for a copy of its database; `lodestone restore` makes a data
 * directory from such a copy.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { type Command, Option } from "commander";
import { isDirectoryHeld } from "../directory-lock.ts";
import { LodestoneError } from "../errors.ts";
import { openRecordStore } from "../records/open.ts";
import type { ApiClient } from "./api-client.ts";

export function backupCommand(command: Command, clientOf: (options: { url: string; apiKey?: string }) => ApiClient): Command {
  return command
    .description(
      "Back up the database of a running server (embedded only) without stopping it; prints the folder, which is on the server's machine.",
    )
    .action(async (options: { url: string; apiKey?: string }) => {
      const { path, seconds } = await clientOf(options).request<{ path: string; seconds: number }>("POST", "/backups");
      console.log(path);
      console.error(`The backup took ${seconds} s. lodestone restore ${path} --data-dir <new folder> makes a data directory from it.`);
    });
}

export function restoreCommand(command: Command): Command {
  return command
    .description("Make a new data directory from a backup, and open it once to verify that it is complete.")
    .argument("<backup>", "the folder that lodestone backup printed")
    .addOption(new Option("--data-dir <folder>", "the data directory to make; must not exist, or must be empty").makeOptionMandatory())
    .action(async (backup: string, options: { dataDir: string }) => {
      const branches = await restore(resolve(backup), resolve(options.dataDir));
      console.log(
        `Restored ${branches} ${branches === 1 ? "branch" : "branches"} into ${resolve(options.dataDir)}. lodestone serve --data-dir ${options.dataDir} serves it.`,
      );
    });
}

/**
 * Neither directory may contain the other, and the new one may not be inside any data directory. Links and ".."
 * are resolved first.
 */
function refuseOverlap(backup: string, dataDir: string): void {
  const [from, to] = [realpathSync(backup), realPathOf(dataDir)];
  if (isWithin(to, from) || isWithin(from, to)) {
    throw new LodestoneError("INVALID", `${dataDir} and the backup ${backup} must not contain each other. Restore into a separate folder.`);
  }
  for (let folder = dirname(to); folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, "lodestone.json"))) {
      throw new LodestoneError("INVALID", `${dataDir} is inside the data directory ${folder}. Restore into a separate folder.`);
    }
  }
}

/** A directory that a server uses would change while it is copied. */
function refuseInUse(backup: string): void {
  if (!isDirectoryHeld(backup)) return;
  throw new LodestoneError(
    "INVALID",
    `${backup} is the data directory of a running server, not a backup. To make a backup of it, run lodestone backup.`,
  );
}

const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

/** The real path of one whose last parts may not exist yet. */
function realPathOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : join(realPathOf(dirname(path)), basename(path));
}

/**
 * The directory appears whole or not at all.
 * @returns how many branches it has.
 */
async function restore(backup: string, dataDir: string): Promise<number> {
  if (!existsSync(join(backup, "lodestone.json")) || !existsSync(join(backup, "postgres", "PG_VERSION"))) {
    throw new LodestoneError("INVALID", `${backup} is not a backup: it has no lodestone.json and postgres/PG_VERSION.`);
  }
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0) {
    throw new LodestoneError("INVALID", `${dataDir} is not empty. Restore into a new folder, then start the server with it.`);
  }
  refuseOverlap(backup, dataDir);
  refuseInUse(backup);
  mkdirSync(dirname(dataDir), { recursive: true });
  const building = mkdtempSync(join(dirname(dataDir), `${basename(dataDir)}.restoring-`));
  try {
    for (const part of ["postgres", "lodestone.json"]) cpSync(join(backup, part), join(building, part), { recursive: true });
    // Opening replays the log up to the end of the backup, and writes everything to disk. Search snapshots of
    // the original would not match the copy.
    const records = await openRecordStore({ dataDir: building }, { isCopy: true });
    let branches = 0;
    try {
      for (const { name } of await records.listDatabases()) branches += (await records.listBranches(name)).length;
    } finally {
      await records.close();
    }
    // A rename may replace an empty directory.
    renameSync(building, dataDir);
    return branches;
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    throw error;
  }
}
