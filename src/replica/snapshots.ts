/**
 * Snapshots of replicas, as files: a table's state at one position, in frames. One is made for all replicas of a definition that begin
 * within some time. It can be read while it is made. The files have no names, so they are gone with the process, and servers that share a
 * folder share nothing.
 */
import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { encodeFrame, FRAMES_VERSION, type OpenFrame } from "../frames/frames.ts";
import type { ChangeFeed } from "../records/feed/feed-types.ts";
import { batchFrame } from "./batch-frames.ts";
import type { Definition } from "./definition.ts";
import type { FollowedBranch } from "./followed-branch.ts";
import { formatAt } from "./position.ts";

export interface SnapshotLimits {
  /** Of all files together. */
  readonly totalBytes: number;
  /** Each holds a descriptor. */
  readonly files: number;
}

const DEFAULT_LIMITS: SnapshotLimits = { totalBytes: 4 * 2 ** 30, files: 200 };
/** Who has just been given one begins to read it within this time. */
const BEGINS_WITHIN_MS = 30_000;
/** Changes since a snapshot that are more than this share of it are a reason to make a new one. */
const MOST_CHANGED = 0.2;
const LEAST_CHANGED_BYTES = 2 ** 20;
const PIECE_BYTES = 256 * 1024;

export function openFrame({ columns }: Definition, { life, reading }: FollowedBranch): OpenFrame {
  const named = columns.map(({ name, type, dimension }) => ({ name, type, ...(dimension !== undefined && { dimension }) }));
  return { type: "open", version: FRAMES_VERSION, columns: named, life, reading };
}

export class ReplicaSnapshot {
  readonly file: Promise<FileHandle>;
  readonly etag: string;
  /** Of the branch's reads: what comes after it follows. */
  readonly read: number;
  /** Written so far. */
  bytes = 0;
  isDone = false;
  /** Readers of the file. */
  readers = 0;
  usedAt = performance.now();
  #failed: Error | undefined;
  #waiting: (() => void)[] = [];
  #isForgotten = false;

  constructor(file: Promise<FileHandle>, etag: string, read: number) {
    this.file = file;
    this.etag = etag;
    this.read = read;
  }

  get hasFailed(): boolean {
    return this.#failed !== undefined;
  }

  grown(bytes: number): void {
    this.bytes += bytes;
    this.#wake();
  }

  finish(error?: Error): void {
    this.#failed = error;
    this.isDone = error === undefined;
    this.#wake();
  }

  /** Resolves when the first bytes are there. @throws why there are none. */
  async begun(): Promise<void> {
    while (this.bytes === 0 && !this.isDone) await this.#more();
  }

