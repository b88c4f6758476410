/** What the readers of all formats deliver of a file that was dropped, piece by piece, so that a large one is never held whole. */
import type { CsvCell } from "../../../cli/import/csv-value.ts";

export interface FileRow {
  /** By the file's columns. Text where the format has nothing else (`isText`). */
  readonly values: ReadonlyMap<string, unknown>;
  /** For messages: "line 17". */
  readonly place: string;
  /** Of the file, up to the end of this row or a little behind it. */
  readonly readBytes: number;
}

export interface FileSource {
  readonly format: "CSV" | "JSON Lines" | "npy";
  /** The file's columns, as far as its beginning shows them. */
  readonly header: readonly string[];
  /** Values are cells of text, which get their types from the table's columns. */
  readonly isText: boolean;
  /** Whose vectors have so many dimensions, where the file says it. */
  readonly dimension: number | undefined;
  readonly bytes: number;
  /** From the beginning; lists, so that few rows are waited for one by one. */
  rows(): AsyncGenerator<readonly FileRow[]>;
}

export type Cell = CsvCell;

/** Some milliseconds of parsing. */
const PIECE_BYTES = 256 * 1024;

/** @yields the file's text in pieces, and how far each goes. @throws when it is not UTF-8. */
export async function* textPieces(file: File): AsyncGenerator<{ text: string; end: number }> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for (let begin = 0; begin < file.size; begin += PIECE_BYTES) {
    const end = Math.min(file.size, begin + PIECE_BYTES);
    const bytes = await file.slice(begin, end).arrayBuffer();
    try {
      yield { text: decoder.decode(bytes, { stream: end < file.size }), end };
    } catch {
      throw new Error(`The file is not UTF-8, somewhere from byte ${begin.toLocaleString("en")} on.`);
    }
  }
}
