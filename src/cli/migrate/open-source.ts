/**
 * Finds out what a path holds (a dump, or a folder of CSV or JSON Lines files with a schema) and reads from it
 * what a migration needs: the tables with their columns as they will be here, the records of each, and what is left
 * out and why.
 */
import { readdir, stat } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { isUnderscored } from "../../filter/system-columns.ts";
import type { ColumnSchema } from "../../records/schema.ts";
import { openCsv } from "../import/csv-source.ts";
import { openDumpFile } from "../import/dump/dump-file.ts";
import { dumpTableSource } from "../import/dump-source.ts";
import { importedName } from "../import/hosted-columns.ts";
import { openJsonl } from "../import/jsonl-source.ts";
import type { Source } from "../import/source.ts";
import type { SourceFiles } from "../import/source-files.ts";
import type { Encoding } from "../import/text-encoding.ts";
import { readDumpSchema } from "./dump-schema.ts";
import { readSchemaFile, type SchemaFile } from "./schema-file.ts";

export interface MigrationTable {
  readonly name: string;
  readonly columns: readonly ColumnSchema[];
  /**
   * The file with its records, for messages and for noticing that it has changed; undefined: the schema has the
   * table, but no file has its records.
   */
  readonly file: string | undefined;
  /** Columns of the file that are not migrated. */
  readonly skipColumns: readonly string[];
  readonly open: () => Promise<Source>;
}

export interface MigrationSource {
  readonly tables: readonly MigrationTable[];
  /** Sentences. */
  readonly leftOut: readonly string[];
  /** As it was asked for. */
  readonly encoding: Encoding | undefined;
  /** Whether the source calls its metadata xata_id and so on. */
  readonly isUnderscored: boolean;
}

const SCHEMA_NAMES = ["schema.json", "xata.ts", "xata.js", "xata.mjs"];
const RECORD_FILES = new Set([".csv", ".jsonl", ".ndjson"]);
const DUMPS = new Set([".sql", ".tar", ".dump", ".backup", ".pgdump"]);

/**
 * @param schemaPath  the schema's file; default: schema.json or xata.ts in the folder, or what a dump and
 *   exported files say themselves.
 */
export async function openMigrationSource(path: string, schemaPath: string | undefined, files: SourceFiles): Promise<MigrationSource> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw new LodestoneError("NOT_FOUND", `There is no ${path}.`);
  if (!found.isDirectory()) {
    if (RECORD_FILES.has(extname(path))) {
      throw new LodestoneError(
        "INVALID",
        `${path} is one table. Give its folder, or import the table alone: lodestone import ${path} {database}:{branch}/{table}`,
      );
    }
    return fromDump(path, schemaPath, files);
  }
  const names = (await readdir(path)).sort();
  if (names.includes("toc.dat") && !names.includes("restore.sql")) return fromDump(path, schemaPath, files);
  const recordFiles = names.filter((name) => RECORD_FILES.has(extname(name)));
  if (recordFiles.length > 0) return fromFolder({ folder: path, names, recordFiles }, schemaPath, files);
  const dumps = names.filter((name) => DUMPS.has(extname(name)));
  if (dumps.length === 1) return fromDump(join(path, dumps[0] as string), schemaPath, files);
  throw new LodestoneError(
    "NOT_FOUND",
    `${path} has no .csv and no .jsonl files, and ${dumps.length === 0 ? "no dump" : "several dumps; name one of them"}.`,
  );
}

