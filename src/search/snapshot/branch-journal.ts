/**
 * The journal of a branch snapshot: changes since the snapshot was begun, appended as they are applied. With
 * it, a stop has little left to write, and a start reads the feed only from a moment ago. A journal belongs
 * to one snapshot, whose header has its id; a new snapshot gets a new journal.
 *
 *   0  "LODEJRNL"      8 bytes
 *   8  format u32      little-endian
 *   then per message:  length u32, checksum u32, payload, as in snapshot-file.ts
 *
 * Messages are batches, and feed positions that follow all batches that lead to them. A crash may cut off or
 * damage the end of the file: everything before the first message that fails its check is used. Batches
 * without their position are used too. That does no harm, because the feed delivers them again.
 */
import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { crc32 } from "node:zlib";
import { crashPoint } from "../../fault-points.ts";
import type { FeedBatch, FeedPosition } from "../../records/feed/feed-types.ts";

const MAGIC = Buffer.from("LODEJRNL");
const FORMAT = 1;
const HEADER_BYTES = 12;
const FRAME_BYTES = 8;
const MAX_MESSAGE_BYTES = 1 << 30;
/** If more batches than this are not on disk yet, the next change waits. */
const MAX_BACKLOG_BATCHES = 64;

type Message = { readonly batch: FeedBatch } | { readonly position: FeedPosition };

/** Where a journal that was read can be continued. */
export interface JournalEnd {
  readonly path: string;
  readonly bytes: number;
  readonly checksum: number;
  readonly position: FeedPosition;
}

export function journalPath(snapshotPath: string, id: string): string {
  return `${snapshotPath.replace(/\.snapshot$/, "")}.${id}.journal`;
}

/** The name of a snapshot with that journal until it is complete. */
export function draftPath(snapshotPath: string, id: string): string {
  return journalPath(snapshotPath, id).replace(/journal$/, "draft");
}

/** Deletes the journals and drafts of earlier snapshots that a crash has left. */
export async function removeOtherFiles(snapshotPath: string, kept: BranchJournal): Promise<void> {
  const directory = dirname(snapshotPath);
  const prefix = basename(journalPath(snapshotPath, ""), ".journal");
  for (const file of await readdir(directory)) {
    const path = join(directory, file);
    if (file.startsWith(prefix) && /\.(journal|draft)$/.test(file) && path !== kept.path) await rm(path, { force: true });
  }
}

export class BranchJournal {
  readonly path: string;
  readonly #file: FileHandle;
  #bytes: number;
  #checksum: number;
  #position: FeedPosition;
  #backlog = 0;
  #writing: Promise<void> = Promise.resolve();
  #fault: unknown;

  private constructor(file: FileHandle, end: JournalEnd) {
    this.#file = file;
    this.path = end.path;
    this.#bytes = end.bytes;
    this.#checksum = end.checksum;
    this.#position = end.position;
  }

  /** Creates an empty journal for a snapshot at `position`. */
  static async create(path: string, position: FeedPosition): Promise<BranchJournal> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, "w", 0o600);
    const header = Buffer.alloc(HEADER_BYTES);
    MAGIC.copy(header);
    header.writeUInt32LE(FORMAT, MAGIC.length);
    await file.writeFile(header);
    return new BranchJournal(file, { path, bytes: HEADER_BYTES, checksum: 0, position });
  }

  /** Continues after what was read. A damaged end is cut off. */
  static async resume(end: JournalEnd): Promise<BranchJournal> {
    const file = await open(end.path, "r+");
    await file.truncate(end.bytes);
    return new BranchJournal(file, end);
  }

  /** Appends what was applied. Resolves when there is room for more; it does not wait for the write. */
  async append(batches: readonly FeedBatch[], position: FeedPosition): Promise<void> {
    for (const batch of batches) this.#write({ batch });
    this.#write({ position });
    if (this.#backlog > MAX_BACKLOG_BATCHES) await this.#writing;
  }

  /**
   * @returns the position and size of the journal once it is on disk. Rejects if it could not be written; the
   *   journal is then useless.
   */
  async sync(): Promise<{ position: FeedPosition; bytes: number }> {
    const position = this.#position;
    await this.#writing;
    if (this.#fault !== undefined) throw this.#fault;
    await this.#file.datasync();
    crashPoint("journal-synced");
    return { position, bytes: this.#bytes };
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#file.close().catch(() => {});
  }

  async remove(): Promise<void> {
    await this.close();
    await rm(this.path, { force: true });
  }

  #write(message: Message): void {
    if ("position" in message) this.#position = message.position;
    this.#backlog++;
    // One message per turn, so that a large one is not serialized while a search waits.
    this.#writing = this.#writing.then(async () => {
      try {
        if (this.#fault === undefined) await this.#writeNow(message);
      } catch (error) {
        this.#fault = error;
      } finally {
        this.#backlog--;
      }
    });
  }

  async #writeNow(message: Message): Promise<void> {
    const payload = serialize(message);
    this.#checksum = crc32(payload, this.#checksum);
    const frame = Buffer.alloc(FRAME_BYTES);
    frame.writeUInt32LE(payload.length, 0);
    frame.writeUInt32LE(this.#checksum, 4);
    const data = Buffer.concat([frame, payload]);
    const { bytesWritten } = await this.#file.write(data, 0, data.length, this.#bytes);
    if (bytesWritten !== data.length) throw new Error(`Of ${data.length} bytes ${bytesWritten} could be written.`);
    this.#bytes += data.length;
    crashPoint("journal-write");
  }
}

/** Passes each batch to `onBatch`. @returns where to continue; undefined when there is no journal. */
export async function readJournal(
  path: string,
  start: FeedPosition,
  onBatch: (batch: FeedBatch) => Promise<void>,
): Promise<JournalEnd | undefined> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const header = await read(file, 0, HEADER_BYTES, size);
    if (header === undefined || !header.subarray(0, MAGIC.length).equals(MAGIC) || header.readUInt32LE(MAGIC.length) !== FORMAT)
      return undefined;
    let end: JournalEnd = { path, bytes: HEADER_BYTES, checksum: 0, position: start };
    for (;;) {
      const frame = await read(file, end.bytes, FRAME_BYTES, size);
      const length = frame?.readUInt32LE(0) ?? Number.POSITIVE_INFINITY;
      const payload = length > MAX_MESSAGE_BYTES ? undefined : await read(file, end.bytes + FRAME_BYTES, length, size);
      if (frame === undefined || payload === undefined) return end;
      const checksum = crc32(payload, end.checksum);
      if (checksum !== frame.readUInt32LE(4)) return end;
      const message = deserialize(payload) as Message;
      if ("batch" in message) await onBatch(message.batch);
      const position = "position" in message ? message.position : end.position;
      end = { path, bytes: end.bytes + FRAME_BYTES + length, checksum, position };
    }
  } finally {
    await file.close();
  }
}

async function read(file: FileHandle, at: number, length: number, size: number): Promise<Buffer | undefined> {
  if (at + length > size) return undefined;
  const buffer = Buffer.allocUnsafeSlow(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(buffer, done, length - done, at + done);
    if (bytesRead === 0) return undefined;
    done += bytesRead;
  }
  return buffer;
}
