/** `lodestone export`: argv to an export, to a file, a folder or stdout. */
import { join } from "node:path";
import type { Command } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { ApiClient } from "./api-client.ts";
import { type ExportOptions, exportBranch, exportTable, exportTableToFile } from "./export.ts";
import { INTERRUPTED_EXIT_CODE, onInterrupt } from "./interrupt.ts";
import { grouped } from "./progress.ts";
import { parseTarget } from "./target.ts";

interface ExportFlags {
  url: string;
  apiKey?: string;
  out?: string;
}

const PROGRESS_INTERVAL_MS = 2_000;

export function exportCommand(command: Command, clientOf: (flags: ExportFlags) => ApiClient): Command {
  return command
    .description(
      "Write a table of a running server, or every table of a branch, as JSON Lines. The first line of each file has the columns.",
    )
    .argument("<source>", "{database}:{branch}/{table}, or {database}:{branch} for all of its tables")
    .option("--out <path>", "a file for one table (default: stdout), a folder for a branch")
    .action(async (source: string, flags: ExportFlags) => runCommand(source, flags, clientOf(flags)));
}

async function runCommand(source: string, flags: ExportFlags, client: ApiClient): Promise<void> {
  const { ref, table } = parseTarget(source);
  const interrupt = onInterrupt("Stopping.");
  let lastMs = performance.now();
  const options: ExportOptions = {
    signal: interrupt.signal,
    onProgress: (name, records) => {
      if (performance.now() - lastMs < PROGRESS_INTERVAL_MS) return;
      lastMs = performance.now();
      process.stderr.write(`${name}: ${grouped(records)} records\n`);
    },
  };
  try {
    if (table === undefined) {
      const folder = flags.out ?? raiseMissingFolder(source);
      const counts = await exportBranch(client, ref, folder, options);
      if (counts.size === 0) process.stderr.write(`${source} has no tables; ${folder} stays empty\n`);
      for (const [name, records] of counts) process.stderr.write(`${join(folder, `${name}.jsonl`)}: ${grouped(records)} records\n`);
      return;
    }
    const schema = (await client.schema(ref)).find(({ name }) => name === table);
    if (schema === undefined) throw new LodestoneError("NOT_FOUND", `${ref.database}:${ref.branch} has no table "${table}".`);
    const records =
      flags.out === undefined
        ? await exportTable(client, ref, schema, process.stdout, options)
        : await exportTableToFile(client, ref, schema, flags.out, options);
    process.stderr.write(`${flags.out ?? source}: ${grouped(records)} records\n`);
  } catch (error) {
    if (!interrupt.signal.aborted) throw error;
    process.exitCode = INTERRUPTED_EXIT_CODE;
  } finally {
    interrupt.dispose();
  }
}

function raiseMissingFolder(source: string): never {
  throw new LodestoneError(
    "INVALID",
    `--out: ${source} is a whole branch; name a folder for its tables, or one table as ${source}/{table}.`,
  );
}
