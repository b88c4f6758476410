/** `lodestone export`: argv to an export, to a file, a folder or stdout. */

import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Writable } from "node:stream";
import type { Command } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { BranchRef, TableSchema } from "../records/schema.ts";
import { type ApiClient, tableRecords } from "./api-client.ts";
import { parseTarget } from "./arguments.ts";
import { INTERRUPTED_EXIT_CODE, onInterrupt } from "./process-end.ts";
import { grouped } from "./progress.ts";

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

/**
 * `lodestone export`: writes a table as JSON Lines. The first line holds the columns, so `lodestone import
 * --create` makes the same table anywhere else. Records are written as the server answers them, and are never
 * parsed.
 */
export interface ExportOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (table: string, records: number) => void;
}

/** Writes one table to a stream. @returns how many records; the stream is left open. */
export async function exportTable(
  client: ApiClient,
  ref: BranchRef,
  table: TableSchema,
  to: Writable,
  options: ExportOptions,
): Promise<number> {
  await writeLine(to, JSON.stringify({ $lodestone: "export", version: 1, table: table.name, columns: table.columns }));
  let records = 0;
  for await (const page of tableRecords(client, ref, table.name)) {
    options.signal.throwIfAborted();
    for (const record of page) await writeLine(to, record);
    records += page.length;
    options.onProgress(table.name, records);
  }
  return records;
}

/** Writes one table to a file, which appears under its name only when it is complete. */
export async function exportTableToFile(
  client: ApiClient,
  ref: BranchRef,
  table: TableSchema,
  file: string,
  options: ExportOptions,
): Promise<number> {
  const partial = `${resolve(file)}.partial`;
  await mkdir(dirname(partial), { recursive: true });
  const stream = createWriteStream(partial);
  await once(stream, "open");
  try {
    const records = await exportTable(client, ref, table, stream, options);
    stream.end();
    await once(stream, "close");
    await rename(partial, file);
    return records;
  } catch (error) {
    stream.destroy();
    await rm(partial, { force: true });
    throw error;
  }
}

/** One file for each table of the branch. */
export async function exportBranch(
  client: ApiClient,
  ref: BranchRef,
  folder: string,
  options: ExportOptions,
): Promise<Map<string, number>> {
  const tables = await client.schema(ref);
  // An import of a branch without tables wants a folder too.
  await mkdir(folder, { recursive: true });
  const counts = new Map<string, number>();
  for (const table of tables) {
    const file = join(folder, `${table.name}.jsonl`);
    counts.set(table.name, await exportTableToFile(client, ref, table, file, options));
  }
  return counts;
}

async function writeLine(to: Writable, line: string): Promise<void> {
  if (!to.write(`${line}\n`)) await once(to, "drain");
}
