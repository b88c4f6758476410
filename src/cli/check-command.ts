/**
 * `lodestone check`: verifies the data directory of a stopped server. Changes nothing that a start would not
 * change.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { openRecordStore } from "../records/open.ts";
import { checkStore, countOfFaults } from "./check-store.ts";

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
