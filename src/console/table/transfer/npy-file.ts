/** Vectors saved by NumPy: the rows of a two-dimensional array, with their row numbers. */
import { type NpyLayout, readNpyLayout } from "../../../cli/import/npy.ts";
import type { FileRow, FileSource } from "./file-source.ts";

const PIECE_BYTES = 1 << 20;

export async function openNpyFile(file: File): Promise<FileSource> {
  const layout = await readNpyLayout(file.size, (begin, length) => bytesOf(file, begin, length));
  const { dimension } = layout;
  return { format: "npy", header: ["row", "vector"], isText: false, dimension, bytes: file.size, rows: () => rows(file, layout) };
}

async function* rows(file: File, layout: NpyLayout): AsyncGenerator<readonly FileRow[]> {
  const { headerBytes, strideBytes, count } = layout;
  const pieceRows = Math.max(1, Math.floor(PIECE_BYTES / strideBytes));
  for (let from = 0; from < count; from += pieceRows) {
    const begin = headerBytes + from * strideBytes;
    const some = Math.min(pieceRows, count - from);
    const bytes = await bytesOf(file, begin, some * strideBytes);
    yield Array.from({ length: some }, (_, i) => ({
      place: `vector ${from + i}`,
      readBytes: begin + (i + 1) * strideBytes,
      values: new Map<string, unknown>([
        ["row", String(from + i)],
        ["vector", layout.decode(bytes, i * strideBytes)],
      ]),
    }));
  }
}

async function bytesOf(file: File, begin: number, length: number): Promise<Uint8Array> {
  return new Uint8Array(await file.slice(begin, begin + length).arrayBuffer());
}
