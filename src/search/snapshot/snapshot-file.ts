/**
 * Snapshot files: framed messages (message-frames.ts), written under a temporary name and renamed when
 * complete, so a file under its final name was once complete. The last message is marked as the last; a file
 * without it was cut off.
 */
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { LodestoneError } from "../../errors.ts";
import { crashPoint } from "../../fault-points.ts";
import { syncDirectory } from "../../replace-file.ts";
import { fileHeader, framed, HEADER_BYTES, readFormat, readFramed, writeFramed } from "./message-frames.ts";

const MAGIC = "LODESEAR";
/** Increment it with every change of what the messages mean. */
const FORMAT = 1;
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
    await file.writeFile(fileHeader(MAGIC, FORMAT));
    return new SnapshotWriter(file, temporary, path);
  }

  async write(message: unknown): Promise<void> {
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
    const header = await readFormat(file, MAGIC, size);
    if ("fault" in header) throw corrupt(path, header.fault);
    if (header.format !== FORMAT) throw corrupt(path, `it has format ${header.format}, this version reads format ${FORMAT}`);
    let checksum = 0;
    for (let at = HEADER_BYTES; ; ) {
      const read = await readFramed(file, at, size, checksum);
      if ("fault" in read) throw corrupt(path, read.fault);
      checksum = read.checksum;
      at = read.end;
      if (isEnd(read.message)) {
        if (at !== size) throw corrupt(path, `${size - at} bytes follow its end`);
        return;
      }
      yield read.message;
    }
  } finally {
    await file.close();
  }
}

function isEnd(message: unknown): boolean {
  return typeof message === "object" && message !== null && "isEnd" in message;
}

function corrupt(path: string, why: string): LodestoneError {
  return new LodestoneError("CORRUPT", `The search snapshot ${path} cannot be used: ${why}. It is made again from the records.`);
}
