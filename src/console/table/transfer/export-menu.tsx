/**
 * Exports what the filter selects as a file, read page by page and assembled by the browser; shows the progress, and
 * can be stopped.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { MAX_PAGE_SIZE } from "../../../records/request-limits.ts";
import { apiBase, messageOf, type Place, tablePath } from "../../api/client.ts";
import { countVectors } from "../../map/vector-map.ts";
import { vectorBlocks } from "../../map/vector-stream.ts";
import { Menu } from "../../parts/menu.tsx";
import { Fault } from "../../parts/notice.tsx";
import { sizeInWords } from "../../parts/numbers.ts";
import { csvCell, saveFile, spreadsheetCell } from "../../parts/save-file.ts";
import { key } from "../../state/page-session.ts";
import type { ColumnSchema, TableSchema } from "../../state/server-content.ts";
import { linkId, textOf } from "../cell-text.ts";
import { type PageStart, pageRowsFor, queryPage, type RecordQuestion, type TableRecord } from "../record-pages.ts";

interface ExportMenuProps {
  place: Place;
  table: TableSchema;
  question: RecordQuestion;
}

interface Format {
  readonly name: string;
  readonly file: string;
  readonly make: (order: ExportOrder) => Promise<Blob>;
}

/** An export that waits for permission to continue. */
interface LargeFile {
  readonly size: FileSize;
  readonly agree: () => void;
}

const sizeSaid = ({ bytes, isWhole }: FileSize): string =>
  `The file is held in memory until it is saved: ${sizeInWords(bytes)}${isWhole ? "" : " so far"}.`;

