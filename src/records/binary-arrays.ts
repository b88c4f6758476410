/** Arrays in PostgreSQL's binary form, and the vectors that are read from it. */
import type { Engine } from "./engine/engine.ts";

/**
 * The beginning of a one-dimensional array in PostgreSQL's binary form (array_send in its arrayfuncs.c), big-endian:
 *
 *   int32 dimensions (1) | int32 has nulls | int32 element type (its oid) | int32 length | int32 lower bound (1)
 *
 * The elements follow, each behind the int32 length of its bytes (-1: null).
 */
export const ARRAY_HEADER_BYTES = 20;

/** @returns where the elements begin. */
export function writeArrayHeader(bytes: Buffer, elementType: number, length: number, hasNulls: boolean): number {
  [1, hasNulls ? 1 : 0, elementType, length, 1].forEach((value, n) => {
    bytes.writeUInt32BE(value, 4 * n);
  });
  return ARRAY_HEADER_BYTES;
}

/*
 * The form in which vectors leave the database: bytes in base64. Of the forms that were measured it is the
 * cheapest on this side, where the event loop waits (4 µs for 768 elements; hexadecimal 15, decimal numbers 70).
 * Whole tables of a server leave it as bytes (feed/record-reader.ts).
 *
 * On the embedded engine the bytes are those that PostgreSQL has in memory; elsewhere they are those of its binary
 * protocol. Both begin with five int32, of which only the second differs: in memory it is the offset of the
 * elements, 0 without nulls.
 *
 * The elements follow: float32 in memory, pairs of int32 (4) and float32 in the protocol. All of it is
 * little-endian in memory, which is WebAssembly's order, and big-endian in the protocol.
 */

const MEMORY_ELEMENT_BYTES = 4;
const PROTOCOL_ELEMENT_BYTES = 8;

/** A `real[]` as SQL that gives such text. */
export function vectorTextSql(kind: Engine["kind"], column: string): string {
  return `encode(${kind === "embedded" ? "lodestone.array_bytes" : "array_send"}(${column}), 'base64')`;
}

/** @param texts  one for each vector. @returns their elements, row-major. */
export function decodeVectors(kind: Engine["kind"], dimension: number, texts: readonly string[]): Float32Array {
  const isMemory = kind === "embedded";
  const elements = new Float32Array(texts.length * dimension);
  const bytes = Buffer.allocUnsafe(ARRAY_HEADER_BYTES + (isMemory ? MEMORY_ELEMENT_BYTES : PROTOCOL_ELEMENT_BYTES) * dimension);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  texts.forEach((text, n) => {
    const target = elements.subarray(n * dimension, (n + 1) * dimension);
    readElements(view, 0, bytes.write(text, "base64"), target, isMemory);
  });
  return elements;
}

/** Reads a vector in the form of PostgreSQL's binary protocol. @param target  as long as its column's dimension. */
export function readProtocolVector(view: DataView, at: number, length: number, target: Float32Array): void {
  readElements(view, at, length, target, false);
}

function readElements(view: DataView, at: number, length: number, target: Float32Array, isMemory: boolean): void {
  const elementBytes = isMemory ? MEMORY_ELEMENT_BYTES : PROTOCOL_ELEMENT_BYTES;
  const expected = ARRAY_HEADER_BYTES + elementBytes * target.length;
  if (length !== expected || view.getInt32(at + 4) !== 0)
    throw new Error(
      `A vector has ${length} bytes; with its column's dimension ${target.length} and without nulls it should have ${expected}.`,
    );
  let offset = at + ARRAY_HEADER_BYTES + elementBytes - MEMORY_ELEMENT_BYTES;
  for (let i = 0; i < target.length; i++, offset += elementBytes) target[i] = view.getFloat32(offset, isMemory);
}
