/**
 * What the readers of all formats deliver: one row after another, each with the position after it, so that an
 * import can continue from there.
 */
import type { JsonObject } from "../../records/requests.ts";
import type { ColumnSchema } from "../../records/schema.ts";

/** Of a file, those that are left out included. A table has 1,000 at most. */
export const MAX_FILE_COLUMNS = 2_000;

/** Where a source can be resumed. */
export interface SourcePosition {
  /** In bytes from the start of the file. */
  readonly offset: number;
  /** Rows before it. */
  readonly row: number;
  /** Lines before it; 0 in binary formats. */
  readonly line: number;
}

export interface SourceRow {
  readonly record: JsonObject;
  /** For messages: "line 17", or "vector 16" in binary formats. */
  readonly place: string;
  /** Where the next row begins. */
  readonly next: SourcePosition;
}

export interface Source {
  /** What the file itself declares about its columns: the dimension of its vectors, or the header of an export. */
  readonly columns: readonly ColumnSchema[] | undefined;
  /** Of the whole file, as UTF-8 if it is text. */
  readonly byteLength: number;
  readonly start: SourcePosition;
  /**
   * Rows from `from` on. Holds one chunk of the file at a time. `tableColumns` gives types to the texts of
   * formats that have none (csv).
   */
  rows(from: SourcePosition, tableColumns: readonly ColumnSchema[]): AsyncIterable<SourceRow>;
}

/** The file is not what its format promises; says where. */
export class SourceError extends Error {
  constructor(place: string, message: string) {
    super(`${place}: ${message}`);
    this.name = "SourceError";
  }
}
