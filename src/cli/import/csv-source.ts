/**
 * CSV (RFC 4180, with \n or \r\n, quoted or not): a header line with the names of the columns, then records. A
 * cell is read by the type of its column (csv-value.ts). In a notNull column an empty cell is the column's default,
 * or the empty text.
 */
import { stat } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { CsvError, type Options, parse } from "csv-parse";
import { quoted } from "../../errors/value-in-words.ts";
import type { JsonObject } from "../../records/requests.ts";
import type { ColumnSchema } from "../../records/schema.ts";
import { type CsvCell, csvValue, isTextType } from "./csv-value.ts";
import { importedName } from "./hosted-columns.ts";
import { MAX_LINE_BYTES } from "./jsonl-source.ts";
import { MAX_FILE_COLUMNS, type Source, SourceError, type SourcePosition, type SourceRow } from "./source.ts";
import { type SourceFiles, utf8Chunks } from "./source-files.ts";

interface CsvRecord {
  readonly info: { readonly bytes: number; readonly lines: number };
  readonly record: CsvCell[];
}

const OPTIONS: Options = {
  info: true,
  record_delimiter: ["\r\n", "\n"],
  skip_empty_lines: true,
  max_record_size: MAX_LINE_BYTES,
  cast: (text, context) => (text === "" && !context.quoting ? null : text),
};

export async function openCsv(file: string, files: SourceFiles): Promise<Source & { readonly header: readonly string[] }> {
  const path = await files.text(file);
  const { size } = await stat(path);
  let header: string[] | undefined;
  let start: SourcePosition = { offset: 0, row: 0, line: 0 };
  for await (const { info, record } of records(path, start, true)) {
    header = record.map((name) => name ?? "");
    start = { offset: info.bytes, row: 0, line: info.lines };
    break;
  }
  if (header === undefined) throw new SourceError("the file", "is empty; expected a header line with the names of the columns");
  const empty = header.indexOf("");
  if (empty !== -1) throw new SourceError("line 1", `column ${empty + 1} has no name`);
  if (header.length > MAX_FILE_COLUMNS) {
    throw new SourceError(
      "line 1",
      `has ${header.length.toLocaleString("en-US")} columns; at most ${MAX_FILE_COLUMNS.toLocaleString("en-US")} are possible`,
    );
  }
  const names = header;
  const double = names.find((name, i) => names.indexOf(name) !== i);
  if (double !== undefined) throw new SourceError("line 1", `the column ${quoted(double)} appears twice`);
  return { header: names, columns: undefined, byteLength: size, start, rows: (from, columns) => rows(path, names, from, columns) };
}

async function* rows(
  path: string,
  header: readonly string[],
  from: SourcePosition,
  tableColumns: readonly ColumnSchema[],
): AsyncGenerator<SourceRow> {
  const names = header.map((name) => importedName(name, header));
  const columns = names.map((name) => tableColumns.find((column) => column.name === name));
  let row = from.row;
  let line = from.line;
  for await (const { info, record } of records(path, from, from.offset === 0)) {
    const place = `line ${line + 1}`;
    row++;
    line = from.line + info.lines;
    if (record.length !== header.length) {
      throw new SourceError(place, `has ${record.length} cells; the header has ${header.length}`);
    }
    const values: JsonObject = {};
    for (const [i, name] of names.entries()) {
      if (name === undefined) continue;
      const value = csvValue(record[i] as CsvCell, columns[i]?.type, name, place);
      if (value !== null || columns[i]?.notNull !== true) values[name] = value;
      else if (columns[i].defaultValue === undefined) values[name] = isTextType(columns[i].type) ? "" : null;
    }
    yield { record: values, place, next: { offset: from.offset + info.bytes, row, line } };
  }
}

async function* records(path: string, from: SourcePosition, bom: boolean): AsyncGenerator<CsvRecord> {
  const parser = parse({ ...OPTIONS, bom });
  // Errors of the file reach the loop below through the parser.
  pipeline(Readable.from(utf8Chunks(path, from.offset), { objectMode: false }), parser, () => {});
  try {
    for await (const entry of parser as AsyncIterable<CsvRecord>) yield entry;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = from.line + Number((error as { lines?: number }).lines ?? 0);
    throw new SourceError(`line ${line}`, error.message.replace(/ at line \d+/, ""));
  }
}
