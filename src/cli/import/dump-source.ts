/**
 * The records of one table of a `pg_dump` dump: the lines up to `\.`, in COPY's text format (PostgreSQL
 * documentation, "COPY", File Formats). A text is read by the type of its column.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { quoted } from "../../errors/value-in-words.ts";
import { parseItems, toRfc3339 } from "../../records/postgres-text.ts";
import type { JsonObject, JsonValue } from "../../records/requests.ts";
import type { ColumnSchema, ColumnType } from "../../records/schema.ts";
import { csvValue } from "./csv-value.ts";
import { type DumpFile, type DumpTable, openDumpFile } from "./dump/dump-file.ts";
import { importedName } from "./hosted-columns.ts";
import { type Line, lines } from "./jsonl-source.ts";
import { type Source, SourceError, type SourcePosition, type SourceRow } from "./source.ts";
import type { SourceFiles } from "./source-files.ts";

export async function openDump(path: string, table: string, files: SourceFiles): Promise<Source> {
  const dump = await openDumpFile(path, files);
  const found = dump.tables.get(table);
  if (found === undefined) throw notFound(dump, table);
  return dumpTableSource(dump, found);
}

export function dumpTableSource(dump: DumpFile, table: DumpTable): Source {
  return { columns: undefined, byteLength: dump.byteLength, start: table.start, rows: (from, columns) => rows(table, from, columns) };
}

function notFound(dump: DumpFile, table: string): LodestoneError {
  if (dump.tables.size === 0) {
    const remedy = dump.hasInserts
      ? "it has INSERT statements; run pg_dump without --inserts, so that the dump has COPY"
      : "was it made by pg_dump, and not with --schema-only?";
    return new LodestoneError("INVALID", `The dump has no records of any table: ${remedy}.`);
  }
  return new LodestoneError(
    "NOT_FOUND",
    `The dump has no records of a table "${table}"; it has those of ${[...dump.tables.keys()].join(", ")}.`,
  );
}

async function* rows(
  { path, header, end }: DumpTable,
  from: SourcePosition,
  tableColumns: readonly ColumnSchema[],
): AsyncGenerator<SourceRow> {
  const names = header.map((name) => importedName(name, header));
  const types = names.map((name) => tableColumns.find((column) => column.name === name)?.type);
  let row = from.row;
  for await (const line of lines(path, from, end)) {
    if (line.text === "\\.") return;
    row++;
    const place = `line ${line.number}`;
    const cells = line.text.replace(/\r$/, "").split("\t");
    if (cells.length !== header.length) throw new SourceError(place, `has ${cells.length} values; the table has ${header.length} columns`);
    const record: JsonObject = {};
    for (const [i, name] of names.entries()) {
      if (name !== undefined) record[name] = convert(decodeCell(cells[i] as string), types[i], name, place);
    }
    yield { record, place, next: positionBehind(line, row) };
  }
  throw new SourceError("the file", "ends in the middle of the table; it is cut off");
}

const positionBehind = ({ end, number }: Line, row: number): SourcePosition => ({ offset: end, row, line: number });

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

/** `\N` is null. A backslash escapes the character after it, or gives it a special meaning. */
export function decodeCell(cell: string): string | null {
  if (cell === "\\N") return null;
  if (!cell.includes("\\")) return cell;
  // Octal and hexadecimal stand for bytes; pg_dump writes neither.
  return cell.replace(/\\(.)/gs, (_, character: string) => ESCAPES[character] ?? character);
}

/** What a dump has is exact; a cell of CSV may be less so (csv-value.ts). An empty text is a text, whatever its type. */
function convert(cell: string | null, type: ColumnType | undefined, name: string, place: string): JsonValue {
  if (cell === null || cell === "") return cell;
  const refuse = (expected: string): never => {
    throw new SourceError(place, `${name}: expected ${expected}, got ${quoted(cell)}`);
  };
  if (type === "bool" && cell !== "t" && cell !== "f") return refuse("t or f");
  if (type === "datetime") return toRfc3339(cell) ?? refuse("a timestamp or a date");
  if (type === "multiple") return parseItems(cell) ?? refuse("an array of texts as in {a,b}");
  return csvValue(cell, type, name, place);
}
