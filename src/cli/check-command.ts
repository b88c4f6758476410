/**
 * `lodestone check`: verifies the data directory of a stopped server, and `lodestone restore` what it has made. Changes
 * nothing that a start would not change.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { openRecordStore } from "../records/open.ts";
import type { RecordStore } from "../records/record-store.ts";
import type { BranchRef } from "../records/schema.ts";
import { checkSnapshot } from "../search/check-snapshot.ts";

interface CheckOptions {
  readonly dataDir: string;
  readonly databaseUrl?: string;
}

export function checkCommand(command: Command): Command {
  return command
    .description(
      "Verify the records against their schema and indexes, and the search snapshots against the records. Stop the server first.",
    )
    .addOption(new Option("--data-dir <folder>", "where the embedded database lives").env("LODESTONE_DATA_DIR").default("./data"))
    .addOption(new Option("--database-url <url>", "a PostgreSQL server instead").env("LODESTONE_DATABASE_URL"))
    .action(async (options: CheckOptions) => {
      const { dataDir, databaseUrl } = options;
      if (databaseUrl === undefined && !existsSync(join(dataDir, "lodestone.json"))) {
        throw new LodestoneError("INVALID", `${dataDir} is not a data directory: it has no lodestone.json.`);
      }
      const open = () => openRecordStore(databaseUrl === undefined ? { dataDir } : { databaseUrl });
      const { faults } = await checkStore(open, join(dataDir, "search"), (line) => console.log(line));
      if (faults > 0) throw new LodestoneError("CORRUPT", `${countOfFaults(faults)}.`);
      console.log("Everything is as it should be.");
    });
}

const SQLSTATE_LENGTH = 5;
const MAX_SHOWN_DIFFERENCES = 20;

interface StoreCheck {
  readonly branches: number;
  readonly faults: number;
}

/**
 * Verifies every branch, one after the other.
 *
 * @param open  opens the store, which is closed again.
 * @param snapshotDir  where search snapshots are, if there are any.
 * @param say  gets a line about each branch, and one for each fault.
 * @throws {LodestoneError} CORRUPT, when the store cannot be opened, or its branches cannot be listed. The signal's
 *   reason.
 */
export async function checkStore(
  open: () => Promise<RecordStore>,
  snapshotDir: string,
  say: (line: string) => void,
  signal?: AbortSignal,
): Promise<StoreCheck> {
  const records = await open().catch((error: unknown) => {
    if (error instanceof LodestoneError) throw error;
    // Whatever PostgreSQL reports, as its thread passes it on.
    throw new LodestoneError("CORRUPT", `The database cannot be opened: ${(error as Error).message}.`, { cause: error });
  });
  try {
    const refs: BranchRef[] = [];
    try {
      for (const { name: database } of await records.listDatabases()) {
        for (const { name: branch } of await records.listBranches(database)) refs.push({ database, branch });
      }
    } catch (error) {
      throw asDamage(error, "The list of branches cannot be read");
    }
    let faults = 0;
    for (const ref of refs) {
      signal?.throwIfAborted();
      faults += await checkOne(records, ref, snapshotDir, say);
    }
    return { branches: refs.length, faults };
  } finally {
    await records.close();
  }
}

async function checkOne(records: RecordStore, ref: BranchRef, snapshotDir: string, say: (line: string) => void): Promise<number> {
  const name = `${ref.database}:${ref.branch}`;
  try {
    const { tables, faults: found } = await records.check(ref);
    const { snapshot, differences, detail } = await checkSnapshot(records, ref, snapshotDir);
    const count = tables.reduce((sum, table) => sum + table.records, 0);
    say(
      `${name}: ${tables.length} ${tables.length === 1 ? "table" : "tables"}, ${count} records; search snapshot: ${snapshot}${detail === undefined ? "" : ` (${detail})`}`,
    );
    for (const { table, column, message } of found) {
      say(`  fault: ${[table, column].filter((part) => part !== undefined).join(".")} ${message}`);
    }
    for (const difference of differences.slice(0, MAX_SHOWN_DIFFERENCES)) say(`  fault: ${difference}`);
    return found.length + differences.length;
  } catch (error) {
    say(`${name}: fault: ${asDamage(error, "The branch cannot be read completely").message}`);
    return 1;
  }
}

/**
 * Errors that the database reports about data it cannot read are for the user. This program's own faults are
 * passed on as they are.
 */
function asDamage(error: unknown, what: string): Error {
  const { code, message, cause } = error as { code?: string; message: string; cause?: { message?: string } };
  if (error instanceof LodestoneError) {
    // A session that ended says why in its cause.
    if (error.code !== "UNAVAILABLE" || cause === undefined) return error;
  } else if (code?.length !== SQLSTATE_LENGTH) return error as Error;
  return new LodestoneError("CORRUPT", `${what}: ${cause?.message ?? message}.`, { cause: error });
}

export const countOfFaults = (faults: number): string => `${faults} ${faults === 1 ? "fault was" : "faults were"} found`;
