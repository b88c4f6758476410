/**
 * Snapshot files: framed messages (message-frames.ts), written under a temporary name and renamed when
 * complete, so a file under its final name was once complete. The last message is marked as the last; a file
 * without it was cut off.
 *
 *   0   magic, format     12 bytes
 *   12  vector bytes f64  little-endian: what the vectors of all messages take, so that a reader without the
 *                         memory for them need not begin
 *   20  checksum u32      of those eight bytes
 *   24  messages
 *
 * Format 1 has its messages at byte 12; format 2 knows no images (branch-snapshot.ts). They are read, and no longer written.
 */
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { crashPoint } from "../../files/fault-points.ts";
import { syncDirectory } from "../../files/replace-file.ts";
import { fileHeader, framed, HEADER_BYTES, MessageReader, readBytes, readFormat, writeFramed } from "./message-frames.ts";

const MAGIC = "LODESEAR";
/** Another with every change of what the messages mean; numbers differ in two bits or more, so that one flipped bit gives none of them. */
const FORMAT = 4;
const OLD_FORMATS = [1, 2];
const SIZE_BYTES = 12;
/** Synced to disk after this many bytes, so that little is left for the end. */
const SYNC_EVERY_BYTES = 1 << 26;
const END = { isEnd: true } as const;

export class SnapshotWriter {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #finalPath: string;
  #checksum = 0;
  #bytes = HEADER_BYTES + SIZE_BYTES;
  #syncedBytes = 0;
  #vectorBytes = 0;

  private constructor(file: FileHandle, path: string, finalPath: string) {
    this.#file = file;
    this.#path = path;
    this.#finalPath = finalPath;
  }

  /** @param temporary  the file's name until it is complete; nobody else writes to it. */
  static async create(path: string, temporary: string): Promise<SnapshotWriter> {
    // The file contains values of records, so only the owner may read it.
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(temporary, "w", 0o600);
    await file.writeFile(Buffer.concat([fileHeader(MAGIC, FORMAT), sizeField(0)]));
    return new SnapshotWriter(file, temporary, path);
  }

  /** @param vectorBytes  how many bytes of it are vectors. */
  async write(message: unknown, vectorBytes = 0): Promise<void> {
    this.#vectorBytes += vectorBytes;
    const next = framed(message, this.#checksum);
    this.#checksum = next.checksum;
    await writeFramed(this.#file, next);
    this.#bytes += next.bytes;
    crashPoint("snapshot-write");
    if (this.#bytes - this.#syncedBytes < SYNC_EVERY_BYTES) return;
    this.#syncedBytes = this.#bytes;
    await this.#file.datasync();
  }

  /** Syncs the file and gives it its final name. @returns its size in bytes. */
  async finish(): Promise<number> {
    await this.write(END);
    const { bytesWritten } = await this.#file.write(sizeField(this.#vectorBytes), 0, SIZE_BYTES, HEADER_BYTES);
    if (bytesWritten !== SIZE_BYTES) throw new Error(`Of ${SIZE_BYTES} bytes ${bytesWritten} could be written.`);
    await this.#file.sync();
    await this.#file.close();
    crashPoint("snapshot-written");
    await rename(this.#path, this.#finalPath);
    await syncDirectory(dirname(this.#finalPath));
    return this.#bytes;
  }

  async abandon(): Promise<void> {
    await this.#file.close().catch(() => {});
    await rm(this.#path, { force: true });
  }
}

/**
 * Yields the messages of a file in order. Each has a buffer of its own, of which its typed arrays are views. The file
 * is known to be sound only when the iteration has ended.
 *
 * @param onSize  called before the first message with the bytes of all vectors (0 if the file does not say). What
 *   it throws ends the iteration.
 * @throws {LodestoneError} CORRUPT when the file is damaged, cut off, or of another format. Discard
 *   everything that came from it.
 */
export async function* readSnapshot(path: string, onSize: (vectorBytes: number) => void): AsyncGenerator<unknown, void> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const header = await readFormat(file, MAGIC, size);
    if ("fault" in header) throw corrupt(path, header.fault);
    const { format } = header;
    if (format !== FORMAT && !OLD_FORMATS.includes(format)) {
      throw corrupt(path, `it has format ${format}, this version reads formats ${OLD_FORMATS.join(", ")} and ${FORMAT}`);
    }
    if (format > 1) {
      const field = await readBytes(file, HEADER_BYTES, SIZE_BYTES, size);
      if (field === undefined) throw corrupt(path, `it ends at byte ${size}, before its last message`);
      if (!field.equals(sizeField(field.readDoubleLE(0)))) throw corrupt(path, "the checksum of its size does not match");
      onSize(field.readDoubleLE(0));
    } else onSize(0);
    const reader = new MessageReader(file, size, format > 1 ? HEADER_BYTES + SIZE_BYTES : HEADER_BYTES);
    for (;;) {
      const read = await reader.next();
      if ("fault" in read) throw corrupt(path, read.fault);
      if (isEnd(read.message)) {
        if (read.end !== size) throw corrupt(path, `${size - read.end} bytes follow its end`);
        return;
      }
      yield read.message;
    }
  } finally {
    await file.close();
  }
}

function sizeField(vectorBytes: number): Buffer {
  const field = Buffer.alloc(SIZE_BYTES);
  field.writeDoubleLE(vectorBytes, 0);
  field.writeUInt32LE(crc32(field.subarray(0, 8)), 8);
  return field;
}

function isEnd(message: unknown): boolean {
  return typeof message === "object" && message !== null && "isEnd" in message;
}

function corrupt(path: string, why: string): LodestoneError {
  return new LodestoneError("CORRUPT", `The search snapshot ${path} cannot be used: ${why}. It is made again from the records.`);
}
