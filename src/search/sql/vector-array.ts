/**
 * Vectors in pgvector's binary form (`vector_recv`, `vector_send`): int16 dimension, int16 0, then the
 * elements as big-endian float32. It is lossless and takes a quarter of the bytes of decimal numbers.
 */

import { ARRAY_HEADER_BYTES, writeArrayHeader } from "../../records/binary-arrays.ts";
import type { FeedColumn } from "../../records/feed/feed-types.ts";

type VectorColumn = Extract<FeedColumn, { kind: "vector" }>;

const HEADER_BYTES = 4;

/**
 * A parameter of type `vector[]` in PostgreSQL's binary form of arrays (binary-arrays.ts). `pg` sends a Buffer as
 * binary.
 *
 * @param count  rows, in the order of the batch.
 * @param isKept  by index among the column's vectors; the others are sent as null.
 */
export function vectorArray(column: VectorColumn, count: number, typeOid: number, isKept: (n: number) => boolean): Buffer {
  const { dimension, rows, elements } = column;
  const places = new Int32Array(count).fill(-1);
  let present = 0;
  rows.forEach((row, n) => {
    if (!isKept(n)) return;
    places[row] = n;
    present++;
  });
  const vectorBytes = HEADER_BYTES + 4 * dimension;
  const bytes = Buffer.allocUnsafe(ARRAY_HEADER_BYTES + 4 * count + present * vectorBytes);
  let at = writeArrayHeader(bytes, typeOid, count, present < count);
  for (const n of places) {
    at = bytes.writeInt32BE(n < 0 ? -1 : vectorBytes, at);
    if (n < 0) continue;
    at = bytes.writeInt16BE(dimension, at);
    at = bytes.writeInt16BE(0, at);
    for (let i = n * dimension; i < (n + 1) * dimension; i++) at = bytes.writeFloatBE(elements[i]!, at);
  }
  return bytes;
}

/**
 * One vector as text for a parameter of type `vector`. JavaScript's decimal numbers read back as the same
 * float32.
 */
export function vectorText(vector: Float32Array): string {
  return `[${vector.join(",")}]`;
}

/** Decodes the output of `encode(vector_send(v), 'base64')` into `target`. */
export function readVector(base64: string, target: Float32Array): void {
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length !== HEADER_BYTES + 4 * target.length)
    throw new Error(
      `A vector has ${bytes.length} bytes; with its column's dimension ${target.length} it should have ${HEADER_BYTES + 4 * target.length}.`,
    );
  for (let i = 0; i < target.length; i++) target[i] = bytes.readFloatBE(HEADER_BYTES + 4 * i);
}