  /** Its bytes from a place on, as they are written. Ends early, with an error, when it cannot be finished. */
  async *bytesFrom(start: number): AsyncGenerator<Buffer, void, undefined> {
    this.readers++;
    try {
      const file = await this.file;
      for (let at = start; ; ) {
        while (at >= this.bytes && !this.isDone) await this.#more();
        if (at >= this.bytes) return;
        const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, this.bytes - at));
        const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
        if (bytesRead === 0) throw new Error("the snapshot's file is shorter than it was written");
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      this.readers--;
      this.usedAt = performance.now();
      this.#closeUnused();
    }
  }

  /** Nobody will be given it any more. Readers that have it read on. */
  forget(): void {
    this.#isForgotten = true;
    setTimeout(() => this.#closeUnused(), BEGINS_WITHIN_MS).unref();
  }

  #closeUnused(): void {
    const isMade = this.isDone || this.hasFailed;
    if (this.#isForgotten && isMade && this.readers === 0) void this.file.then((file) => file.close()).catch(() => {});
  }

  async #more(): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.#failed !== undefined) throw this.#failed;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

export class ReplicaSnapshots {
  readonly #directory: string;
  readonly #limits: SnapshotLimits;
  readonly #snapshots = new Map<string, ReplicaSnapshot>();
  #isReady: Promise<void> | undefined;

  /** @param directory  of its own; what is in it is removed. */
  constructor(directory: string, limits = DEFAULT_LIMITS) {
    this.#directory = directory;
    this.#limits = limits;
  }

  /** One that is recent enough, or a new one, which is being made. */
  async get(branch: FollowedBranch, feed: ChangeFeed, definition: Definition): Promise<ReplicaSnapshot> {
    this.#isReady ??= this.#prepare();
    await this.#isReady;
    // Of its reading: the snapshot's number is one of its reads.
    const key = `${branch.life} ${branch.reading} ${definition.key}`;
    const known = this.#snapshots.get(key);
    if (known !== undefined && !known.hasFailed && this.#isRecent(known, branch)) {
      known.usedAt = performance.now();
      return known;
    }
    if (known !== undefined) this.#forget(key, known);
    this.#makePlace();
    const id = randomUUID();
    const etag = `"${createHash("sha256").update(`${key} ${id}`).digest("base64url").slice(0, 22)}"`;
    const snapshot = new ReplicaSnapshot(openNameless(join(this.#directory, `${id}.snapshot`)), etag, branch.lastRead);
    this.#snapshots.set(key, snapshot);
    void this.#make(snapshot, branch, feed, definition).then(
      () => snapshot.finish(),
      (error: Error) => {
        this.#forget(key, snapshot);
        snapshot.finish(error);
      },
    );
    return snapshot;
  }

  close(): void {
    for (const [key, snapshot] of this.#snapshots) this.#forget(key, snapshot);
  }

  async #prepare(): Promise<void> {
    // Its files have values of records, so only the owner may read them.
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
  }

  #isRecent(snapshot: ReplicaSnapshot, branch: FollowedBranch): boolean {
    const changed = branch.bytesSince(snapshot.read);
    return changed !== undefined && (!snapshot.isDone || changed <= Math.max(LEAST_CHANGED_BYTES, MOST_CHANGED * snapshot.bytes));
  }

  async #make(snapshot: ReplicaSnapshot, branch: FollowedBranch, feed: ChangeFeed, definition: Definition): Promise<void> {
    const file = await snapshot.file;
    const write = async (bytes: Uint8Array): Promise<void> => {
      this.#makeRoom(bytes.length);
      await file.writeFile(bytes);
      snapshot.grown(bytes.length);
    };
    await write(encodeFrame(openFrame(definition, branch)));
    const { position, incarnation } = await feed.readAll(
      branch.ref,
      [{ table: definition.table, columns: [...definition.names] }],
      async (batch, isChange) => {
        const frame = batchFrame(definition, batch, isChange);
        if (frame !== undefined) await write(frame);
      },
    );
    if (incarnation !== branch.life) throw new LodestoneError("CONFLICT", "The branch was made anew while it was read; try again.");
    await write(encodeFrame({ type: "position", at: formatAt({ read: snapshot.read, feed: position }) }));
  }

  /** @throws {LodestoneError} OVERLOADED when all are in use. */
  #makePlace(): void {
    if (this.#snapshots.size < this.#limits.files) return;
    const [oldest] = this.#unused();
    if (oldest === undefined)
      throw new LodestoneError("OVERLOADED", "Too many different replicas are being loaded; try again later.", { retryAfterSeconds: 30 });
    this.#forget(...oldest);
  }

  /** Those that nobody reads, the one that was read longest ago first. */
  #unused(): [string, ReplicaSnapshot][] {
    return [...this.#snapshots].filter(([, own]) => own.isDone && own.readers === 0).sort(([, a], [, b]) => a.usedAt - b.usedAt);
  }

  /** @throws {LodestoneError} TOO_LARGE when everything else is in use. */
  #makeRoom(bytes: number): void {
    let total = bytes + [...this.#snapshots.values()].reduce((sum, own) => sum + own.bytes, 0);
    for (const [key, own] of this.#unused()) {
      if (total <= this.#limits.totalBytes) return;
      this.#forget(key, own);
      total -= own.bytes;
    }
    if (total > this.#limits.totalBytes)
      throw new LodestoneError(
        "TOO_LARGE",
        `The snapshots of replicas take more than ${Math.floor(this.#limits.totalBytes / 2 ** 20)} MiB on the server's disk. Ask for fewer columns, or for a part of the records by a filter.`,
      );
  }

  #forget(key: string, snapshot: ReplicaSnapshot): void {
    if (this.#snapshots.get(key) === snapshot) this.#snapshots.delete(key);
    snapshot.forget();
  }
}

/** A file that is gone when it is closed. */
async function openNameless(path: string): Promise<FileHandle> {
  const file = await open(path, "wx+", 0o600);
  await rm(path);
  return file;
}
