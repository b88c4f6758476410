/**
 * `lodestone check`: verifies the data directory of a stopped server. Changes nothing that a start would not
 * change.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { LodestoneError } from "../errors.ts";
import { openRecordStore } from "../records/open.ts";
import type { RecordStore } from "../records/record-store.ts";
import type { BranchRef } from "../records/schema.ts";
import { checkSnapshot } from "../search/check-snapshot.ts";

const SQLSTATE_LENGTH = 5;

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
      const faults = await check(options);
      if (faults > 0) throw new LodestoneError("CORRUPT", `${faults} ${faults === 1 ? "fault was" : "faults were"} found.`);
      console.log("Everything is as it should be.");
    });
}

/** @returns the number of faults found and printed. */
async function check({ dataDir, databaseUrl }: CheckOptions): Promise<number> {
  if (databaseUrl === undefined && !existsSync(join(dataDir, "lodestone.json"))) {
    throw new LodestoneError("INVALID", `${dataDir} is not a data directory: it has no lodestone.json.`);
  }
  const records = await openRecordStore(databaseUrl === undefined ? { dataDir } : { databaseUrl }).catch((error: unknown) => {
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
    for (const ref of refs) faults += await checkOne(records, ref, dataDir);
    return faults;
  } finally {
    await records.close();
  }
}

async function checkOne(records: RecordStore, ref: BranchRef, dataDir: string): Promise<number> {
  const name = `${ref.database}:${ref.branch}`;
  try {
    const { tables, faults: found } = await records.check(ref);
    const { snapshot, differences, detail } = await checkSnapshot(records, ref, join(dataDir, "search"));
    const count = tables.reduce((sum, table) => sum + table.records, 0);
    console.log(
      `${name}: ${tables.length} ${tables.length === 1 ? "table" : "tables"}, ${count} records; search snapshot: ${snapshot}${detail === undefined ? "" : ` (${detail})`}`,
    );
    for (const { table, column, message } of found) {
      console.log(`  fault: ${[table, column].filter((part) => part !== undefined).join(".")} ${message}`);
    }
    for (const difference of differences.slice(0, 20)) console.log(`  fault: ${difference}`);
    return found.length + differences.length;
  } catch (error) {
    console.log(`${name}: fault: ${asDamage(error, "The branch cannot be read completely").message}`);
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
