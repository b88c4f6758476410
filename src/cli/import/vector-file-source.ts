/**
 * Files of bare vectors: fvecs and bvecs (TEXMEX: each vector an int32 dimension, then float32 or uint8
 * elements; http://corpus-texmex.irisa.fr) and npy (NumPy's format 1.0 to 3.0: a two-dimensional C-ordered
 * array of little-endian float32, float64 or integers of up to 32 bits). A row's number is its id.
 */
import { type FileHandle, open } from "node:fs/promises";
import type { JsonValue } from "../../records/requests.ts";
import { type Source, SourceError, type SourcePosition, type SourceRow } from "./source.ts";

const CHUNK_BYTES = 4 << 20;

interface Layout {
  readonly dimension: number;
  /** Of the first vector. */
  readonly headerBytes: number;
  /** From one vector to the next. */
  readonly strideBytes: number;
  readonly count: number;
  /** Elements of the vector that begins at `at`; throws if the bytes there are not a vector. */
  readonly decode: (bytes: Buffer, at: number, row: number) => number[];
}

export type VectorFileFormat = "fvecs" | "bvecs" | "npy";

export async function openVectorFile(path: string, format: VectorFileFormat, column: string): Promise<Source> {
  const handle = await open(path, "r");
  try {
    const { size } = await handle.stat();
    const layout = format === "npy" ? await readNpyLayout(handle, size) : await readVecsLayout(handle, size, format);
    return {
      columns: [{ name: column, type: "vector", vector: { dimension: layout.dimension } }],
      byteLength: size,
      start: { offset: layout.headerBytes, row: 0, line: 0 },
      rows: (from) => rows(path, layout, column, from),
    };
  } finally {
    await handle.close();
  }
}

async function* rows(path: string, layout: Layout, column: string, from: SourcePosition): AsyncGenerator<SourceRow> {
  const handle = await open(path, "r");
  try {
    const rowsPerChunk = Math.max(1, Math.floor(CHUNK_BYTES / layout.strideBytes));
    const buffer = Buffer.alloc(rowsPerChunk * layout.strideBytes);
    for (let row = from.row; row < layout.count; ) {
      const count = Math.min(rowsPerChunk, layout.count - row);
      const begin = layout.headerBytes + row * layout.strideBytes;
      await readFully(handle, buffer.subarray(0, count * layout.strideBytes), begin);
      for (let i = 0; i < count; i++, row++) {
        const vector: JsonValue = layout.decode(buffer, i * layout.strideBytes, row);
        const offset = layout.headerBytes + (row + 1) * layout.strideBytes;
        yield { record: { id: String(row), [column]: vector }, place: `vector ${row}`, next: { offset, row: row + 1, line: 0 } };
      }
    }
  } finally {
    await handle.close();
  }
}

async function readVecsLayout(handle: FileHandle, size: number, format: "fvecs" | "bvecs"): Promise<Layout> {
  if (size === 0) throw new SourceError("the file", "is empty");
  const head = Buffer.alloc(4);
  if (size < 4) throw new SourceError("the file", `has ${size} bytes, too few for a vector`);
  await readFully(handle, head, 0);
  const dimension = head.readInt32LE();
  const elementBytes = format === "fvecs" ? 4 : 1;
  const strideBytes = 4 + dimension * elementBytes;
  if (dimension < 1 || dimension > 1_000_000)
    throw new SourceError("vector 0", `has dimension ${dimension}: this is not a file of ${format}`);
  if (size % strideBytes !== 0) {
    throw new SourceError(
      "the file",
      `has ${size} bytes, not a multiple of the ${strideBytes} bytes of a vector: cut off, or not a file of ${format}`,
    );
  }
  return {
    dimension,
    headerBytes: 0,
    strideBytes,
    count: size / strideBytes,
    decode(bytes, at, row) {
      const got = bytes.readInt32LE(at);
      if (got !== dimension) throw new SourceError(`vector ${row}`, `has dimension ${got}, those before it ${dimension}`);
      if (format === "bvecs") return Array.from(bytes.subarray(at + 4, at + 4 + dimension));
      return Array.from({ length: dimension }, (_, i) => bytes.readFloatLE(at + 4 + 4 * i));
    },
  };
}

