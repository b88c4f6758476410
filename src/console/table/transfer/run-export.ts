/** What a filter selects of a table, as a file: read page by page, and put together by the browser. */
import { apiBase } from "../../api/client.ts";
import { type Place, tablePath } from "../../api/paths.ts";
import { vectorBlocks } from "../../map/vector-stream.ts";
import type { ColumnSchema, TableSchema } from "../../state/catalog.ts";
import { key } from "../../state/session.ts";
import { linkId, textOf } from "../cell-text.ts";
import { type PageStart, pageRowsFor, queryPage, type RecordQuestion, type TableRecord } from "../record-page.ts";

export interface ExportOrder {
  readonly place: Place;
  readonly table: TableSchema;
  readonly question: RecordQuestion;
  readonly signal: AbortSignal;
  readonly onProgress: (records: number) => void;
}

/** A record a line, as `import` takes them. */
export async function exportJsonLines(order: ExportOrder): Promise<Blob> {
  const parts: string[] = [];
  for await (const records of pages(order)) parts.push(records.map((record) => `${JSON.stringify(plain(record, order.table))}\n`).join(""));
  return new Blob(parts, { type: "application/jsonl" });
}

/** With a header line; vectors, lists and json as JSON in their cells (RFC 4180). */
export async function exportCsv(order: ExportOrder): Promise<Blob> {
  const { columns } = order.table;
  const parts = [`${["id", ...columns.map(({ name }) => name)].map(csvCell).join(",")}\r\n`];
  for await (const records of pages(order)) parts.push(records.map((record) => `${csvLine(record, columns)}\r\n`).join(""));
  return new Blob(parts, { type: "text/csv" });
}

/** The vectors of a column alone, float32, in the order of the ids. */
export async function exportNpy({ place, table, question, signal, onProgress }: ExportOrder, column: ColumnSchema): Promise<Blob> {
  const dimension = column.vector?.dimension ?? 0;
  const request = {
    kind: "load" as const,
    tableUrl: apiBase() + tablePath(place, table.name),
    key: key.value,
    column: column.name,
    dimension,
    colorColumn: undefined,
    filter: question.filter,
    limit: undefined,
  };
  const parts: BlobPart[] = [];
  let rows = 0;
  for await (const { ids, matrix } of vectorBlocks(request)) {
    signal.throwIfAborted();
    parts.push(matrix as Float32Array<ArrayBuffer>);
    rows += ids.length;
    onProgress(rows);
  }
  return new Blob([npyHeader(rows, dimension), ...parts], { type: "application/octet-stream" });
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
  let size = pageRowsFor(table.columns, MAX_PAGE_ROWS);
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

/** Of one page; fewer where vectors are long. */
const MAX_PAGE_ROWS = 1_000;

function plain(record: TableRecord, { columns }: TableSchema): Record<string, unknown> {
  const fields: Record<string, unknown> = { id: record.id };
  for (const { name, type } of columns) {
    const value = record[name];
    if (value !== undefined && value !== null) fields[name] = type === "link" ? linkId(value) : value;
  }
  return fields;
}

function csvLine(record: TableRecord, columns: readonly ColumnSchema[]): string {
  return [csvCell(record.id), ...columns.map((column) => csvValueCell(column, record[column.name]))].join(",");
}

/** No value is an empty cell; a text without characters is one in quotes. */
function csvValueCell(column: ColumnSchema, value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = textOf(column, value);
  return text === "" ? '""' : csvCell(text);
}

const csvCell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
