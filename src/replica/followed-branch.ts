/**
 * The changes of one branch for all its replicas: read once, kept for a while, and given to each from where it is.
 *
 *   idle ── a change, or somebody wants to know ──> reading ── all read ──> idle
 *     ^                                               │ fails
 *     └──────────── the pause is over ──── pausing <──┘
 *
 * Reads are numbered. What was written before a read began is in it. A read that is complete makes a group: all changes since the
 * group before. A replica at position p gets the groups after the read of p, once the last of them sees all that p does: the
 * snapshot of a replica is made beside the reads, so the next group may be older than it.
 *
 * A replica of another reading's positions, or of an old one, is brought up to date by a read of its own, between two others, so
 * that the next group is later than what it got.
 */
import { randomUUID } from "node:crypto";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { ChangeFeed, FeedBatch, FeedPosition } from "../records/feed/feed-types.ts";
import { isSeenBy } from "../records/feed/position.ts";
import { formatBranchRef } from "../records/identifiers.ts";
import type { BranchInfo, BranchRef } from "../records/schema.ts";
import { batchFrame } from "./batch-frames.ts";
import type { Definition } from "./definition.ts";
import type { ReplicaPosition } from "./position.ts";
import { WaitingReplicas } from "./waiting-replicas.ts";

/** What is kept for replicas that are behind. */
const KEPT_BYTES = 32 * 2 ** 20;
const KEPT_GROUPS = 10_000;
/** Changes of more are not sent: a new snapshot is less. */
const MOST_GROUP_BYTES = 32 * 2 ** 20;
/** The feed keeps changes for as long, for replicas that come back, or until there are more than are sent. */
const RETAINED_MS = 24 * 3_600_000;
/** Between two positions up to which it may forget. */
const PASSED_EVERY_MS = 10_000;
/** While nobody has asked for a while and nothing is read: looked at so often, and for so much kept until the next replica. */
const RESTS_MS = 10 * 60_000;
const RESTING_BYTES = 64 * 2 ** 20;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

const SCHEMA_CHANGED = "The schema has changed.";

interface Group {
  readonly read: number;
  readonly feed: FeedPosition;
  /** undefined: they were too many. */
  readonly batches: readonly FeedBatch[] | undefined;
  readonly bytes: number;
  readonly schemaVersion: number;
  /** By the key of the definition. */
  readonly frames: Map<string, readonly Uint8Array<ArrayBuffer>[]>;
}

export interface ReplicatedRecords {
  readonly feed: ChangeFeed;
  branch(ref: BranchRef): Promise<BranchInfo>;
}

/** What a replica gets next: frames that lead to a position; or why it has to begin anew. */
export type Next =
  | { readonly frames: readonly Uint8Array<ArrayBuffer>[]; readonly position: ReplicaPosition }
  | { readonly restart: string };

export class FollowedBranch {
  readonly ref: BranchRef;
  readonly #records: ReplicatedRecords;
  readonly #feed: ChangeFeed;
  readonly #onFault: (error: unknown) => void;
  readonly life: string;
  /** Who counts these reads: numbers of another reading, of this process or another one, say nothing here. */
  readonly reading = randomUUID().slice(0, 8);
  #feedPosition: FeedPosition;
  #schemaVersion: number;
  readonly #groups: Group[] = [];
  #keptBytes = 0;
  /** Columns that are read of each table, and from which read on. */
  readonly #tables = new Map<number, { readonly name: string; readonly columns: Set<string>; since: number }>();
  #begun = 0;
  #done = 0;
  /** The last read that somebody wants. */
  #wanted = 0;
  #isLooping = false;
  #pauseMs = FIRST_PAUSE_MS;
  #ended: string | undefined;
  readonly #waiting = new WaitingReplicas();
  readonly #catchUps = new Map<string, { readonly run: () => Promise<void>; readonly result: Promise<Next> }>();
  readonly #passed: { readonly atMs: number; readonly feed: FeedPosition; readonly bytes: number }[] = [];
  /** Of all changes that were read. */
  #readBytes = 0;
  #resting: NodeJS.Timeout | undefined;
  #isReplaced = false;

