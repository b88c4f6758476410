/**
 * Files of bare vectors: fvecs and bvecs (TEXMEX: each vector an int32 dimension, then float32 or uint8
 * elements; http://corpus-texmex.irisa.fr) and npy (npy.ts). A row's number is its id.
 */
import { type FileHandle, open } from "node:fs/promises";
import type { JsonValue } from "../../records/requests.ts";
import { readNpyLayout } from "./npy.ts";
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
    const layout = format === "npy" ? await readNpy(handle, size) : await readVecsLayout(handle, size, format);
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
      const view = new DataView(bytes.buffer, bytes.byteOffset + at + 4, 4 * dimension);
      const elements = new Array<number>(dimension);
      for (let i = 0; i < dimension; i++) elements[i] = view.getFloat32(4 * i, true);
      return elements;
    },
  };
}

function readNpy(handle: FileHandle, size: number): Promise<Layout> {
  return readNpyLayout(size, async (begin, length) => {
    const bytes = Buffer.alloc(length);
    await readFully(handle, bytes, begin);
    return bytes;
  });
}

async function readFully(handle: FileHandle, target: Buffer, position: number): Promise<void> {
  let done = 0;
  while (done < target.length) {
    const { bytesRead } = await handle.read(target, done, target.length - done, position + done);
    if (bytesRead === 0) throw new SourceError("the file", "became shorter while it was being read");
    done += bytesRead;
  }
}
