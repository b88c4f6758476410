/** `lodestone import`: argv to an import of a file or of a folder, with progress and Ctrl-C. */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Command, Option } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";
import type { BranchRef } from "../records/schema.ts";
import type { ApiClient } from "./api-client.ts";
import { batchOption, encodingOption, parseTableTarget, parseTarget } from "./arguments.ts";
import { planSteps, prepareTables, readFolder } from "./import/import-folder.ts";
import { FolderJournal } from "./import/import-state.ts";
import { FORMATS, type Format, type ImportOptions, type ImportOutcome, type ImportProgress, runImport } from "./import/run-import.ts";
import { SourceFiles } from "./import/source-files.ts";
import type { Encoding } from "./import/text-encoding.ts";
import { INTERRUPTED_EXIT_CODE, onInterrupt } from "./process-end.ts";
import { grouped, type Progress, startProgress } from "./progress.ts";

interface ImportFlags {
  url: string;
  apiKey?: string;
  format?: Format;
  create?: boolean;
  vectorColumn: string;
  idColumn?: string;
  idPrefix: string;
  skipColumn: string[];
  encoding?: Encoding;
  batch: number;
  state?: string;
  restart?: boolean;
}

export function importCommand(command: Command, clientOf: (flags: ImportFlags) => ApiClient): Command {
  return command
    .description(
      "Load a file into a table of a running server, or a folder written by `lodestone export` into a branch. Files can have any size. An interrupted import continues where it stopped when you run it again.\n" +
        "A record with an id replaces the existing one.",
    )
    .argument(
      "<file>",
      "JSON Lines (one record per line), csv (with a header), npy, fvecs, bvecs, sql (a pg_dump dump in any format: its table with the target's name), or a folder of exported tables",
    )
    .argument("<target>", "{database}:{branch}/{table}, as in demo:main/colors; {database}:{branch} for a folder")
    .addOption(new Option("--format <format>", "format of the file (default: by its name)").choices(FORMATS))
    .option("--create", "create the branch, the table and columns if they are missing")
    .option("--vector-column <name>", "where the vectors of npy, fvecs and bvecs go", "embedding")
    .option(
      "--id-column <name>",
      'the column of the file that has the ids (default: "id" if there is one; otherwise the number of the vector, or generated ids)',
    )
    .option("--id-prefix <text>", "a prefix for each id of the file", "")
    .option(
      "--skip-column <name>",
      "leave out this column of the file (repeatable), for example links to records that do not exist yet",
      (name: string, previous: string[] = []) => [...previous, name],
      [],
    )
    .addOption(encodingOption())
    .addOption(batchOption())
    .option("--state <file>", "the file that records the progress (default: beside the file)")
    .option("--restart", "start from the beginning, even if an earlier run was interrupted")
    .action(async (file: string, target: string, flags: ImportFlags) => {
      const client = clientOf(flags);
      const isFolder = await stat(file).then(
        (found) => found.isDirectory(),
        () => false,
      );
      const interrupt = onInterrupt("Finishing the batches in flight; press Ctrl-C again to stop at once.");
      const files = new SourceFiles(flags.encoding, interrupt.signal);
      try {
        if (isFolder) await importFolder(client, file, target, flags, files);
        else await importFile(client, { file, ...parseTableTarget(target) }, target, flags, files);
      } catch (error) {
        if (error !== interrupt.signal.reason) throw error;
        console.log("Interrupted before the first record: nothing was imported.");
        process.exitCode = INTERRUPTED_EXIT_CODE;
      } finally {
        interrupt.dispose();
        files.close();
      }
    });
}

type What = Pick<ImportOptions, "file" | "ref" | "table"> &
  Partial<Pick<ImportOptions, "skipColumns" | "updateOnly" | "statePath" | "mayBeEmpty">>;

async function importFile(client: ApiClient, what: What, name: string, flags: ImportFlags, files: SourceFiles): Promise<ImportOutcome> {
  let progress: Progress | undefined;
  const onProgress = ({ byteLength, position, records, resumed }: ImportProgress) => {
    if (progress === undefined && resumed) process.stderr.write(`Continuing after record ${grouped(position.row)}.\n`);
    progress ??= startProgress(byteLength, position.offset);
    progress.update(position.offset, records);
  };
  const startedMs = performance.now();
  try {
    const outcome = await runImport(client, {
      ...(flags.format === undefined ? {} : { format: flags.format }),
      create: flags.create === true,
      vectorColumn: flags.vectorColumn,
      ...(flags.idColumn === undefined ? {} : { idColumn: flags.idColumn }),
      idPrefix: flags.idPrefix,
      skipColumns: flags.skipColumn,
      batchSize: flags.batch,
      ...(flags.state === undefined ? {} : { statePath: flags.state }),
      restart: flags.restart === true,
      files,
      onProgress,
      ...what,
    });
    progress?.stop();
    const seconds = (performance.now() - startedMs) / 1000;
    const rate = grouped(Math.round(outcome.records / Math.max(seconds, 0.001)));
    if (outcome.finished) {
      const done = what.updateOnly === undefined ? "records imported into" : "records linked in";
      console.log(`${grouped(outcome.records)} ${done} ${name} in ${seconds.toFixed(1)} s (${rate}/s).`);
    } else {
      console.log(
        `${grouped(outcome.records)} records imported. Interrupted: run the same command again to continue (${outcome.journalPath}).`,
      );
      process.exitCode = INTERRUPTED_EXIT_CODE;
    }
    return outcome;
  } finally {
    progress?.stop();
  }
}

async function importFolder(client: ApiClient, folder: string, targetText: string, flags: ImportFlags, files: SourceFiles): Promise<void> {
  const ref = branchTarget(targetText);
  for (const [flag, isGiven] of [
    ["--format", flags.format !== undefined],
    ["--state", flags.state !== undefined],
    ["--id-column", flags.idColumn !== undefined],
    ["--id-prefix", flags.idPrefix !== ""],
    ["--skip-column", flags.skipColumn.length > 0],
    ["--encoding", flags.encoding !== undefined],
  ] as const) {
    if (isGiven)
      throw new LodestoneError(
        "INVALID",
        `${flag} is for a single file; ${folder} is a folder, whose files contain this information themselves.`,
      );
  }
  const create = flags.create === true;
  const tables = await readFolder(folder, create, files);
  await prepareTables(client, ref, tables, create);
  if (tables.length === 0) console.log(`${folder} is empty, the export of a branch without tables: created ${targetText}.`);
  const journal = await FolderJournal.open(folder, `${client.url}/${targetText}`, flags.restart === true);
  for (const { table, file, kind, later } of planSteps(tables)) {
    if (await journal.has(kind, file)) continue;
    const what: What =
      kind === "records"
        ? { file, ref, table, skipColumns: later, mayBeEmpty: true }
        : // A journal of its own, so that an import interrupted here continues here.
          { file, ref, table, updateOnly: later, mayBeEmpty: true, statePath: join(resolve(folder), `.lodestone-links-${table}.json`) };
    const { finished } = await importFile(client, what, `${targetText}/${table}`, { ...flags, create: false }, files);
    if (!finished) return;
    await journal.add(kind, file);
  }
  await journal.remove();
}

function branchTarget(text: string): BranchRef {
  const { ref, table } = parseTarget(text);
  if (table === undefined) return ref;
  throw new LodestoneError("INVALID", `A folder goes into a branch, {database}:{branch}; got ${quoted(text)}, which names a table.`);
}
