/** What the server offers to replicas: snapshots, and the changes since a position, for any number of them. */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { FairShares } from "../fairness/fair-shares.ts";
import { encodeFrame } from "../frames/frames.ts";
import type { BranchRef } from "../records/schema.ts";
import { Definition, type ReplicaRequest } from "./definition.ts";
import { branchKeyOf, FollowedBranch, type ReplicatedRecords } from "./followed-branch.ts";
import { formatAt, parseReplicaPosition } from "./position.ts";
import { openFrame, type ReplicaSnapshot, ReplicaSnapshots } from "./snapshots.ts";

export interface ChangesRequest extends ReplicaRequest {
  readonly position: string;
  /** Ends with the first changes, or after so many seconds; undefined: goes on. */
  readonly wait?: number | undefined;
  /** The first position has everything that was written before the request. */
  readonly fresh?: boolean | undefined;
}

/** So that proxies and clients see that the connection lives: HAProxy, as Debian sets it up, ends one that is silent for 50 seconds. */
const ALIVE_EVERY_MS = 45_000;
/** A group without changes for a replica only moves its position, and is not told more often. */
const POSITION_EVERY_MS = 50;
const JOINED_BYTES = 64 * 1024;
/** Replicas that are connected at once; each holds little, but not nothing. */
const MOST_STREAMS = 10_000;
/** A branch that no replica asks for is read for as long; FollowedBranch.rest says what becomes of it then. */
const LINGER_MS = 10 * 60_000;

export interface ReplicaHubOptions {
  readonly directory: string;
  readonly onFault?: (error: unknown) => void;
}

interface Entry {
  readonly started: Promise<FollowedBranch>;
  branch?: FollowedBranch;
  users: number;
  timer?: NodeJS.Timeout | undefined;
}

export class ReplicaHub {
  readonly #records: ReplicatedRecords;
  readonly #feed: ReplicatedRecords["feed"];
  readonly #snapshots: ReplicaSnapshots;
  readonly #onFault: (error: unknown) => void;
  readonly #branches = new Map<string, Entry>();
  readonly #stopListening: () => void;
  readonly #closing = new AbortController();
  readonly #streams = new FairShares(MOST_STREAMS);

  constructor(records: ReplicatedRecords, { directory, onFault = () => {} }: ReplicaHubOptions) {
    this.#records = records;
    this.#feed = records.feed.forFollower("replicas");
    this.#snapshots = new ReplicaSnapshots(directory);
    this.#onFault = onFault;
    this.#stopListening = this.#feed.onChange((ref) => this.#branches.get(branchKeyOf(ref))?.branch?.changed());
  }

  /**
   * For the answer of a write: a replica whose position has this read of this reading has the write.
   * undefined: no replica follows the branch.
   */
  readAfterWrite(ref: BranchRef): string | undefined {
    const branch = this.#branches.get(branchKeyOf(ref))?.branch;
    if (branch === undefined) return undefined;
    // A read that has it may have been before this one; then nothing else would bring this one about.
    return `${branch.reading}~${branch.changed()}`;
  }

