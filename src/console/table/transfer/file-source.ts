/** Opens files to import, and reads their rows: CSV, JSON Lines, npy or Parquet. */

import { type Options, parse } from "csv-parse/browser/esm";
import type { CsvCell } from "../../../cli/import/csv-value.ts";
import { type NpyLayout, readNpyLayout } from "../../../cli/import/npy.ts";
import { MAX_FILE_COLUMNS } from "../../../cli/import/source.ts";
import type { ColumnSchema } from "../../state/server-content.ts";

export interface FileRow {
  /** By the file's columns. Text if the format has nothing else (`isText`). */
  readonly values: ReadonlyMap<string, unknown>;
  /** For messages: "line 17". */
  readonly place: string;
  /** Bytes of the file, up to the end of this row or a little beyond it. */
  readonly readBytes: number;
}

/**
 * The interface of the readers of all formats for a dropped file. It is read piece by piece, so that a large
 * one is never held whole.
 */
export interface FileSource {
  readonly format: "CSV" | "JSON Lines" | "npy" | "Parquet";
  /** The file's columns, as far as its beginning shows them. */
  readonly header: readonly string[];
  /** Values are text cells, which get their types from the table's columns. */
  readonly isText: boolean;
  /** The dimension of its vectors, if the file states it. */
  readonly dimension: number | undefined;
  readonly bytes: number;
  /** From the beginning. Yields lists, so that rows are not awaited one by one. */
  rows(): AsyncGenerator<readonly FileRow[]>;
}

export type Cell = CsvCell;

/** Takes some milliseconds to parse. */
const PIECE_BYTES = 256 * 1024;

/**
 * UTF-8; UTF-16 if a mark says so; windows-1252, in which spreadsheets save, if the first piece is not UTF-8.
 */
export async function encodingOf(file: File): Promise<"utf-8" | "utf-16le" | "utf-16be" | "windows-1252"> {
  const bytes = await bytesOf(file, 0, Math.min(PIECE_BYTES, file.size));
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: bytes.length < file.size });
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}

/**
 * @yields the file's text in pieces, and the byte offset at which each ends.
 * @throws when it is not in the encoding that its beginning has.
 */
async function* textPieces(file: File): AsyncGenerator<{ text: string; end: number }> {
  const encoding = await encodingOf(file);
  const decoder = new TextDecoder(encoding, { fatal: true });
  for (let begin = 0; begin < file.size; begin += PIECE_BYTES) {
    const end = Math.min(file.size, begin + PIECE_BYTES);
    const bytes = await file.slice(begin, end).arrayBuffer();
    try {
      yield { text: decoder.decode(bytes, { stream: end < file.size }), end };
    } catch {
      throw new Error(`The file is not ${encoding.toUpperCase()}, somewhere from byte ${begin.toLocaleString("en")} on.`);
    }
  }
}

