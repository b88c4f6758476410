/**
 * Vectors as PostgreSQL's binary form of `real[]`, which is what a Buffer parameter is sent as: text would cost
 * the embedded engine ten times as much to parse. The header of an array, then int32 4 and a float4 for each
 * element.
 */
import { ARRAY_HEADER_BYTES, writeArrayHeader } from "../../array-header.ts";

const ELEMENT_BYTES = 8;
const FLOAT4_OID = 700;

/** Rows of vectors, one after the other, as one `real[]`. Elements must be finite as float32. */
export function encodeVectors(rows: readonly ArrayLike<number>[]): Buffer {
  let length = 0;
  for (const row of rows) length += row.length;
  const bytes = Buffer.allocUnsafe(ARRAY_HEADER_BYTES + length * ELEMENT_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let offset = writeArrayHeader(bytes, FLOAT4_OID, length, false);
  for (const row of rows) {
    for (let i = 0; i < row.length; i++) {
      view.setInt32(offset, 4);
      view.setFloat32(offset + 4, row[i]!);
      offset += ELEMENT_BYTES;
    }
  }
  return bytes;
}