  async snapshot(ref: BranchRef, table: string, request: ReplicaRequest): Promise<ReplicaSnapshot> {
    return this.#use(ref, async (branch) => {
      const definition = await this.#define(ref, table, request, branch);
      const snapshot = await this.#snapshots.get(branch, this.#feed, definition);
      await snapshot.begun();
      return snapshot;
    });
  }

  /** Of a state that has everything that was written before the call: its read, and the position from which changes go on. */
  async now(ref: BranchRef, signal: AbortSignal): Promise<{ readonly read: string; readonly position: string }> {
    return this.#use(ref, async (branch) => {
      const position = await branch.readNow(signal);
      const { life, reading, read } = position;
      return { read: `${reading}~${read}`, position: `${life}~${reading}~${formatAt(position)}` };
    });
  }

  /** @throws {LodestoneError} INVALID, NOT_FOUND: of the request, before anything is sent. */
  async changes(
    ref: BranchRef,
    table: string,
    request: ChangesRequest,
    { signal, caller }: { readonly signal: AbortSignal; readonly caller: string },
  ): Promise<AsyncGenerator<Buffer, void, undefined>> {
    const position = parseReplicaPosition(request.position);
    if (position === undefined) throw new LodestoneError("INVALID", "position: expected one that a frame has given.");
    if (!this.#streams.take(caller))
      throw new LodestoneError("OVERLOADED", "You already have as many replicas as this server gives one caller; try again later.", {
        retryAfterSeconds: 30,
      });
    const entry = this.#enter(ref);
    let hasLeft = false;
    const leave = (): void => {
      if (hasLeft) return;
      hasLeft = true;
      this.#streams.give(caller);
      this.#leave(ref, entry);
    };
    try {
      const branch = await entry.started;
      const definition = await this.#define(ref, table, request, branch);
      const ends = AbortSignal.any([signal, this.#closing.signal]);
      // A stream whose client has gone may never be asked for its next piece.
      ends.addEventListener("abort", leave, { once: true });
      return this.#stream(branch, definition, position, request, ends, leave);
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Ends all streams; their replicas come back to the next server. */
  drain(): void {
    this.#closing.abort(new LodestoneError("UNAVAILABLE", "The server is shutting down."));
  }

  async close(): Promise<void> {
    this.drain();
    this.#stopListening();
    for (const { branch, timer } of this.#branches.values()) {
      clearTimeout(timer);
      branch?.end("The server is shutting down.");
    }
    this.#branches.clear();
    this.#snapshots.close();
  }

  async *#stream(
    branch: FollowedBranch,
    definition: Definition,
    from: NonNullable<ReturnType<typeof parseReplicaPosition>>,
    { wait, fresh }: ChangesRequest,
    signal: AbortSignal,
    leave: () => void,
  ): AsyncGenerator<Buffer, void, undefined> {
    const deadline = wait === undefined ? undefined : performance.now() + 1000 * wait;
    let position = from;
    let toldAtMs = performance.now();
    let isTold = true;
    try {
      yield toBuffer(encodeFrame(openFrame(definition, branch)));
      const least = fresh === true ? (await branch.readNow(signal)).read : 0;
      for (let isFirst = true; ; isFirst = false) {
        const seen = branch.lastRead;
        const next = await branch.next(definition, position, isFirst);
        if (next !== undefined && "restart" in next) {
          yield toBuffer(encodeFrame({ type: "restart", reason: next.restart }));
          return;
        }
        const now = performance.now();
        if (next !== undefined) {
          position = next.position;
          isTold = position.read >= least && (next.frames.length > 0 || isFirst || now - toldAtMs >= POSITION_EVERY_MS);
          const told = isTold ? [encodeFrame({ type: "position", at: formatAt(position) })] : [];
          yield* joined([...next.frames, ...told]);
          if (!isTold) continue;
          toldAtMs = now;
          if ((next.frames.length > 0 || fresh === true) && deadline !== undefined) return;
          continue;
        }
        const tellAt = toldAtMs + (isTold ? ALIVE_EVERY_MS : POSITION_EVERY_MS);
        const isNew =
          now < Math.min(tellAt, deadline ?? tellAt) && (await branch.wake(signal, Math.min(tellAt, deadline ?? tellAt) - now, seen));
        if (isNew) continue;
        yield toBuffer(encodeFrame({ type: "position", at: formatAt(position) }));
        [toldAtMs, isTold] = [performance.now(), true];
        if (deadline !== undefined && toldAtMs >= deadline) return;
      }
    } finally {
      leave();
    }
  }

  async #define(ref: BranchRef, table: string, request: ReplicaRequest, branch: FollowedBranch): Promise<Definition> {
    const definition = new Definition(await this.#records.branch(ref), table, request);
    branch.want(definition);
    return definition;
  }

  async #use<Result>(ref: BranchRef, work: (branch: FollowedBranch) => Promise<Result>): Promise<Result> {
    const entry = this.#enter(ref);
    try {
      return await work(await entry.started);
    } finally {
      this.#leave(ref, entry);
    }
  }

  #enter(ref: BranchRef): Entry {
    const key = branchKeyOf(ref);
    let entry = this.#branches.get(key);
    if (entry === undefined || entry.branch?.ended !== undefined) {
      entry?.branch?.replaced();
      const started = FollowedBranch.start(ref, this.#records, this.#feed, this.#onFault);
      const made: Entry = { started, users: 0 };
      entry = made;
      this.#branches.set(key, made);
      started.then(
        (branch) => {
          made.branch = branch;
          // What came while it was started.
          branch.changed();
        },
        () => {
          if (this.#branches.get(key) === made) this.#branches.delete(key);
        },
      );
    }
    clearTimeout(entry.timer);
    entry.users++;
    return entry;
  }

  #leave(ref: BranchRef, entry: Entry): void {
    if (--entry.users > 0) return;
    const key = branchKeyOf(ref);
    entry.timer = setTimeout(() => {
      entry.branch?.rest(() => {
        if (this.#branches.get(key) === entry) this.#branches.delete(key);
      });
    }, LINGER_MS).unref();
  }
}

/** Small ones in one piece: each is written to a socket. */
function* joined(frames: readonly Uint8Array<ArrayBuffer>[]): Generator<Buffer, void, undefined> {
  const bytes = frames.reduce((sum, { length }) => sum + length, 0);
  if (bytes <= JOINED_BYTES) {
    if (bytes > 0) yield Buffer.concat(frames, bytes);
  } else for (const frame of frames) yield toBuffer(frame);
}

const toBuffer = (bytes: Uint8Array<ArrayBuffer>): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
