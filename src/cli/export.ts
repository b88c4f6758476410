/**
 * `lodestone export`: writes a table as JSON Lines. The first line holds the columns, so `lodestone import
 * --create` makes the same table anywhere else. Pages are read in the order of the ids, so no record is missed
 * or doubled. Records written meanwhile may or may not be included.
 *
 * Records are written as the server answers them, and are never parsed: JavaScript's numbers would lose digits of what
 * `json` and `int` columns hold.
 */

import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Writable } from "node:stream";
import { LodestoneError } from "../errors.ts";
import { elementsOf, membersOf } from "../json-scan.ts";
import type { BranchRef, TableSchema } from "../records/schema.ts";
import { type ApiClient, ApiError, tablePath } from "./api-client.ts";

const PAGE_SIZE = 500;

interface Page {
  /** Of each record its JSON, in one line. */
  readonly records: readonly string[];
  readonly cursor: string;
  readonly more: boolean;
}

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
  let size = PAGE_SIZE;
  for (let after: string | undefined; ; ) {
    const request =
      after === undefined ? { columns: ["*"], sort: { id: "asc" }, page: { size } } : { columns: ["*"], page: { size, after } };
    let page: Page;
    try {
      page = readPage(await client.requestText("POST", `${tablePath(ref, table.name)}/query`, request));
    } catch (error) {
      // Large records: fewer of them at a time.
      if (!(error instanceof ApiError && error.status === 413) || size === 1) throw error;
      size = Math.ceil(size / 8);
      continue;
    }
    size = Math.min(2 * size, PAGE_SIZE);
    for (const record of page.records) await writeLine(to, record);
    records += page.records.length;
    options.onProgress(table.name, records);
    if (!page.more) return records;
    options.signal.throwIfAborted();
    after = page.cursor;
  }
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
  const counts = new Map<string, number>();
  for (const table of await client.schema(ref)) {
    const file = join(folder, `${table.name}.jsonl`);
    counts.set(table.name, await exportTableToFile(client, ref, table, file, options));
  }
  return counts;
}

function readPage(answer: string): Page {
  const members = new Map(membersOf(answer, 0));
  const [records, meta] = [members.get("records"), members.get("meta")];
  if (records === undefined || meta === undefined) throw new LodestoneError("UNAVAILABLE", "The server's answer is no page of records.");
  const { page } = JSON.parse(answer.slice(meta.begin, meta.end)) as { page: { cursor: string; more: boolean } };
  return { records: Array.from(elementsOf(answer, records.begin), ({ begin, end }) => answer.slice(begin, end)), ...page };
}

async function writeLine(to: Writable, line: string): Promise<void> {
  if (!to.write(`${line}\n`)) await once(to, "drain");
}
