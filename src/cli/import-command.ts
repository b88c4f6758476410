/** `lodestone import`: argv to an import, with progress and Ctrl-C. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { ApiClient } from "./api-client.ts";
import { FORMATS, type Format, type ImportProgress, runImport } from "./import/run-import.ts";
import { INTERRUPTED_EXIT_CODE, onInterrupt } from "./interrupt.ts";
import { grouped, type Progress, startProgress } from "./progress.ts";
import { parseTableTarget } from "./target.ts";

interface ImportFlags {
  url: string;
  apiKey?: string;
  format?: Format;
  create?: boolean;
  vectorColumn: string;
  idColumn?: string;
  idPrefix: string;
  skipColumn: string[];
  batch: number;
  state?: string;
  restart?: boolean;
}

function parseBatch(text: string): number {
  const size = Number(text);
  if (!Number.isInteger(size) || size < 1 || size > 1000) throw new InvalidArgumentError("Expected a whole number from 1 to 1000.");
  return size;
}

export function importCommand(command: Command, clientOf: (flags: ImportFlags) => ApiClient): Command {
  return command
    .description(
      "Load a file into a table of a running server. Files of any size; an interrupted import goes on where it was when it is run again.\n" +
        "A record that has an id replaces the one that is there.",
    )
    .argument(
      "<file>",
      "JSON Lines (one record a line), csv (with a header), npy, fvecs, bvecs, or sql (a plain dump of pg_dump: the table of the target's name)",
    )
    .argument("<target>", "{database}:{branch}/{table}, as in demo:main/colors")
    .addOption(new Option("--format <format>", "of the file").choices(FORMATS).default(undefined, "by the file's name"))
    .option("--create", "make the branch, the table and the columns that are missing")
    .option("--vector-column <name>", "where the vectors of npy, fvecs and bvecs go", "embedding")
    .option(
      "--id-column <name>",
      'the column of the file that gives the ids (default: "id" if there; else the number of the vector, or ids made here)',
    )
    .option("--id-prefix <text>", "put before each id of the file", "")
    .option(
      "--skip-column <name>",
      "leave this column of the file out (repeatable): links to records that are not there yet, say",
      (name: string, previous: string[] = []) => [...previous, name],
      [],
    )
    .addOption(new Option("--batch <size>", "records in one transaction").argParser(parseBatch).default(500))
    .option("--state <file>", "where to note how far it is (default: beside the file)")
    .option("--restart", "begin at the beginning, even if an earlier run was interrupted")
    .action(async (file: string, target: string, flags: ImportFlags) => runCommand(file, target, flags, clientOf(flags)));
}

async function runCommand(file: string, targetText: string, flags: ImportFlags, client: ApiClient): Promise<void> {
  const target = parseTableTarget(targetText);
  const interrupt = onInterrupt("Stopping behind the batches under way; press Ctrl-C again to stop at once.");
  let progress: Progress | undefined;
  const onProgress = ({ byteLength, position, records, resumed }: ImportProgress) => {
    if (progress === undefined && resumed) process.stderr.write(`Going on behind record ${grouped(position.row)}.\n`);
    progress ??= startProgress(byteLength, position.offset);
    progress.update(position.offset, records);
  };
  const startedMs = Date.now();
  try {
    const outcome = await runImport(client, {
      file,
      ...target,
      ...(flags.format === undefined ? {} : { format: flags.format }),
      create: flags.create === true,
      vectorColumn: flags.vectorColumn,
      ...(flags.idColumn === undefined ? {} : { idColumn: flags.idColumn }),
      idPrefix: flags.idPrefix,
      skipColumns: flags.skipColumn,
      batchSize: flags.batch,
      ...(flags.state === undefined ? {} : { statePath: flags.state }),
      restart: flags.restart === true,
      signal: interrupt.signal,
      onProgress,
    });
    progress?.stop();
    const seconds = (Date.now() - startedMs) / 1000;
    const rate = grouped(Math.round(outcome.records / Math.max(seconds, 0.001)));
    if (outcome.finished) {
      console.log(`${grouped(outcome.records)} records imported into ${targetText} in ${seconds.toFixed(1)} s (${rate}/s).`);
    } else {
      console.log(
        `${grouped(outcome.records)} records imported. Interrupted: run the same command again to go on (${outcome.journalPath}).`,
      );
      process.exitCode = INTERRUPTED_EXIT_CODE;
    }
  } finally {
    progress?.stop();
    interrupt.dispose();
  }
}
