/** Rows of Parquet files, read with hyparquet, which is loaded with this module: when such a file is opened. */
import { type AsyncBuffer, parquetMetadataAsync, parquetReadObjects, parquetSchema } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import type { FileRow, FileSource } from "./file-source.ts";

/** A row group is decoded as a whole, so it has to fit into the page. */
const MOST_GROUP_BYTES = 512 * 1024 * 1024;

/** @throws what is wrong with the file, in words. */
export async function openParquetFile(file: File): Promise<FileSource> {
  const buffer: AsyncBuffer = { byteLength: file.size, slice: (begin, end) => file.slice(begin, end).arrayBuffer() };
  const metadata = await parquetMetadataAsync(buffer);
  const large = metadata.row_groups.find(({ total_byte_size }) => total_byte_size > MOST_GROUP_BYTES);
  if (large !== undefined) {
    throw new Error(
      "The file has a row group of more than 512 MB, which a page cannot hold. Write it with smaller ones, or use lodestone import.",
    );
  }
  async function* rows(): AsyncGenerator<readonly FileRow[]> {
    let rowStart = 0;
    for (const [i, group] of metadata.row_groups.entries()) {
      const rowEnd = rowStart + Number(group.num_rows);
      const found = await parquetReadObjects({ file: buffer, metadata, compressors, rowStart, rowEnd });
      const readBytes = (file.size * (i + 1)) / metadata.row_groups.length;
      yield found.map((record, j) => ({
        place: `row ${rowStart + j}`,
        readBytes,
        values: new Map(Object.entries(record).map(([name, value]) => [name, plain(value)])),
      }));
      rowStart = rowEnd;
    }
  }
  const header = parquetSchema(metadata).children.map(({ element }) => element.name);
  return { format: "Parquet", header, isText: false, dimension: undefined, bytes: file.size, rows };
}

/** As JSON has it: times as RFC 3339; whole numbers that a double cannot hold as texts. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return [...value];
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<number | bigint>, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]));
  return value;
}

// Imported only when it is used, which the check does not see.
// ignore unused exports
