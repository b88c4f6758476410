/**
 * Files of checksummed messages. They are written under a temporary name and renamed when complete, so a file
 * under its final name was once complete.
 *
 *   0  "LODESEAR"      8 bytes
 *   8  format u32      little-endian
 *   then per message:  length u32, checksum u32, payload (the structured-clone serialization of V8)
 *
 * A checksum is the CRC-32 of the payload, continued from that of the previous message, so it detects a
 * message that is damaged, missing, added or out of place. The last message is marked as the last; a file
 * without it was cut off.
 */
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { deserialize, serialize } from "node:v8";
import { crc32 } from "node:zlib";
import { LodestoneError } from "../../errors.ts";
import { crashPoint } from "../../fault-points.ts";
import { syncDirectory } from "../../replace-file.ts";

const MAGIC = Buffer.from("LODESEAR");
/** Increment it with every change of what the messages mean. */
const FORMAT = 1;
const HEADER_BYTES = 12;
const FRAME_BYTES = 8;
const MAX_MESSAGE_BYTES = 1 << 30;
/** Synced to disk after this many bytes, so that little is left for the end. */
const SYNC_EVERY_BYTES = 1 << 26;
const END = { isEnd: true } as const;

export class SnapshotWriter {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #finalPath: string;
  #checksum = 0;
  #bytes = HEADER_BYTES;
  #syncedBytes = 0;

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
    const header = Buffer.alloc(HEADER_BYTES);
    MAGIC.copy(header);
    header.writeUInt32LE(FORMAT, MAGIC.length);
    await file.writeFile(header);
    return new SnapshotWriter(file, temporary, path);
  }

  async write(message: unknown): Promise<void> {
    const payload = serialize(message);
    this.#checksum = crc32(payload, this.#checksum);
    const frame = Buffer.alloc(FRAME_BYTES);
    frame.writeUInt32LE(payload.length, 0);
    frame.writeUInt32LE(this.#checksum, 4);
    await this.#file.writev([frame, payload]);
    this.#bytes += FRAME_BYTES + payload.length;
    crashPoint("snapshot-write");
    if (this.#bytes - this.#syncedBytes < SYNC_EVERY_BYTES) return;
    this.#syncedBytes = this.#bytes;
    await this.#file.datasync();
  }

  /** Syncs the file and gives it its final name. @returns its size in bytes. */
  async finish(): Promise<number> {
    await this.write(END);
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
 * Yields the messages of a file in order. Their typed arrays are valid until the next one is asked for. The file
 * is known to be sound only when the iteration has ended.
 *
 * @throws {LodestoneError} CORRUPT when the file is damaged, cut off, or of another format. Discard
 *   everything that came from it.
 */
export async function* readSnapshot(path: string): AsyncGenerator<unknown, void> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const header = await readExactly(file, HEADER_BYTES, 0, size, path);
    if (!header.subarray(0, MAGIC.length).equals(MAGIC)) throw corrupt(path, "it does not begin as one");
    const format = header.readUInt32LE(MAGIC.length);
    if (format !== FORMAT) throw corrupt(path, `it has format ${format}, this version reads format ${FORMAT}`);
    let checksum = 0;
    for (let at = HEADER_BYTES; ; ) {
      const frame = await readExactly(file, FRAME_BYTES, at, size, path);
      const length = frame.readUInt32LE(0);
      if (length > MAX_MESSAGE_BYTES) throw corrupt(path, `a message claims ${length} bytes`);
      const payload = await readExactly(file, length, at + FRAME_BYTES, size, path);
      checksum = crc32(payload, checksum);
      if (checksum !== frame.readUInt32LE(4)) throw corrupt(path, `the checksum of the message at byte ${at} does not match`);
      at += FRAME_BYTES + length;
      const message: unknown = deserialize(payload);
      if (isEnd(message)) {
        if (at !== size) throw corrupt(path, `${size - at} bytes follow its end`);
        return;
      }
      yield message;
    }
  } finally {
    await file.close();
  }
}

async function readExactly(file: FileHandle, length: number, position: number, size: number, path: string): Promise<Buffer> {
  if (position + length > size) throw corrupt(path, `it ends at byte ${size}, before its last message`);
  const buffer = Buffer.allocUnsafeSlow(length);
  for (let read = 0; read < length; ) {
    const { bytesRead } = await file.read(buffer, read, length - read, position + read);
    if (bytesRead === 0) throw corrupt(path, `it ends at byte ${position + read}, before its last message`);
    read += bytesRead;
  }
  return buffer;
}

function isEnd(message: unknown): boolean {
  return typeof message === "object" && message !== null && "isEnd" in message;
}

function corrupt(path: string, why: string): LodestoneError {
  return new LodestoneError("CORRUPT", `The search snapshot ${path} cannot be used: ${why}. It is made again from the records.`);
}
