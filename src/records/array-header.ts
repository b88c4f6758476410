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
