/**
 * CSV as the command line imports it: a header line, then records (RFC 4180). Uses the same parser package.
 */
import { type Options, parse } from "csv-parse/browser/esm";
import { MAX_FILE_COLUMNS } from "../../../cli/import/source.ts";
import { type Cell, type FileRow, type FileSource, textPieces } from "./file-source.ts";

interface CsvRecord {
  readonly info: { readonly lines: number };
  readonly record: readonly Cell[];
}

const OPTIONS: Options = {
  bom: true,
  info: true,
  record_delimiter: ["\r\n", "\n"],
  skip_empty_lines: true,
  max_record_size: 20 * 1024 * 1024,
  cast: (text, context) => (text === "" && !context.quoting ? null : text),
};

export async function openCsvFile(file: File): Promise<FileSource> {
  const delimiter = file.name.toLowerCase().endsWith(".tsv") ? "\t" : ",";
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
  return { format: "CSV", header, isText: true, dimension: undefined, bytes: file.size, rows: () => rows(file, delimiter, header) };
}

async function* rows(file: File, delimiter: string, header: readonly string[]): AsyncGenerator<readonly FileRow[]> {
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
  const parser = parse({ ...OPTIONS, delimiter, relax_column_count: true });
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
