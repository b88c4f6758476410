/** `lodestone check`: is everything in a data directory as it should be? For a server that is stopped. Changes nothing that a start would not. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { LodestoneError } from "../errors.ts";
import { openRecordStore } from "../records/open.ts";
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
      const faults = await check(options);
      if (faults > 0) throw new LodestoneError("CORRUPT", `${faults} ${faults === 1 ? "fault was" : "faults were"} found.`);
      console.log("Everything is as it should be.");
    });
}

/** @returns how many faults it found and printed. */
async function check({ dataDir, databaseUrl }: CheckOptions): Promise<number> {
  if (databaseUrl === undefined && !existsSync(join(dataDir, "lodestone.json"))) {
    throw new LodestoneError("INVALID", `${dataDir} is no data directory: it has no lodestone.json.`);
  }
  const records = await openRecordStore(databaseUrl === undefined ? { dataDir } : { databaseUrl });
  let faults = 0;
  try {
    for (const { name: database } of await records.listDatabases()) {
      for (const { name: branch } of await records.listBranches(database)) {
        const ref = { database, branch };
        const { tables, faults: found } = await records.check(ref);
        const { snapshot, differences, detail } = await checkSnapshot(records, ref, join(dataDir, "search"));
        const count = tables.reduce((sum, table) => sum + table.records, 0);
        console.log(
          `${database}:${branch}: ${tables.length} tables, ${count} records; search snapshot: ${snapshot}${detail === undefined ? "" : ` (${detail})`}`,
        );
        for (const { table, column, message } of found) {
          console.log(`  fault: ${[table, column].filter((part) => part !== undefined).join(".")} ${message}`);
        }
        for (const difference of differences.slice(0, 20)) console.log(`  fault: ${difference}`);
        faults += found.length + differences.length;
      }
    }
  } finally {
    await records.close();
  }
  return faults;
}