  private constructor(ref: BranchRef, records: ReplicatedRecords, feed: ChangeFeed, start: Start, onFault: (error: unknown) => void) {
    this.ref = ref;
    this.#records = records;
    this.#feed = feed;
    this.#onFault = onFault;
    this.life = start.incarnation;
    this.#feedPosition = start.position;
    this.#schemaVersion = start.schemaVersion;
  }

  static async start(
    ref: BranchRef,
    records: ReplicatedRecords,
    feed: ChangeFeed,
    onFault: (error: unknown) => void,
  ): Promise<FollowedBranch> {
    // Reads nothing: it is the position of now.
    const start = await feed.readAll(ref, [], async () => {});
    return new FollowedBranch(ref, records, feed, start, onFault);
  }

  /** Where a snapshot that is begun now may be: what the groups so far have is in it. */
  get lastRead(): number {
    return this.#done;
  }

  /** Why it is followed no longer. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** Of the changes after a read; undefined: they are not kept any more, or were too many. */
  bytesSince(read: number): number | undefined {
    const later = this.#groups.filter((group) => group.read > read);
    const isKept = later.length === this.#done - read && later.every(({ batches }) => batches !== undefined);
    return isKept ? later.reduce((sum, { bytes }) => sum + bytes, 0) : undefined;
  }

  /** From the next read on the definition's columns are read. */
  want(definition: Definition): void {
    const own = this.#tables.get(definition.tableId) ?? { name: definition.table, columns: new Set<string>(), since: 0 };
    const before = own.columns.size;
    for (const name of definition.names) own.columns.add(name);
    if (own.columns.size > before) own.since = this.#begun + 1;
    this.#tables.set(definition.tableId, own);
  }

  /** Something may have changed. @returns the read that has all that was written before this call. */
  changed(): number {
    const read = this.#begun + 1;
    this.#want(read);
    return read;
  }