async function fromDump(path: string, schemaPath: string | undefined, files: SourceFiles): Promise<MigrationSource> {
  const dump = await openDumpFile(path, files);
  const schema = schemaPath === undefined ? await readDumpSchema(dump.statements) : await readSchemaFile(schemaPath);
  if (dump.tables.size === 0) {
    const reason = dump.hasInserts
      ? "its records are INSERT statements; run pg_dump without --inserts"
      : "it was not made by pg_dump, or was made with --schema-only";
    throw new LodestoneError("INVALID", `${path} has no records of any table: ${reason}.`);
  }
  if (schema.tables.length === 0) {
    throw new LodestoneError(
      "INVALID",
      `${path} has records, but does not say what their columns are (a dump with --data-only?). Name the schema's file with --schema.`,
    );
  }
  const known = new Set(schema.tables.map(({ name }) => name));
  const orphans = [...dump.tables.keys()].filter((name) => !known.has(name));
  const tables = schema.tables.map(({ name, columns }): MigrationTable => {
    const records = dump.tables.get(name);
    return {
      name,
      columns,
      file: records === undefined ? undefined : path,
      skipColumns: schema.skipped.get(name) ?? [],
      open: async () => dumpTableSource(dump, records as NonNullable<typeof records>),
    };
  });
  return {
    tables,
    leftOut: [...schema.leftOut, ...orphans.map((name) => `Table ${name}: the schema does not have it.`)],
    encoding: files.encoding,
    isUnderscored: schema.isUnderscored,
  };
}

interface Folder {
  readonly folder: string;
  readonly names: readonly string[];
  /** Those of the names that have records. */
  readonly recordFiles: readonly string[];
}

async function fromFolder(
  { folder, names, recordFiles }: Folder,
  schemaPath: string | undefined,
  files: SourceFiles,
): Promise<MigrationSource> {
  const schemaName = schemaPath ?? SCHEMA_NAMES.filter((name) => names.includes(name)).map((name) => join(folder, name))[0];
  const schema = schemaName === undefined ? await schemaOfExports(folder, recordFiles, files) : await readSchemaFile(schemaName);
  const leftOut = [...schema.leftOut];
  const byTable = new Map<string, string>();
  for (const name of recordFiles) {
    const table = basename(name, extname(name));
    if (byTable.has(table)) throw new LodestoneError("INVALID", `${folder} has two files for the table ${table}; keep only one of them.`);
    byTable.set(table, join(folder, name));
    if (!schema.tables.some((known) => known.name === table)) leftOut.push(`${name}: the schema has no table ${table}.`);
  }
  const tables = await Promise.all(
    schema.tables.map(async ({ name, columns }): Promise<MigrationTable> => {
      const file = byTable.get(name);
      const open = () => openRecords(file as string, files);
      if (file === undefined) return { name, columns, file, skipColumns: [], open };
      const skipped = schema.skipped.get(name) ?? [];
      const known = new Set(["id", ...columns.map((column) => column.name), ...skipped]);
      const unknown = (await headerOf(file, files)).filter((column) => !known.has(column));
      leftOut.push(...unknown.map((column) => `${name}.${column}: the schema does not have it.`));
      return { name, columns, file, skipColumns: [...skipped, ...unknown], open };
    }),
  );
  for (const { name, file } of tables) if (file === undefined) leftOut.push(`Table ${name}: no file has its records; it is created empty.`);
  return { tables, leftOut, encoding: files.encoding, isUnderscored: schema.isUnderscored };
}

/** What `lodestone export` wrote says its columns itself. */
async function schemaOfExports(folder: string, names: readonly string[], files: SourceFiles): Promise<SchemaFile> {
  const tables = await Promise.all(
    names.map(async (name) => {
      const columns = extname(name) === ".csv" ? undefined : (await openJsonl(join(folder, name), files)).columns;
      if (columns === undefined) {
        throw new LodestoneError(
          "INVALID",
          `${folder} has no schema: put the file that the retired service's code generator wrote (xata.ts) into it, or its schema.json, or name it with --schema.`,
        );
      }
      return { name: basename(name, extname(name)), columns };
    }),
  );
  return {
    tables: tables.map(({ name, columns }) => ({ name, columns: columns.filter((column) => !isUnderscored(column.name)) })),
    skipped: new Map(),
    leftOut: [],
    isUnderscored: tables.some(({ columns }) => columns.some((column) => isUnderscored(column.name))),
  };
}

function openRecords(file: string, files: SourceFiles): Promise<Source> {
  return extname(file) === ".csv" ? openCsv(file, files) : openJsonl(file, files);
}

/** By the names under which they are imported; of JSON Lines nothing is known before they are read. */
async function headerOf(file: string, files: SourceFiles): Promise<string[]> {
  if (extname(file) !== ".csv") return [];
  const { header } = await openCsv(file, files);
  return header.map((name) => importedName(name, header)).filter((name) => name !== undefined);
}