/** @throws what is wrong with the file, in words. */
export async function openFile(file: File): Promise<FileSource> {
  const name = file.name.toLowerCase();
  if (name.endsWith(".parquet")) {
    const { openParquetFile } = await import("./parquet-source.ts");
    return openParquetFile(file);
  }
  if (name.endsWith(".npy")) return openNpyFile(file);
  if (/\.(jsonl|ndjson|json)$/.test(name)) return openJsonlFile(file);
  if (/\.(csv|tsv|txt)$/.test(name)) return openCsvFile(file);
  throw new Error(`${file.name} is none of .csv, .jsonl, .npy and .parquet.`);
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

interface CsvRecord {
  readonly info: { readonly lines: number };
  readonly record: readonly Cell[];
}

const CSV_OPTIONS: Options = {
  bom: true,
  info: true,
  record_delimiter: ["\r\n", "\n"],
  skip_empty_lines: true,
  max_record_size: 20 * 1024 * 1024,
  cast: (text, context) => (text === "" && !context.quoting ? null : text),
};

/**
 * CSV as the command line imports it: a header line, then records (RFC 4180), separated by commas, semicolons or tabs.
 * Uses the same parser package.
 */
async function openCsvFile(file: File): Promise<FileSource> {
  const delimiter = file.name.toLowerCase().endsWith(".tsv") ? "\t" : await delimiterOf(file);
  const first = file.size === 0 ? undefined : await records(file, delimiter).next();
  const header = first === undefined || first.done === true ? undefined : first.value.records[0]?.record.map((name) => name ?? "");
  if (header === undefined) throw new Error("The file is empty; expected a header line with the names of the columns.");
  const empty = header.indexOf("");
  if (empty !== -1) throw new Error(`line 1: column ${empty + 1} has no name`);
  if (header.length > MAX_FILE_COLUMNS) {
    throw new Error(
      `line 1: has ${header.length.toLocaleString("en")} columns; at most ${MAX_FILE_COLUMNS.toLocaleString("en")} are possible`,
    );
  }
  const double = header.find((name, i) => header.indexOf(name) !== i);
  if (double !== undefined) throw new Error(`line 1: the column ${JSON.stringify(double)} appears twice`);
  return { format: "CSV", header, isText: true, dimension: undefined, bytes: file.size, rows: () => csvRows(file, delimiter, header) };
}

/** What separates the names of the header most often, outside of quotes: spreadsheets write semicolons where the comma is decimal. */
async function delimiterOf(file: File): Promise<string> {
  const { value } = await textPieces(file).next();
  const [header = ""] = (value?.text ?? "").replace(/"[^"]*"/g, "").split("\n", 1);
  const count = (delimiter: string): number => header.split(delimiter).length;
  return [",", ";", "\t"].reduce((best, other) => (count(other) > count(best) ? other : best));
}

async function* csvRows(file: File, delimiter: string, header: readonly string[]): AsyncGenerator<readonly FileRow[]> {
  let isHeader = true;
  let line = 1;
  for await (const { records: some, end } of records(file, delimiter)) {
    const found: FileRow[] = [];
    for (const { info, record } of some) {
      const place = `line ${line}`;
      line = info.lines + 1;
      if (isHeader) {
        isHeader = false;
        continue;
      }
      if (record.length !== header.length) throw new Error(`${place}: has ${record.length} cells; the header has ${header.length}`);
      found.push({ place, readBytes: end, values: new Map(header.map((name, i) => [name, record[i]])) });
    }
    yield found;
  }
}

/** @yields records as the pieces of the file arrive. */
async function* records(file: File, delimiter: string): AsyncGenerator<{ records: readonly CsvRecord[]; end: number }> {
  const parser = parse({ ...CSV_OPTIONS, delimiter, relax_column_count: true });
  let found: CsvRecord[] = [];
  let fault: Error | undefined;
  const ended = new Promise<void>((resolve) => {
    parser.on("end", resolve);
    parser.on("error", (error: Error) => {
      fault = error;
      resolve();
    });
  });
  parser.on("readable", () => {
    for (let record = parser.read(); record !== null; record = parser.read()) found.push(record as CsvRecord);
  });
  const take = (): readonly CsvRecord[] => {
    if (fault !== undefined) throw new Error(fault.message);
    const taken = found;
    found = [];
    return taken;
  };
  for await (const { text, end } of textPieces(file)) {
    await Promise.race([ended, new Promise<void>((resolve) => parser.write(text, () => resolve()))]);
    const taken = take();
    if (taken.length > 0) yield { records: taken, end };
  }
  parser.end();
  await ended;
  yield { records: take(), end: file.size };
}

/** Number of rows from which the columns are collected. */
const HEADER_ROWS = 100;

/**
 * JSON Lines: one record per line. If the first line is that of an export of the command line, which lists
 * the columns, it is skipped.
 */
async function openJsonlFile(file: File): Promise<FileSource> {
  const names = new Set<string>();
  let seen = 0;
  for await (const found of jsonlRows(file)) {
    for (const { values } of found.slice(0, HEADER_ROWS - seen)) for (const name of values.keys()) names.add(name);
    seen += found.length;
    if (seen >= HEADER_ROWS) break;
  }
  if (seen === 0) throw new Error("The file has no records.");
  return { format: "JSON Lines", header: [...names], isText: false, dimension: undefined, bytes: file.size, rows: () => jsonlRows(file) };
}

async function* jsonlRows(file: File): AsyncGenerator<readonly FileRow[]> {
  let rest = "";
  let line = 0;
  const parsed = (text: string, end: number): FileRow[] => {
    line++;
    if (text.trim() === "") return [];
    const record = recordOf(text, line);
    return record === undefined ? [] : [{ place: `line ${line}`, readBytes: end, values: new Map(Object.entries(record)) }];
  };
  for await (const { text, end } of textPieces(file)) {
    const lines = (rest + text.replace(/^\uFEFF/, "")).split("\n");
    rest = lines.pop() as string;
    yield lines.flatMap((one) => parsed(one, end));
  }
  yield parsed(rest, file.size);
}

/** @returns undefined for the first line of an export. */
function recordOf(text: string, line: number): object | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`line ${line}: not valid JSON: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`line ${line}: expected a JSON object`);
  return line === 1 && "$lodestone" in value ? undefined : value;
}

const NPY_PIECE_BYTES = 1 << 20;

/** Vectors saved by NumPy: the rows of a two-dimensional array, with their row numbers. */
async function openNpyFile(file: File): Promise<FileSource> {
  const layout = await readNpyLayout(file.size, (begin, length) => bytesOf(file, begin, length));
  const { dimension } = layout;
  return { format: "npy", header: ["row", "vector"], isText: false, dimension, bytes: file.size, rows: () => npyRows(file, layout) };
}

async function* npyRows(file: File, layout: NpyLayout): AsyncGenerator<readonly FileRow[]> {
  const { headerBytes, strideBytes, count } = layout;
  const pieceRows = Math.max(1, Math.floor(NPY_PIECE_BYTES / strideBytes));
  for (let from = 0; from < count; from += pieceRows) {
    const begin = headerBytes + from * strideBytes;
    const some = Math.min(pieceRows, count - from);
    const bytes = await bytesOf(file, begin, some * strideBytes);
    yield Array.from({ length: some }, (_, i) => ({
      place: `vector ${from + i}`,
      readBytes: begin + (i + 1) * strideBytes,
      values: new Map<string, unknown>([
        ["row", String(from + i)],
        ["vector", layout.decode(bytes, i * strideBytes)],
      ]),
    }));
  }
}

async function bytesOf(file: File, begin: number, length: number): Promise<Uint8Array> {
  return new Uint8Array(await file.slice(begin, begin + length).arrayBuffer());
}
