/**
 * `lodestone import FOLDER db:branch`: imports what `lodestone export` wrote of a branch, one file per table.
 * The tables are created with all their columns, then filled in the order of their links. Links that form a
 * cycle, or point to their own table, are left out at first and set at the end, when every record exists.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { BranchRef, ColumnSchema } from "../../records/schema.ts";
import { type ApiClient, tablePath } from "../api-client.ts";
import { openJsonl } from "./jsonl-source.ts";
import type { SourceFiles } from "./source-files.ts";

export interface TableFile {
  readonly table: string;
  readonly file: string;
  readonly columns: readonly ColumnSchema[];
}

/**
 * One file to import. `later`: link columns that are left out now and set in a step of their own, or those that
 * such a step sets.
 */
export interface FolderStep {
  readonly table: string;
  readonly file: string;
  readonly kind: "records" | "links";
  readonly later: readonly string[];
}

/**
 * @param mayBeEmpty  without any file a folder is the export of a branch without tables.
 * @throws {LodestoneError} when a file is not an export of a table, or there is none.
 */
export async function readFolder(folder: string, mayBeEmpty: boolean, files: SourceFiles): Promise<TableFile[]> {
  const all = await readdir(folder);
  const names = all.filter((name) => name.endsWith(".jsonl")).sort();
  if (names.length === 0 && !(mayBeEmpty && all.length === 0)) {
    throw new LodestoneError(
      "NOT_FOUND",
      `${folder} has no .jsonl files; expected a folder that "lodestone export {database}:{branch} --out" wrote.`,
    );
  }
  return Promise.all(
    names.map(async (name) => {
      const file = join(folder, name);
      const { columns } = await openJsonl(file, files);
      if (columns === undefined) {
        throw new LodestoneError(
          "INVALID",
          `${file} does not begin with a line of columns, so it is not an export. Import it separately, into a table: lodestone import ${file} {database}:{branch}/{table} --create`,
        );
      }
      return { table: name.slice(0, -".jsonl".length), file, columns };
    }),
  );
}

/** Creates what is missing: tables first, then the links between them. */
export async function prepareTables(client: ApiClient, ref: BranchRef, files: readonly TableFile[], create: boolean): Promise<void> {
  if (create) await client.createBranch(ref);
  const existing = new Map((await client.schema(ref)).map((table) => [table.name, table.columns]));
  const missing = files.filter(({ table }) => !existing.has(table));
  if (missing.length > 0 && !create) {
    const names = missing.map(({ table }) => `"${table}"`).join(", ");
    throw new LodestoneError("NOT_FOUND", `${ref.database}:${ref.branch} has no table ${names}; use --create to create what is missing.`);
  }
  for (const { table, columns } of missing) {
    await client.createTable(
      ref,
      table,
      columns.filter(({ type }) => type !== "link"),
    );
  }
  if (!create) return;
  for (const { table, columns } of files) {
    const there = existing.get(table);
    const added = columns.filter(({ name, type }) =>
      there === undefined ? type === "link" : !there.some((column) => column.name === name),
    );
    for (const column of added) await client.request("POST", `${tablePath(ref, table)}/columns`, column);
  }
}

/**
 * An order in which links find their targets. Where links form cycles: one that leaves the fewest to be set
 * later.
 */
export function planSteps(files: readonly TableFile[]): FolderStep[] {
  const waiting = new Set(files);
  const records: FolderStep[] = [];
  const openLinks = ({ table, columns }: TableFile): string[] =>
    columns
      .filter(({ link }) => link !== undefined && (link.table === table || [...waiting].some((other) => other.table === link.table)))
      .map(({ name }) => name);
  while (waiting.size > 0) {
    const [next] = [...waiting].sort((a, b) => openLinks(a).length - openLinks(b).length) as [TableFile];
    records.push({ table: next.table, file: next.file, kind: "records", later: openLinks(next) });
    waiting.delete(next);
  }
  return [...records, ...records.filter(({ later }) => later.length > 0).map((step): FolderStep => ({ ...step, kind: "links" }))];
}
