/** `lodestone migrate`: argv to a migration; prints its plan, its progress and what was left out. */
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";
import type { BranchRef } from "../records/schema.ts";
import type { ApiClient } from "./api-client.ts";
import { batchOption, encodingOption, parseTarget } from "./arguments.ts";
import { SourceFiles } from "./import/source-files.ts";
import type { Encoding } from "./import/text-encoding.ts";
import { type MigrationSource, openMigrationSource } from "./migrate/open-source.ts";
import { runMigration } from "./migrate/run-migration.ts";
import { INTERRUPTED_EXIT_CODE, onInterrupt } from "./process-end.ts";
import { grouped, type Progress, startProgress } from "./progress.ts";

interface MigrateFlags {
  url: string;
  apiKey?: string;
  schema?: string;
  plan?: boolean;
  state?: string;
  restart?: boolean;
  encoding?: Encoding;
  batch: number;
}

export function migrateCommand(command: Command, clientOf: (flags: MigrateFlags) => ApiClient): Command {
  return command
    .description(
      "Move a whole database of the retired service into a new branch of a running server: schema, records and links. Each table is compared with its source at the end.\n" +
        "An interrupted migration continues where it stopped when you run the same command again. The branch gets its name only when everything is there and verified.",
    )
    .argument(
      "<source>",
      "a pg_dump dump in any format, or a folder with a .csv or .jsonl file for each table and its schema (schema.json or xata.ts)",
    )
    .argument("<target>", "{database}:{branch}, as in library:main")
    .option("--schema <file>", "the schema: JSON, or the file that the retired service's code generator wrote")
    .option("--plan", "only print what would be done")
    .option("--state <folder>", "the folder that records the progress (default: beside the dump, or in the folder)")
    .option("--restart", "start over, even if an earlier run was interrupted")
    .addOption(encodingOption())
    .addOption(batchOption())
    .action(async (path: string, target: string, flags: MigrateFlags) => {
      const { ref, table } = parseTarget(target);
      if (table !== undefined)
        throw new LodestoneError("INVALID", `A migration goes into a branch, {database}:{branch}; got ${quoted(target)}.`);
      const client = clientOf(flags);
      const interrupt = onInterrupt("Finishing the batches in flight; press Ctrl-C again to stop at once.");
      const files = new SourceFiles(flags.encoding, interrupt.signal);
      try {
        const source = await openMigrationSource(path, flags.schema, files);
        printPlan(path, ref, client.url, source);
        if (flags.plan !== true) await migrate(client, path, ref, source, files, flags);
      } catch (error) {
        if (error !== interrupt.signal.reason) throw error;
        reportInterrupted(ref);
      } finally {
        interrupt.dispose();
        files.close();
      }
    });
}

function printPlan(path: string, { database, branch }: BranchRef, url: string, source: MigrationSource): void {
  console.log(`From ${path} into the new branch ${database}:${branch} of ${url}:`);
  for (const { name, columns, file } of source.tables) {
    console.log(`  ${name}: ${columns.length} columns${file === undefined ? ", no records" : ""}`);
  }
  if (source.isUnderscored)
    console.log("Answers and SQL of the branch call the metadata xata_id, xata_version, xata_createdat and xata_updatedat.");
  if (source.leftOut.length === 0) return;
  console.log("What will differ:");
  for (const sentence of source.leftOut) console.log(`  ${sentence}`);
}

function reportInterrupted({ database, branch }: BranchRef): void {
  console.log(`Interrupted: run the same command again to continue. There is no branch ${database}:${branch} yet.`);
  process.exitCode = INTERRUPTED_EXIT_CODE;
}

async function migrate(
  client: ApiClient,
  path: string,
  ref: BranchRef,
  source: MigrationSource,
  files: SourceFiles,
  flags: MigrateFlags,
): Promise<void> {
  // Beside a dump, which may be a folder itself and must stay as it is.
  const isDump = source.tables.some(({ file }) => file === path);
  const stateFolder = flags.state ?? (isDump ? `${resolve(path)}.lodestone-migration` : join(resolve(path), ".lodestone-migration"));
  let progress: Progress | undefined;
  let records = 0;
  try {
    const outcome = await runMigration(client, source, {
      ref,
      stateFolder,
      restart: flags.restart === true,
      batchSize: flags.batch,
      files,
      onStep(sentence) {
        progress?.stop();
        progress = undefined;
        process.stderr.write(`${sentence}\n`);
      },
      onProgress(_table, { byteLength, position, records: done }) {
        progress ??= startProgress(byteLength, position.offset);
        progress.update(position.offset, done);
      },
      onVerified(table, { server, isSame }) {
        progress?.stop();
        progress = undefined;
        records += server.records;
        if (isSame)
          console.log(`${table}: ${grouped(server.records)} records, checksum ${server.sum.slice(0, 12)}, the same as in the source`);
      },
    });
    progress?.stop();
    if (outcome === "interrupted") reportInterrupted(ref);
    else if (outcome === "finished before") console.log(`${ref.database}:${ref.branch} was completed and verified by an earlier run.`);
    else console.log(`${ref.database}:${ref.branch} is there: ${source.tables.length} tables, ${grouped(records)} records, verified.`);
  } finally {
    progress?.stop();
  }
}
