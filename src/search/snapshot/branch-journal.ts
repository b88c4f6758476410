/**
 * The journal of a branch snapshot: changes since the snapshot was begun, appended as they are applied. With
 * it, a stop has little left to write, and a start reads the feed only from a moment ago. A journal belongs
 * to one snapshot, whose header has its id; a new snapshot gets a new journal.
 *
 * The file consists of framed messages (message-frames.ts): batches, and feed positions that follow all batches
 * that lead to them. A crash may cut off or damage the end of the file: everything before the first message that
 * fails its check is used. Batches without their position are used too. That does no harm, because the feed
 * delivers them again.
 */
import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { crashPoint } from "../../files/fault-points.ts";
import type { FeedBatch, FeedPosition } from "../../records/feed/feed-types.ts";
import { fileHeader, framed, HEADER_BYTES, MessageReader, readFormat, writeFramed } from "./message-frames.ts";
import { overlapped } from "./overlapped.ts";

const MAGIC = "LODEJRNL";
const FORMAT = 1;
/** If more batches than this are not on disk yet, the next change waits. */
const MAX_BACKLOG_BATCHES = 64;

/** Batches that are passed on together: to wait for the shards after each takes longer than its work. */
const GROUP_BYTES = 1 << 22;

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
export function removeOtherFiles(snapshotPath: string, kept: BranchJournal): Promise<void> {
  return removeFiles(snapshotPath, (path) => /\.(journal|draft)$/.test(path) && path !== kept.path);
}

/** Deletes the drafts that a kill, or a stop that could not wait for them, has left: each is as large as a snapshot. */
export function removeDrafts(snapshotPath: string): Promise<void> {
  return removeFiles(snapshotPath, (path) => path.endsWith(".draft"));
}

/** Of one branch. */
async function removeFiles(snapshotPath: string, isMeant: (path: string) => boolean): Promise<void> {
  const directory = dirname(snapshotPath);
  const prefix = basename(journalPath(snapshotPath, ""), ".journal");
  for (const file of await readdir(directory)) {
    const path = join(directory, file);
    if (file.startsWith(prefix) && isMeant(path)) await rm(path, { force: true });
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
    await file.writeFile(fileHeader(MAGIC, FORMAT));
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
    const next = framed(message, this.#checksum);
    this.#checksum = next.checksum;
    await writeFramed(this.#file, next, this.#bytes);
    this.#bytes += next.bytes;
    crashPoint("journal-write");
  }
}

/** Passes the batches on, many small ones together. @returns where to continue; undefined when there is no journal. */
export async function readJournal(
  path: string,
  start: FeedPosition,
  onBatches: (batches: readonly FeedBatch[]) => Promise<void>,
): Promise<JournalEnd | undefined> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const header = await readFormat(file, MAGIC, size);
    if ("fault" in header || header.format !== FORMAT) return undefined;
    let end: JournalEnd = { path, bytes: HEADER_BYTES, checksum: 0, position: start };
    const reader = new MessageReader(file, size, HEADER_BYTES);
    async function* groups(): AsyncGenerator<readonly FeedBatch[], void, void> {
      let batches: FeedBatch[] = [];
      let begin = end.bytes;
      for (let read = await reader.next(); !("fault" in read); read = await reader.next()) {
        const message = read.message as Message;
        end = { path, bytes: read.end, checksum: read.checksum, position: "position" in message ? message.position : end.position };
        if ("batch" in message) batches.push(message.batch);
        if (end.bytes - begin < GROUP_BYTES) continue;
        yield batches;
        [batches, begin] = [[], end.bytes];
      }
      yield batches;
    }
    await overlapped(groups(), onBatches);
    return end;
  } finally {
    await file.close();
  }
}
