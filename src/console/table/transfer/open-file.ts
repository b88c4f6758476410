/** Opens a dropped file: CSV, JSON Lines or npy, by its name. */
import type { ColumnSchema } from "../../state/server-content.ts";
import { openCsvFile } from "./csv-file.ts";
import type { FileSource } from "./file-source.ts";
import { openJsonlFile } from "./jsonl-file.ts";
import { openNpyFile } from "./npy-file.ts";

/** @throws what is wrong with the file, in words. */
export function openFile(file: File): Promise<FileSource> {
  const name = file.name.toLowerCase();
  if (name.endsWith(".npy")) return openNpyFile(file);
  if (/\.(jsonl|ndjson|json)$/.test(name)) return openJsonlFile(file);
  if (/\.(csv|tsv|txt)$/.test(name)) return openCsvFile(file);
  throw new Error(`${file.name} is neither .csv, .jsonl nor .npy.`);
}

/**
 * The initial mapping from the file's columns to the table's: those of the same name, and the one vector
 * column that fits.
 */
export function firstMapping(source: FileSource, columns: readonly ColumnSchema[]): ReadonlyMap<string, string> {
  const names = new Set(["id", ...columns.map(({ name }) => name)]);
  const fitting = columns.find(({ vector }) => vector !== undefined && vector.dimension === source.dimension);
  const targetOf = (name: string): string | undefined => {
    if (source.format === "npy") return name === "vector" ? fitting?.name : "id";
    return names.has(name) ? name : name === "xata_id" ? "id" : undefined;
  };
  return new Map(
    source.header.flatMap((name) => {
      const target = targetOf(name);
      return target === undefined ? [] : [[name, target] as const];
    }),
  );
}
