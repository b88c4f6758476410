/**
 * The interface of the readers of all formats for a dropped file. It is read piece by piece, so that a large
 * one is never held whole.
 */
import type { CsvCell } from "../../../cli/import/csv-value.ts";

export interface FileRow {
  /** By the file's columns. Text if the format has nothing else (`isText`). */
  readonly values: ReadonlyMap<string, unknown>;
  /** For messages: "line 17". */
  readonly place: string;
  /** Bytes of the file, up to the end of this row or a little beyond it. */
  readonly readBytes: number;
}

export interface FileSource {
  readonly format: "CSV" | "JSON Lines" | "npy";
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
 * @yields the file's text in pieces, and the byte offset at which each ends.
 * @throws when it is not UTF-8.
 */
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
