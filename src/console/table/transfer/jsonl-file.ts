/**
 * JSON Lines: one record per line. If the first line is that of an export of the command line, which lists
 * the columns, it is skipped.
 */
import { type FileRow, type FileSource, textPieces } from "./file-source.ts";

/** Number of rows from which the columns are collected. */
const HEADER_ROWS = 100;

export async function openJsonlFile(file: File): Promise<FileSource> {
  const names = new Set<string>();
  let seen = 0;
  for await (const found of rows(file)) {
    for (const { values } of found.slice(0, HEADER_ROWS - seen)) for (const name of values.keys()) names.add(name);
    seen += found.length;
    if (seen >= HEADER_ROWS) break;
  }
  if (seen === 0) throw new Error("The file has no records.");
  return { format: "JSON Lines", header: [...names], isText: false, dimension: undefined, bytes: file.size, rows: () => rows(file) };
}

async function* rows(file: File): AsyncGenerator<readonly FileRow[]> {
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