  /** Resolves when a read is done that has all that was written before this call. */
  async readNow(signal: AbortSignal): Promise<ReplicaPosition> {
    const read = this.changed();
    while (this.#done < read && this.#ended === undefined) await this.wake(signal);
    if (this.#ended !== undefined) throw new LodestoneError("UNAVAILABLE", this.#ended, { retryAfterSeconds: 1 });
    return this.#position(this.#done, this.#feedPosition);
  }

  /**
   * Resolves at the next group (true), when there will be none (true), or after so many milliseconds (false); rejects with the signal's
   * reason.
   * @param seen  `lastRead` when the caller last looked: a group that came since then is not missed.
   */
  async wake(signal: AbortSignal, timeMs?: number, seen = this.#done): Promise<boolean> {
    signal.throwIfAborted();
    if (this.#done > seen || this.#ended !== undefined) return true;
    return this.#waiting.wait(signal, timeMs);
  }

  end(reason: string): void {
    clearTimeout(this.#resting);
    this.#ended ??= reason;
    this.#waiting.end();
  }

  /**
   * Nobody has asked for it for a while: nothing is read any more, but the feed keeps what replicas that come back would miss, for a time
   * that has a bound, and as long as it is not too much.
   * @param onOver  called after that.
   */
  rest(onOver: () => void): void {
    this.end("Nobody has asked for it for a while.");
    this.#groups.splice(0);
    const until = performance.now() + RETAINED_MS;
    const look = async (): Promise<void> => {
      try {
        if (performance.now() < until && (await this.#feed.backlogBytes(this.ref)) <= RESTING_BYTES) return this.#lookLater(look);
        // Meanwhile another one may have come, whose rows these are now.
        if (this.#isReplaced) return;
        await this.#feed.release(this.life);
        onOver();
      } catch (error) {
        if (error instanceof LodestoneError && error.code === "NOT_FOUND") return onOver();
        this.#onFault(error);
        this.#lookLater(look);
      }
    };
    this.#lookLater(look);
  }

  /** Another one follows the branch from now on, and what is kept is kept for that. */
  replaced(): void {
    this.#isReplaced = true;
    clearTimeout(this.#resting);
  }

  #lookLater(look: () => Promise<void>): void {
    if (this.#isReplaced) return;
    this.#resting = setTimeout(() => void look(), RESTS_MS).unref();
  }

  /**
   * What follows the position. undefined: nothing yet.
   * @param isFirst  of a connection: the position may be of another reading.
   */
  async next(definition: Definition, position: ReplicaPosition, isFirst: boolean): Promise<Next | undefined> {
    if (this.#ended !== undefined) return { restart: this.#ended };
    if (position.life !== this.life) return { restart: "The branch is another one, of the same name." };
    const table = this.#tables.get(definition.tableId);
    const first = this.#groups.findIndex(({ read }) => read > position.read);
    const isKept = position.read === this.#done || (first >= 0 && this.#groups[first]!.read === position.read + 1);
    const isOurs = position.reading === this.reading && isKept && table !== undefined && position.read + 1 >= table.since;
    if (!isOurs)
      return isFirst || position.reading === this.reading ? this.#catchUp(definition, position) : { restart: "The server is another one." };
    if (first < 0) return undefined;
    // All of them at once: the more replicas there are, the fewer times each is written to.
    const frames: Uint8Array<ArrayBuffer>[] = [];
    let last: Group | undefined;
    for (const group of this.#groups.slice(first)) {
      if (group.batches === undefined) return { restart: "Too much has changed: a new snapshot is less." };
      const own = (await this.#isCurrent(definition)) ? framesOf(group, definition) : undefined;
      if (own === undefined) return { restart: SCHEMA_CHANGED };
      frames.push(...own);
      last = group;
    }
    return last !== undefined && isSeenBy(position.feed, last.feed)
      ? { frames, position: this.#position(last.read, last.feed) }
      : undefined;
  }

  #position(read: number, feed: FeedPosition): ReplicaPosition {
    return { life: this.life, reading: this.reading, read, feed };
  }

  readonly #checked = new Map<string, number>();

  async #isCurrent(definition: Definition): Promise<boolean> {
    const version = this.#schemaVersion;
    if (this.#checked.get(definition.key) === version) return true;
    const isOf = definition.isOf(await this.#records.branch(this.ref));
    if (isOf) this.#checked.set(definition.key, version);
    return isOf;
  }

  #want(read: number): void {
    this.#wanted = Math.max(this.#wanted, read);
    if (!this.#isLooping && this.#ended === undefined) void this.#loop();
  }

  async #loop(): Promise<void> {
    this.#isLooping = true;
    try {
      while ((this.#done < this.#wanted || this.#catchUps.size > 0) && this.#ended === undefined) {
        await new Promise((resolve) => setTimeout(resolve, this.#waiting.gatheredMs));
        try {
          for (const [key, { run }] of this.#catchUps) {
            this.#catchUps.delete(key);
            await run();
          }
          if (this.#done < this.#wanted) await this.#read();
          this.#pauseMs = FIRST_PAUSE_MS;
        } catch (error) {
          if (error instanceof LodestoneError && error.code === "NOT_FOUND") this.end("The branch has been deleted.");
          else this.#onFault(error);
          await new Promise((resolve) => setTimeout(resolve, this.#pauseMs * (1 - Math.random() / 2)).unref());
          this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
        }
      }
    } finally {
      this.#isLooping = false;
    }
  }

  async #read(): Promise<void> {
    const read = ++this.#begun;
    const changes = await this.#changesSince(this.#feedPosition);
    if (changes === undefined) return this.end("What has changed is not known any more.");
    this.#feedPosition = changes.feed;
    this.#schemaVersion = changes.schemaVersion;
    this.#done = read;
    this.#groups.push({ ...changes, read, frames: new Map() });
    this.#keptBytes += changes.bytes;
    this.#readBytes += changes.batches === undefined ? MOST_GROUP_BYTES : changes.bytes;
    while (this.#groups.length > KEPT_GROUPS || this.#keptBytes > KEPT_BYTES) this.#keptBytes -= this.#groups.shift()!.bytes;
    await this.#waiting.tell();
    await this.#acknowledge();
  }

  /** Lets the feed forget what nobody comes back for. */
  async #acknowledge(): Promise<void> {
    const now = performance.now();
    const last = this.#passed.at(-1);
    if (last === undefined || now - last.atMs >= PASSED_EVERY_MS)
      this.#passed.push({ atMs: now, feed: this.#feedPosition, bytes: this.#readBytes });
    let old: FeedPosition | undefined;
    const isPast = ({ atMs, bytes }: { atMs: number; bytes: number }): boolean =>
      atMs < now - RETAINED_MS || bytes < this.#readBytes - MOST_GROUP_BYTES;
    while (this.#passed.length > 1 && isPast(this.#passed[0]!)) old = this.#passed.shift()!.feed;
    if (old !== undefined) await this.#feed.acknowledge(this.ref, old, this.life);
  }

  /** undefined: the position is too old, or of another life. */
  async #changesSince(from: FeedPosition, isForeign = false): Promise<Omit<Group, "read" | "frames"> | undefined> {
    let batches: FeedBatch[] | undefined = [];
    let bytes = 0;
    for (let position = from; ; ) {
      const only = new Map([...this.#tables.values()].map(({ name, columns }) => [name, [...columns]]));
      const changes = await this.#feed.readSince(this.ref, position, this.life, { only, isForeign });
      if (changes === null) return undefined;
      for (const batch of changes.batches) {
        bytes += bytesOf(batch);
        if (bytes > MOST_GROUP_BYTES) batches = undefined;
        batches?.push(batch);
      }
      position = changes.position;
      if (!changes.complete) continue;
      return { feed: position, batches, bytes: batches === undefined ? 0 : bytes, schemaVersion: changes.schemaVersion };
    }
  }

  /** Replicas at the same position share a read. */
  #catchUp(definition: Definition, position: ReplicaPosition): Promise<Next> {
    const key = `${definition.key} ${position.feed}`;
    const under = this.#catchUps.get(key);
    if (under !== undefined) return under.result;
    let run: () => Promise<void> = async () => {};
    const result = new Promise<Next>((resolve, reject) => {
      run = async () => {
        try {
          const changes = await this.#changesSince(position.feed, true);
          if (changes === undefined) return resolve({ restart: "The position is too old." });
          if (changes.batches === undefined) return resolve({ restart: "Too much has changed: a new snapshot is less." });
          const frames = framesOf({ ...changes, frames: new Map() }, definition);
          if (frames === undefined) return resolve({ restart: SCHEMA_CHANGED });
          resolve({ frames, position: this.#position(this.#done, changes.feed) });
        } catch (error) {
          reject(error as Error);
          throw error;
        }
      };
    });
    result.catch(() => {});
    this.#catchUps.set(key, { run, result });
    if (!this.#isLooping) void this.#loop();
    return result;
  }
}

type Start = Awaited<ReturnType<ChangeFeed["readAll"]>>;

/** undefined: a column of the definition was not there when the group was read. */
function framesOf(group: Pick<Group, "batches" | "frames">, definition: Definition): readonly Uint8Array<ArrayBuffer>[] | undefined {
  const known = group.frames.get(definition.key);
  if (known !== undefined) return known;
  const own = group.batches!.filter(({ table }) => table === definition.table);
  if (own.some(({ columns }) => [...definition.names].some((name) => !columns.has(name)))) return undefined;
  const frames = own.flatMap((batch) => batchFrame(definition, batch, true) ?? []);
  group.frames.set(definition.key, frames);
  return frames;
}

/** About what it takes. */
function bytesOf({ ids, columns, deleted }: FeedBatch): number {
  let bytes = 0;
  for (const id of [...ids, ...deleted]) bytes += 2 * id.length + 32;
  for (const column of columns.values()) {
    if (column.kind === "vector") bytes += column.elements.byteLength;
    else for (const value of column.values) bytes += typeof value === "string" ? 2 * value.length + 16 : 16;
  }
  return bytes;
}

export const branchKeyOf = formatBranchRef;
