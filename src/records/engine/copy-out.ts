/**
 * Reads the result of a statement in PostgreSQL's binary COPY format. `pg` decodes each value of a row as text,
 * so vectors come as base64 and make a string each; here they come as bytes. A start that reads a table of 128
 * dimensions takes a quarter less CPU time (bench:start). Not on the embedded engine, whose replies are bounded row
 * by row (reply.ts).
 */
import type pg from "pg";
import { type ProtocolConnection, Submittable, submit } from "./protocol-connection.ts";

/** A page of records is about two. */
const FIRST_BYTES = 2 ** 20;

class CopyQuery extends Submittable<Buffer> {
  readonly #text: string;
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  constructor(text: string) {
    super();
    this.#text = text;
  }

  protected send(connection: ProtocolConnection): void {
    connection.query(this.#text);
  }

  /** The driver reuses the memory of the chunk. */
  override handleCopyData({ chunk }: { chunk: Buffer }): void {
    const length = this.#length + chunk.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
  }

  handleReadyForQuery(): void {
    this.resolve(this.#bytes.subarray(0, this.#length));
  }
}

/**
 * @param select  without parameters.
 * @returns what CopiedRows takes. All of it is held at once: the caller bounds it.
 */
export function copyOut(client: pg.ClientBase, select: string): Promise<Buffer> {
  return submit(client, new CopyQuery(`COPY (${select}) TO STDOUT (FORMAT binary)`));
}

const SIGNATURE = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
/** In place of the number of columns. */
const END = -1;

/** The rows of a binary COPY: where each value is. "File Formats" in PostgreSQL's documentation of COPY. */
export class CopiedRows {
  readonly bytes: Buffer;
  readonly view: DataView;
  /** Number of rows. */
  readonly count: number;
  /** For each column the place of each row's value, behind its length. */
  readonly #places: number[][];

  constructor(bytes: Buffer, columns: number) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#places = Array.from({ length: columns }, () => []);
    if (!bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE)) throw new Error("The database sent something else than a binary COPY.");
    // Behind the signature are flags, and an extension with its length.
    let at = SIGNATURE.length + 4;
    at += 4 + this.view.getInt32(at);
    let count = 0;
    for (; this.view.getInt16(at) === columns; count++) {
      at += 2;
      for (const places of this.#places) {
        places.push(at + 4);
        at += 4 + Math.max(this.view.getInt32(at), 0);
      }
    }
    if (this.view.getInt16(at) !== END) throw new Error(`The database sent rows of ${this.view.getInt16(at)} columns, not ${columns}.`);
    this.count = count;
  }

  /** The place in `bytes` of each row's value of the column. `lengthAt` tells its length. */
  column(column: number): readonly number[] {
    return this.#places[column]!;
  }

  /** In bytes, of the value at that place; −1 for null. */
  lengthAt(place: number): number {
    return this.view.getInt32(place - 4);
  }
}
