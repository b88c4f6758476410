/**
 * Vectors as bytes, in blocks that can be read one by one. Everything is little-endian. A block:
 *
 *     uint32 rows | uint32 bytes of the head | the head, as JSON, padded with spaces to a multiple of 4 | float32 × rows × dimension, row-major
 *
 * The head of a block of rows is `{"ids": […], "values": […]}` (values only where a column of them was asked for). The last block has no rows, and the head
 * `{"rows": …, "more": …}`: how many came, and whether the limit left something out. Bytes that end without it were cut off.
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
  // Machines that run Node are little-endian, but for s390x.
  const at = PREFIX_BYTES + headBytes;
  if (isLittleEndian) bytes.set(new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength), at);
  else for (let i = 0; i < elements.length; i++) bytes.writeFloatLE(elements[i]!, at + 4 * i);
  return bytes;
}

const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
