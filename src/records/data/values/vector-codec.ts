/**
 * Vectors as PostgreSQL's binary form of `real[]`, which is what a Buffer parameter is sent as: text would cost
 * the embedded engine ten times as much to parse. Layout, all big-endian (array_send in PostgreSQL's
 * arrayfuncs.c):
 *
 *   int32 dimensions (1) | int32 has nulls (0) | int32 element type (700, float4) | int32 length | int32 lower bound (1) | (int32 4 | float4) × length
 */
const HEADER_BYTES = 20;
const ELEMENT_BYTES = 8;
const FLOAT4_OID = 700;

/** Rows of vectors, one after the other, as one `real[]`. Elements must be finite as float32. */
export function encodeVectors(rows: readonly ArrayLike<number>[]): Buffer {
  let length = 0;
  for (const row of rows) length += row.length;
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + length * ELEMENT_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  view.setInt32(0, 1);
  view.setInt32(4, 0);
  view.setInt32(8, FLOAT4_OID);
  view.setInt32(12, length);
  view.setInt32(16, 1);
  let offset = HEADER_BYTES;
  for (const row of rows) {
    for (let i = 0; i < row.length; i++) {
      view.setInt32(offset, 4);
      view.setFloat32(offset + 4, row[i]!);
      offset += ELEMENT_BYTES;
    }
  }
  return bytes;
}
