/**
 * A digest of each row of a batch, for comparing rows that were read in different ways. Each value has one
 * representation: a tag, and its bytes with their length before them. (V8's serialization has several for one
 * value: 0 as an integer or as a double, a text in one or two bytes per character.)
 */
import { createHash, type Hash } from "node:crypto";
import type { ColumnValues } from "../columns/column-values.ts";
import type { FeedBatch } from "../records/feed/feed-types.ts";

/** @returns in the order of `batch.ids`. Cost: one pass over the batch's values. */
export function rowDigests(batch: FeedBatch): string[] {
  const hashes = batch.ids.map(() => createHash("sha256"));
  for (const [name, column] of [...batch.columns].sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (const hash of hashes) addText(hash, name);
    if (column.kind === "vector") addVectors(hashes, column);
    else {
      for (const [row, value] of column.values.entries()) {
        if ("omitted" in column && column.omitted?.has(row) === true) hashes[row]!.update("o");
        else addValue(hashes[row]!, value);
      }
    }
  }
  return hashes.map((hash) => hash.digest("base64"));
}

function addVectors(hashes: readonly Hash[], { dimension, rows, elements }: Extract<ColumnValues, { kind: "vector" }>): void {
  const present = new Set(rows);
  for (const [row, hash] of hashes.entries()) if (!present.has(row)) hash.update("n");
  for (const [place, row] of rows.entries()) {
    const vector = elements.subarray(place * dimension, (place + 1) * dimension);
    addBytes(hashes[row]!, "v", new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength));
  }
}

function addValue(hash: Hash, value: string | number | bigint | boolean | (string | null)[] | null): void {
  if (value === null) hash.update("n");
  else if (typeof value === "string") addText(hash, value);
  else if (typeof value === "number") hash.update(float64(value));
  else if (typeof value === "boolean") hash.update(value ? "t" : "f");
  else if (typeof value === "bigint") addBytes(hash, "i", Buffer.from(String(value)));
  else {
    hash.update(`a${value.length}:`);
    for (const item of value) addValue(hash, item);
  }
}

/** -0 is another value than 0, as in PostgreSQL's text form; all NaN are one. */
function float64(value: number): Buffer {
  const bytes = Buffer.alloc(9, Number.isNaN(value) ? "N" : "d");
  if (!Number.isNaN(value)) bytes.writeDoubleLE(value, 1);
  return bytes;
}

const addText = (hash: Hash, text: string): void => addBytes(hash, "s", Buffer.from(text));

function addBytes(hash: Hash, tag: string, bytes: Uint8Array): void {
  hash.update(`${tag}${bytes.byteLength}:`);
  hash.update(bytes);
}
