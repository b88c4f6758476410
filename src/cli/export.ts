/**
 * `lodestone export`: writes a table as JSON Lines. The first line holds the columns, so `lodestone import
 * --create` makes the same table anywhere else. Records are written as the server answers them, and are never
 * parsed.
 */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Writable } from "node:stream";
import type { BranchRef, TableSchema } from "../records/schema.ts";
import type { ApiClient } from "./api-client.ts";
import { tableRecords } from "./table-records.ts";

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
