/** Arrays in PostgreSQL's binary forms, and the vectors that are written and read in them. */

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

/**
 * How an engine takes and gives the values of vector columns (`real[]` of one length, without nulls). Text would cost the embedded
 * engine ten times as much to parse, and array_recv and array_send call a function for each element.
 *
 * They leave the database as base64: of the forms that were measured it is the cheapest on this side, where the event loop waits
 * (4 µs for 768 elements; hexadecimal 15, decimal numbers 70). Whole tables of a server leave it as bytes (feed/record-reader.ts).
 */
export interface VectorForm {
  /** Statements that make the functions which its SQL calls, and revoke them from everybody else. */
  readonly functions: readonly string[];
  /** A vector as SQL that gives text. */
  textSql(column: string): string;
  /** @param texts  one for each vector. @returns their elements, row-major. */
  decode(dimension: number, texts: readonly string[]): Float32Array;
  /** The bytes of one parameter with all of these vectors. @param rows  finite, of one length. */
  encode(rows: readonly Float32Array[]): Buffer;
  /** A parameter with one vector as SQL. */
  oneSql(parameter: string): string;
  /** A vector of a parameter with several as SQL. @param n  which one, from 1 on: SQL of type int8. */
  nthSql(parameter: string, n: string, dimension: number): string;
}

/*
 * Both forms begin with five int32, of which only the second differs: in memory it is the offset of the elements, 0 without nulls.
 * The elements follow: float32 in memory, pairs of int32 (4) and float32 in the protocol. All of it is little-endian in memory,
 * which is WebAssembly's order, and big-endian in the protocol.
 */

const FLOAT4_OID = 700;
const MEMORY_ELEMENT_BYTES = 4;
const PROTOCOL_ELEMENT_BYTES = 8;

/**
 * The bytes of an array as PostgreSQL holds it in memory, and an array of such bytes. `array_send` and
 * `array_recv` call a function for each element, which takes ten times as long in the embedded engine. To `byteasend` any value
 * of variable length is bytes, and it copies them.
 *
 * Of the embedded engine alone: it takes a superuser, and the bytes are in the order of the machine. Nobody else may call them:
 * bytes that are not an array would be read as one.
 */
const ARRAY_BYTES = [
  `CREATE OR REPLACE FUNCTION lodestone.array_bytes(real[]) RETURNS bytea LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteasend'`,
  "REVOKE EXECUTE ON FUNCTION lodestone.array_bytes(real[]) FROM PUBLIC",
  `CREATE OR REPLACE FUNCTION lodestone.array_of_bytes(bytea) RETURNS real[] LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'byteasend'`,
  "REVOKE EXECUTE ON FUNCTION lodestone.array_of_bytes(bytea) FROM PUBLIC",
];

/** Of the embedded engine: the bytes that PostgreSQL has in memory, behind its own length. */
export const VECTORS_IN_MEMORY: VectorForm = {
  functions: ARRAY_BYTES,
  textSql: (column) => `encode(lodestone.array_bytes(${column}), 'base64')`,
  decode: (dimension, texts) => decodeTexts(dimension, texts, true),
  encode(rows) {
    const stride = memoryBytes(rows[0]?.length ?? 0);
    const bytes = Buffer.allocUnsafe(rows.length * stride);
    let at = 0;
    for (const row of rows) {
      for (const value of [1, 0, FLOAT4_OID, row.length, 1]) at = bytes.writeInt32LE(value, at);
      bytes.set(new Uint8Array(row.buffer, row.byteOffset, row.byteLength), at);
      at += row.byteLength;
    }
    return bytes;
  },
  oneSql: (parameter) => `lodestone.array_of_bytes(${parameter}::bytea)`,
  nthSql(parameter, n, dimension) {
    const stride = memoryBytes(dimension);
    return `lodestone.array_of_bytes(substring(${parameter}::bytea FROM ((${n} - 1) * ${stride} + 1)::int4 FOR ${stride}))`;
  },
};

const memoryBytes = (dimension: number): number => ARRAY_HEADER_BYTES + dimension * MEMORY_ELEMENT_BYTES;

/** Of a server: array_send and array_recv of PostgreSQL's binary protocol. Several vectors are one array, which the statement cuts. */
export const VECTORS_IN_PROTOCOL: VectorForm = {
  functions: [],
  textSql: (column) => `encode(array_send(${column}), 'base64')`,
  decode: (dimension, texts) => decodeTexts(dimension, texts, false),
  encode(rows) {
    let length = 0;
    for (const row of rows) length += row.length;
    const bytes = Buffer.allocUnsafe(ARRAY_HEADER_BYTES + length * PROTOCOL_ELEMENT_BYTES);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let offset = writeArrayHeader(bytes, FLOAT4_OID, length, false);
    for (const row of rows) {
      for (let i = 0; i < row.length; i++) {
        view.setInt32(offset, 4);
        view.setFloat32(offset + 4, row[i]!);
        offset += PROTOCOL_ELEMENT_BYTES;
      }
    }
    return bytes;
  },
  oneSql: (parameter) => `${parameter}::real[]`,
  nthSql: (parameter, n, dimension) => `(${parameter}::real[])[(${n} - 1) * ${dimension} + 1 : ${n} * ${dimension}]`,
};

function decodeTexts(dimension: number, texts: readonly string[], isMemory: boolean): Float32Array {
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
