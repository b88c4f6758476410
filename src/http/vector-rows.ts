/**
 * Vectors as bytes, in blocks that can be read one by one. Everything is little-endian. A block:
 *
 *     uint32 rows | uint32 bytes of the header | the header, as JSON, padded with spaces to a multiple of 4 | float32 × rows × dimension, row-major
 *
 * The header of a block of rows is `{"ids": […], "values": […]}` (values only if a column was requested). The last
 * block has no rows, and the header `{"rows": …, "more": …}`: how many rows came, and whether the limit left some out.
 * Bytes that end without it were cut off.
 */
import type { VectorPage } from "../records/requests.ts";

export const VECTOR_ROWS_TYPE = "application/vnd.lodestone.vectors";

const PREFIX_BYTES = 8;

export const rowsBlock = ({ ids, values, elements }: VectorPage): Buffer => block(ids.length, { ids, values }, elements);

export const lastBlock = (rows: number, more: boolean): Buffer => block(0, { rows, more }, new Float32Array(0));

function block(rows: number, head: object, elements: Float32Array): Buffer {
  const text = JSON.stringify(head);
  const length = Buffer.byteLength(text);
  const headBytes = Math.ceil(length / 4) * 4;
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + headBytes + 4 * elements.length);
  bytes.writeUInt32LE(rows, 0);
  bytes.writeUInt32LE(headBytes, 4);
  bytes.write(text, PREFIX_BYTES);
  bytes.fill(" ", PREFIX_BYTES + length, PREFIX_BYTES + headBytes);
  // All machines that run Node are little-endian, except s390x.
  const at = PREFIX_BYTES + headBytes;
  if (isLittleEndian) bytes.set(new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength), at);
  else for (let i = 0; i < elements.length; i++) bytes.writeFloatLE(elements[i]!, at + 4 * i);
  return bytes;
}

const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