const NPY_MAGIC = "\u0093NUMPY";

/** By NumPy's type strings; "|" where byte order has no meaning. */
const NPY_ELEMENTS: Readonly<Record<string, { bytes: number; read: (buffer: Buffer, at: number) => number }>> = {
  "<f4": { bytes: 4, read: (buffer, at) => buffer.readFloatLE(at) },
  "<f8": { bytes: 8, read: (buffer, at) => buffer.readDoubleLE(at) },
  "|u1": { bytes: 1, read: (buffer, at) => buffer.readUInt8(at) },
  "|i1": { bytes: 1, read: (buffer, at) => buffer.readInt8(at) },
  "<i2": { bytes: 2, read: (buffer, at) => buffer.readInt16LE(at) },
  "<u2": { bytes: 2, read: (buffer, at) => buffer.readUInt16LE(at) },
  "<i4": { bytes: 4, read: (buffer, at) => buffer.readInt32LE(at) },
  "<u4": { bytes: 4, read: (buffer, at) => buffer.readUInt32LE(at) },
};

async function readNpyLayout(handle: FileHandle, size: number): Promise<Layout> {
  const head = Buffer.alloc(Math.min(size, 12));
  await readFully(handle, head, 0);
  if (head.length < 12 || head.toString("latin1", 0, 6) !== NPY_MAGIC) throw new SourceError("the file", "is not an npy file");
  const longHeader = head.readUInt8(6) >= 2;
  const headerBegin = longHeader ? 12 : 10;
  const headerBytes = headerBegin + (longHeader ? head.readUInt32LE(8) : head.readUInt16LE(8));
  if (headerBytes > size || headerBytes > 1 << 20) throw new SourceError("the npy header", "is cut off");
  const text = Buffer.alloc(headerBytes - headerBegin);
  await readFully(handle, text, headerBegin);
  const header = text.toString("latin1");
  const type = /'descr': *'([^']+)'/.exec(header)?.[1] ?? "";
  const element = Object.hasOwn(NPY_ELEMENTS, type) ? NPY_ELEMENTS[type] : undefined;
  if (element === undefined) {
    throw new SourceError("the npy header", `has the type ${JSON.stringify(type)}; expected one of ${Object.keys(NPY_ELEMENTS).join(" ")}`);
  }
  if (/'fortran_order': *True/.test(header)) throw new SourceError("the npy header", "says Fortran order; save numpy.ascontiguousarray(a)");
  const [, countText, dimensionText] = /'shape': *\( *(\d+) *, *(\d+) *,? *\)/.exec(header) ?? [];
  if (countText === undefined || dimensionText === undefined) {
    throw new SourceError("the npy header", "has no shape (rows, dimension)");
  }
  const dimension = Number(dimensionText);
  const count = Number(countText);
  const strideBytes = dimension * element.bytes;
  if (dimension < 1 || size !== headerBytes + count * strideBytes) {
    throw new SourceError("the file", `has ${size} bytes; its header promises ${headerBytes + count * strideBytes}`);
  }
  return {
    dimension,
    headerBytes,
    strideBytes,
    count,
    decode: (bytes, at) => Array.from({ length: dimension }, (_, i) => element.read(bytes, at + i * element.bytes)),
  };
}

async function readFully(handle: FileHandle, target: Buffer, position: number): Promise<void> {
  let done = 0;
  while (done < target.length) {
    const { bytesRead } = await handle.read(target, done, target.length - done, position + done);
    if (bytesRead === 0) throw new SourceError("the file", "became shorter while it was read");
    done += bytesRead;
  }
}
