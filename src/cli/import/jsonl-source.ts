/**
 * JSON Lines: one record a line, in UTF-8. A first line `{"$lodestone": …, "columns": […]}`, as `lodestone
 * export` writes it, declares the columns. Lines are split as bytes, not as text, so that every position in the
 * file is exact and an import can continue from it.
 */
import { stat } from "node:fs/promises";
import { inWords } from "../../errors/value-in-words.ts";
import { holdsExactNumbers } from "../../records/exact-json.ts";
import type { JsonObject, JsonValue } from "../../records/requests.ts";
import type { ColumnSchema } from "../../records/schema.ts";
import { isObject } from "../../text/json-object.ts";
import { membersOf } from "../../text/json-scan.ts";
import { importedName } from "./hosted-columns.ts";
import { type Source, SourceError, type SourcePosition, type SourceRow } from "./source.ts";
import { type SourceFiles, utf8Chunks } from "./source-files.ts";

/** A line must fit in one request. */
export const MAX_LINE_BYTES = 20 * 1024 * 1024;

const NEWLINE = 0x0a;

export interface Line {
  readonly text: string;
  readonly number: number;
  /** Offset after the line and its newline. */
  readonly end: number;
}

export async function openJsonl(file: string, files: SourceFiles): Promise<Source> {
  const path = await files.text(file);
  const { size } = await stat(path);
  const first = await readFirstLine(path);
  const columns = first === undefined ? undefined : exportedColumns(first.text);
  const start = columns === undefined || first === undefined ? { offset: 0, row: 0, line: 0 } : { offset: first.end, row: 0, line: 1 };
  return { columns, byteLength: size, start, rows: (from, tableColumns) => rows(path, from, tableColumns) };
}

async function* rows(path: string, from: SourcePosition, columns: readonly ColumnSchema[]): AsyncGenerator<SourceRow> {
  const types = new Map(columns.map(({ name, type }) => [name, type]));
  let row = from.row;
  for await (const { text, number, end } of lines(path, from)) {
    if (text.trim() === "") continue;
    row++;
    const parsed = parseRecord(text, number);
    // To guess the columns, numbers will do.
    const record = withImportedNames(types.size === 0 ? parsed : withDigits(parsed, text, types));
    yield { record, place: `line ${number}`, next: { offset: end, row, line: number } };
  }
}

/**
 * With the text of each value of a `json` column, and of each id, that would lose digits as a number: the server takes
 * texts as they are.
 *
 * @param text  of the record.
 * @param types  of the table's columns; those of object paths are in objects.
 */
function withDigits(record: JsonObject, text: string, types: ReadonlyMap<string, string>, prefix = ""): JsonObject {
  const kept: Record<string, JsonValue> = { ...record };
  for (const [key, { begin, end }] of membersOf(text, text.indexOf("{"))) {
    const name = JSON.parse(`"${key}"`) as string;
    const path = prefix + name;
    const value = record[name];
    const type = types.get(path);
    if (typeof value === "string" || (type !== "json" && type !== undefined)) continue;
    if (typeof value === "object" && type === undefined) {
      const holdsColumns = isObject(value) && [...types.keys()].some((column) => column.startsWith(`${path}.`));
      if (holdsColumns) kept[name] = withDigits(value as JsonObject, text.slice(begin, end), types, `${path}.`);
    } else if (!holdsExactNumbers(text.slice(begin, end))) kept[name] = text.slice(begin, end);
  }
  return kept;
}

function withImportedNames(record: JsonObject): JsonObject {
  const keys = Object.keys(record);
  if (keys.every((key) => importedName(key, keys) === key)) return record;
  const entries = Object.entries(record).map(([key, value]) => [importedName(key, keys), value] as const);
  return Object.fromEntries(entries.filter(([key]) => key !== undefined));
}

function parseRecord(text: string, number: number): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new SourceError(`line ${number}`, `not valid JSON: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SourceError(`line ${number}`, `expected a JSON object, got ${inWords(value)}`);
  }
  return value as JsonObject;
}

/**
 * Lines from a position on, without their ends; each says where it ends.
 * @param until  the offset after the last byte; default: all.
 */
export async function* lines(path: string, from: SourcePosition, until = Number.POSITIVE_INFINITY): AsyncGenerator<Line> {
  let offset = from.offset;
  let number = from.line;
  let parts: Buffer[] = [];
  let partsLength = 0;
  const take = (last: Buffer): Line => {
    const bytes = parts.length === 0 ? last : Buffer.concat([...parts, last]);
    parts = [];
    partsLength = 0;
    number++;
    const hasByteOrderMark = offset === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    return { text: bytes.toString("utf8", hasByteOrderMark ? 3 : 0), number, end: 0 };
  };
  for await (const chunk of utf8Chunks(path, from.offset, until)) {
    let begin = 0;
    for (;;) {
      const newline = chunk.indexOf(NEWLINE, begin);
      if (newline === -1) break;
      const length = partsLength + newline - begin;
      const line = take(chunk.subarray(begin, newline));
      offset += length + 1;
      yield { ...line, end: offset };
      begin = newline + 1;
    }
    // A copy, since the stream may use its buffer again.
    const rest = Buffer.from(chunk.subarray(begin));
    if (rest.length > 0) parts.push(rest);
    partsLength += rest.length;
    if (partsLength > MAX_LINE_BYTES)
      throw new SourceError(`line ${number + 1}`, `longer than ${MAX_LINE_BYTES.toLocaleString("en-US")} bytes`);
  }
  if (partsLength > 0) {
    const length = partsLength;
    const line = take(Buffer.alloc(0));
    yield { ...line, end: offset + length };
  }
}

async function readFirstLine(path: string): Promise<Line | undefined> {
  for await (const line of lines(path, { offset: 0, row: 0, line: 0 })) return line;
  return undefined;
}

/** The columns of an export's first line; undefined when the line is a record. */
function exportedColumns(text: string): ColumnSchema[] | undefined {
  if (!text.startsWith('{"$lodestone"')) return undefined;
  return (parseRecord(text, 1) as { columns?: unknown }).columns as ColumnSchema[] | undefined;
}
