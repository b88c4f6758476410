/**
 * Snapshots of replicas, as files: a table's state at one position, in frames. One is made for all replicas of a definition that begin
 * within some time. It can be read while it is made. They are a cache: a start removes them.
 */
import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { encodeFrame, type OpenFrame } from "../frames/frames.ts";
import type { ChangeFeed } from "../records/feed/feed-types.ts";
import { batchFrame } from "./batch-frames.ts";
import type { Definition } from "./definition.ts";
import { type FollowedBranch, PROCESS } from "./followed-branch.ts";
import { formatAt } from "./position.ts";

export interface SnapshotLimits {
  /** Of all files together. */
  readonly totalBytes: number;
}

const DEFAULT_LIMITS: SnapshotLimits = { totalBytes: 4 * 2 ** 30 };
/** Changes since a snapshot that are more than this share of it are a reason to make a new one. */
const MOST_CHANGED = 0.2;
const LEAST_CHANGED_BYTES = 2 ** 20;
const PIECE_BYTES = 256 * 1024;

export function openFrame({ columns }: Definition, life: string): OpenFrame {
  const named = columns.map(({ name, type, dimension }) => ({ name, type, ...(dimension !== undefined && { dimension }) }));
  return { type: "open", version: 1, columns: named, life, process: PROCESS };
}

export class ReplicaSnapshot {
  readonly path: string;
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

  constructor(path: string, etag: string, read: number) {
    this.path = path;
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
    let file: FileHandle | undefined;
    try {
      file = await open(this.path, "r");
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
      await file?.close();
    }
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
    const key = `${branch.life} ${definition.key}`;
    const known = this.#snapshots.get(key);
    if (known !== undefined && !known.hasFailed && this.#isRecent(known, branch)) {
      known.usedAt = performance.now();
      return known;
    }
    if (known !== undefined) this.#forget(key, known);
    const id = randomUUID();
    const etag = `"${createHash("sha256").update(`${key} ${id}`).digest("base64url").slice(0, 22)}"`;
    const snapshot = new ReplicaSnapshot(join(this.#directory, `${id}.snapshot`), etag, branch.lastRead);
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

  async close(): Promise<void> {
    this.#snapshots.clear();
    if (this.#isReady !== undefined) await rm(this.#directory, { recursive: true, force: true });
  }

  async #prepare(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
    // Its files have values of records, so only the owner may read them.
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
  }

  #isRecent(snapshot: ReplicaSnapshot, branch: FollowedBranch): boolean {
    const changed = branch.bytesSince(snapshot.read);
    return changed !== undefined && (!snapshot.isDone || changed <= Math.max(LEAST_CHANGED_BYTES, MOST_CHANGED * snapshot.bytes));
  }

  async #make(snapshot: ReplicaSnapshot, branch: FollowedBranch, feed: ChangeFeed, definition: Definition): Promise<void> {
    const file = await open(snapshot.path, "wx", 0o600);
    try {
      const write = async (bytes: Uint8Array): Promise<void> => {
        this.#makeRoom(bytes.length);
        await file.writeFile(bytes);
        snapshot.grown(bytes.length);
      };
      await write(encodeFrame(openFrame(definition, branch.life)));
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
    } finally {
      await file.close();
    }
  }

  /** @throws {LodestoneError} TOO_LARGE when everything else is in use. */
  #makeRoom(bytes: number): void {
    let total = bytes + [...this.#snapshots.values()].reduce((sum, own) => sum + own.bytes, 0);
    const unused = [...this.#snapshots].filter(([, own]) => own.isDone && own.readers === 0).sort(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [key, own] of unused) {
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

  /** Readers that have it open read on. */
  #forget(key: string, snapshot: ReplicaSnapshot): void {
    if (this.#snapshots.get(key) === snapshot) this.#snapshots.delete(key);
    void rm(snapshot.path, { force: true }).catch(() => {});
  }
}