export function ExportMenu({ place, table, question }: ExportMenuProps): JSX.Element {
  const [progress, setProgress] = useState<number | undefined>(undefined);
  const [large, setLarge] = useState<LargeFile | undefined>(undefined);
  const [fault, setFault] = useState("");
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function run({ file, make }: Format): Promise<void> {
    const controller = new AbortController();
    running.current = controller;
    setFault("");
    setProgress(0);
    const { signal } = controller;
    const onLarge = (size: FileSize): Promise<void> =>
      new Promise((resolve, reject) => {
        setLarge({ size, agree: resolve });
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    try {
      saveFile(await make({ place, table, question, signal, onProgress: setProgress, onLarge }), file);
    } catch (error) {
      if (!signal.aborted) setFault(messageOf(error));
    }
    setLarge(undefined);
    setProgress(undefined);
  }

  const formats: readonly Format[] = [
    { name: "JSON Lines", file: `${table.name}.jsonl`, make: exportJsonLines },
    { name: "CSV", file: `${table.name}.csv`, make: exportCsv },
    { name: "CSV for spreadsheets", file: `${table.name}.spreadsheet.csv`, make: exportSpreadsheetCsv },
    ...table.columns
      .filter(({ type }) => type === "vector")
      .map((column) => ({
        name: `${column.name} as npy`,
        file: `${table.name}.${column.name}.npy`,
        make: (order: ExportOrder) => exportNpy(order, column),
      })),
  ];
  return (
    <Menu label="Export">
      {progress === undefined ? (
        formats.map((format) => (
          <button key={format.file} type="button" onClick={() => void run(format)}>
            {format.name}
          </button>
        ))
      ) : (
        <>
          <span role="status">{large === undefined ? `${progress.toLocaleString("en")} records …` : sizeSaid(large.size)}</span>
          {large !== undefined && (
            <button
              type="button"
              class="primary"
              onClick={() => {
                setLarge(undefined);
                large.agree();
              }}
            >
              Continue
            </button>
          )}
          <button type="button" onClick={() => running.current?.abort()}>
            Stop
          </button>
        </>
      )}
      {fault !== "" && <Fault>{fault}</Fault>}
    </Menu>
  );
}

interface ExportOrder {
  readonly place: Place;
  readonly table: TableSchema;
  readonly question: RecordQuestion;
  readonly signal: AbortSignal;
  readonly onProgress: (records: number) => void;
  /** Asked before the file takes more than it was allowed to. @throws the signal's reason, if the export must not continue. */
  readonly onLarge: (size: FileSize) => Promise<void>;
}

interface FileSize {
  readonly bytes: number;
  /** Whether this is the final size of the file, or only its size so far. */
  readonly isWhole: boolean;
}

/** How large a file the browser holds without a question. Each yes doubles it. */
const UNASKED_BYTES = 64 * 1024 * 1024;

/** A file being written: pieces that the browser can move out of the page's memory. */
class GrowingFile {
  readonly #onLarge: ExportOrder["onLarge"];
  readonly #pieces: Blob[] = [];
  #bytes = 0;
  #allowedBytes = UNASKED_BYTES;

  constructor({ onLarge }: ExportOrder) {
    this.#onLarge = onLarge;
  }

  /** Asks at once, so that nothing is read while the user decides. */
  async reserve(bytes: number): Promise<void> {
    if (bytes > this.#allowedBytes) await this.#onLarge({ bytes, isWhole: true });
    this.#allowedBytes = Math.max(this.#allowedBytes, bytes);
  }

  async add(piece: BlobPart): Promise<void> {
    const blob = new Blob([piece]);
    this.#pieces.push(blob);
    this.#bytes += blob.size;
    if (this.#bytes <= this.#allowedBytes) return;
    await this.#onLarge({ bytes: this.#bytes, isWhole: false });
    this.#allowedBytes = 2 * this.#bytes;
  }

  /** @param head comes before the pieces. */
  finish(type: string, head: BlobPart = ""): Blob {
    return new Blob([head, ...this.#pieces], { type });
  }
}

/** A record a line, as `import` takes them. */
async function exportJsonLines(order: ExportOrder): Promise<Blob> {
  const file = new GrowingFile(order);
  for await (const records of pages(order)) {
    await file.add(records.map((record) => `${JSON.stringify(plain(record, order.table))}\n`).join(""));
  }
  return file.finish("application/jsonl");
}

/** With a header line; vectors, lists and json as JSON in their cells (RFC 4180). It can be imported again as it is. */
const exportCsv = (order: ExportOrder): Promise<Blob> => csvFile(order, csvCell);

/** An import of it would keep the apostrophes. */
const exportSpreadsheetCsv = (order: ExportOrder): Promise<Blob> => csvFile(order, spreadsheetCell);

/** @param textCell  the cell of a text that others wrote. Numbers, times and JSON are no formulas. */
async function csvFile(order: ExportOrder, textCell: (text: string) => string): Promise<Blob> {
  const { columns } = order.table;
  const file = new GrowingFile(order);
  for await (const records of pages(order)) await file.add(records.map((record) => `${csvLine(record, columns, textCell)}\r\n`).join(""));
  return file.finish("text/csv", `${["id", ...columns.map(({ name }) => name)].map(textCell).join(",")}\r\n`);
}

/** The vectors of a column alone, float32, in the order of the ids. */
async function exportNpy(order: ExportOrder, column: ColumnSchema): Promise<Blob> {
  const { place, table, question, signal, onProgress } = order;
  const dimension = column.vector?.dimension ?? 0;
  const file = new GrowingFile(order);
  // A stream of vectors is cut off when nobody reads it, so the user is asked about its size before it begins.
  await file.reserve((await countVectors(place, table.name, column.name, question.filter)) * dimension * 4);
  const request = {
    tableUrl: apiBase() + tablePath(place, table.name),
    key: key.value,
    column: column.name,
    dimension,
    colorColumn: undefined,
    filter: question.filter,
    limit: undefined,
  };
  let rows = 0;
  for await (const { ids, matrix } of vectorBlocks(request, signal)) {
    signal.throwIfAborted();
    await file.add(matrix as Float32Array<ArrayBuffer>);
    rows += ids.length;
    onProgress(rows);
  }
  return file.finish("application/octet-stream", npyHeader(rows, dimension));
}

/** Format 1.0: the data begin at a multiple of 64 bytes. */
function npyHeader(rows: number, dimension: number): Uint8Array<ArrayBuffer> {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${dimension}), }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64;
  const bytes = new Uint8Array(length).fill(0x20);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0]);
  new DataView(bytes.buffer).setUint16(8, length - 10, true);
  bytes.set(new TextEncoder().encode(text), 10);
  bytes[length - 1] = 0x0a;
  return bytes;
}

async function* pages({ place, table, question, signal, onProgress }: ExportOrder): AsyncGenerator<readonly TableRecord[]> {
  const path = tablePath(place, table.name);
  let size = pageRowsFor(table.columns, MAX_PAGE_SIZE);
  let start: PageStart = question;
  for (let count = 0; ; ) {
    const page = await queryPage(path, start, size, signal);
    yield page.records;
    count += page.records.length;
    onProgress(count);
    if (!page.meta.page.more) return;
    size = page.size;
    start = { after: page.meta.page.cursor };
  }
}

function plain(record: TableRecord, { columns }: TableSchema): Record<string, unknown> {
  const fields: Record<string, unknown> = { id: record.id };
  for (const { name, type } of columns) {
    const value = record[name];
    if (value !== undefined && value !== null) fields[name] = type === "link" ? linkId(value) : value;
  }
  return fields;
}

const TEXT_TYPES: ReadonlySet<string> = new Set(["string", "text", "email", "link"]);

function csvLine(record: TableRecord, columns: readonly ColumnSchema[], textCell: (text: string) => string): string {
  const cells = columns.map((column) => csvValueCell(column, record[column.name], TEXT_TYPES.has(column.type) ? textCell : csvCell));
  return [textCell(record.id), ...cells].join(",");
}

/** A missing value is an empty cell; an empty text is a pair of quotes. */
function csvValueCell(column: ColumnSchema, value: unknown, cell: (text: string) => string): string {
  if (value === undefined || value === null) return "";
  const text = textOf(column, value);
  return text === "" ? '""' : cell(text);
}
