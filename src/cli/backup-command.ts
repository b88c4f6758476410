/**
 * `lodestone backup` asks a running server for a copy of its database; `lodestone restore` makes a data
 * directory from such a copy.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { type Command, Option } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { isDirectoryHeld } from "../files/directory-lock.ts";
import { syncDirectory } from "../files/replace-file.ts";
import { copyBackup } from "../records/engine/embedded/backup.ts";
import { openRecordStore } from "../records/open.ts";
import type { ApiClient } from "./api-client.ts";
import { checkStore, countOfFaults } from "./check-command.ts";
import { INTERRUPTED_EXIT_CODE, onInterrupt } from "./process-end.ts";

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
    .description("Make a new data directory from a backup, if its files are as they were made and what they hold passes lodestone check.")
    .argument("<backup>", "the folder that lodestone backup printed")
    .addOption(new Option("--data-dir <folder>", "the data directory to make; must not exist, or must be empty").makeOptionMandatory())
    .action(async (backup: string, options: { dataDir: string }) => {
      const interrupt = onInterrupt("Stopping; nothing will be restored.");
      try {
        const { branches, hadChecksums } = await restore(resolve(backup), resolve(options.dataDir), interrupt.signal);
        console.log(
          `Restored ${branches} ${branches === 1 ? "branch" : "branches"} into ${resolve(options.dataDir)}, verified. lodestone serve --data-dir ${options.dataDir} serves it.`,
        );
        if (!hadChecksums) {
          console.error(
            "The backup is of a version that kept no checksums of its files. Its tables, rules and indexes were checked, but not each value.",
          );
        }
      } catch (error) {
        if (error !== interrupt.signal.reason) throw error;
        console.error("Interrupted: nothing was restored.");
        process.exitCode = INTERRUPTED_EXIT_CODE;
      } finally {
        interrupt.dispose();
      }
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

interface Restored {
  readonly branches: number;
  /** False: the backup is of an early version, whose files have no checksums. */
  readonly hadChecksums: boolean;
}

/** The directory appears whole and verified, or not at all. */
async function restore(backup: string, dataDir: string, signal: AbortSignal): Promise<Restored> {
  if (!existsSync(join(backup, "lodestone.json")) || !existsSync(join(backup, "postgres"))) {
    throw new LodestoneError("INVALID", `${backup} is not a backup: it has no lodestone.json and postgres.`);
  }
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0) {
    throw new LodestoneError("INVALID", `${dataDir} is not empty. Restore into a new folder, then start the server with it.`);
  }
  refuseOverlap(backup, dataDir);
  refuseInUse(backup);
  mkdirSync(dirname(dataDir), { recursive: true });
  const building = mkdtempSync(join(dirname(dataDir), `${basename(dataDir)}.restoring-`));
  const remove = (): void => rmSync(building, { recursive: true, force: true });
  process.once("exit", remove);
  try {
    const hadChecksums = await copyBackup(backup, building, signal);
    // Opening replays the log up to the end of the backup, and writes everything to disk. Search snapshots of
    // the original would not match the copy, and are not in it.
    const open = () => openRecordStore({ dataDir: building }, { isCopy: true });
    const said: string[] = [];
    const { branches, faults } = await checkStore(open, join(building, "search"), (line) => said.push(line), signal);
    if (faults > 0) {
      throw new LodestoneError(
        "CORRUPT",
        `${said.join("\n")}\nThe backup ${backup} is damaged: ${countOfFaults(faults)}. Nothing was restored.`,
      );
    }
    // A rename may replace an empty directory.
    renameSync(building, dataDir);
    await syncDirectory(dirname(dataDir));
    return { branches, hadChecksums };
  } finally {
    process.off("exit", remove);
    remove();
  }
}
