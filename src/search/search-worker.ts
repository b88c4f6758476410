/**
 * The thread that holds vectors and words, and answers searches. Messages that change a branch are processed one at
 * a time, in order of arrival. A vector search takes all that it reads between two of them, and so sees one position;
 * for searches of several steps see text/search-texts.ts and text/hold.ts.
 */
import { parentPort, workerData } from "node:worker_threads";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { crashPoint } from "../files/fault-points.ts";
import type { FeedBatch } from "../records/feed/feed-types.ts";
import { describeError } from "../threads/worker-calls.ts";
import { BranchState } from "./branch-state.ts";
import { type ColumnPlacement, isLost } from "./column-index.ts";
import { IndexRoom } from "./index-room.ts";
import type {
  BranchKey,
  BranchStats,
  CallMessage,
  Commit,
  EngineCalls,
  Method,
  NotAnswered,
  ReplyMessage,
  RestoredState,
  WorkerOptions,
} from "./search-messages.ts";
import { BranchFiles } from "./snapshot/branch-files.ts";
import { removeDrafts } from "./snapshot/branch-journal.ts";
import { type RestoredBranch, readBranchSnapshot } from "./snapshot/branch-snapshot.ts";
import { VectorFolders } from "./vector-folders.ts";

interface HeldBranch {
  readonly state: BranchState;
  /** New ones when changes no longer continue them. */
  files: BranchFiles;
  /** Batches read for a coming commit. */
  staged: FeedBatch[];
  /** Restored from a snapshot, and no commit has brought it to one position yet. */
  isUnfinished: boolean;
}

interface Build {
  readonly key: BranchKey;
  readonly state: BranchState;
}

const { shardedFromBytes, onDiskFromBytes, maxIndexBytes = Number.POSITIVE_INFINITY } = (workerData ?? {}) as WorkerOptions;
const folders = new VectorFolders();
const branches = new Map<BranchKey, HeldBranch>();
const builds = new Map<number, Build>();
const room = new IndexRoom<BranchState>(maxIndexBytes);

/** States that are being read from a snapshot. One that has to give way leaves the set, and its reading ends. */
const restoring = new Set<BranchState>();

/** Resolves when the files that were ended, and those of states that were freed, are closed. */
let filesEnded: Promise<unknown> = Promise.resolve();

/** False once the files of snapshots are another server's. */
let ownsSnapshots = true;

/** Where a branch's large columns go. `path` of its snapshot; undefined: it has none. */
function placement(path: string | undefined): ColumnPlacement {
  return {
    shardedFromBytes,
    onDiskFromBytes,
    newFolder: path === undefined ? undefined : async () => (ownsSnapshots ? folders.create(path) : undefined),
    closeFolder: (folder) => folders.close(folder),
  };
}

function free(state: BranchState): void {
  const before = filesEnded;
  filesEnded = Promise.allSettled([before, state.free()]);
}

function endFiles(held: HeldBranch, isDropped = false): void {
  const before = filesEnded;
  filesEnded = held.files.end(isDropped).then(() => before);
  held.files = new BranchFiles(ownsSnapshots);
}

function replace(key: BranchKey, state: BranchState): HeldBranch {
  remove(key);
  const held = { state, files: new BranchFiles(ownsSnapshots), staged: [], isUnfinished: false };
  branches.set(key, held);
  room.set(state, key, state.stats.memoryBytes);
  state.onGrowth = () => {
    try {
      if (branches.get(key) === held) enforceLimit(key, state);
    } catch {
      // It had to give way: the next change and the next search say so.
    }
  };
  return held;
}

function remove(key: BranchKey): void {
  const held = branches.get(key);
  if (held === undefined) return;
  endFiles(held);
  branches.delete(key);
  room.delete(held.state);
  free(held.state);
}

function endBuild(build: number): void {
  const found = builds.get(build);
  if (found === undefined) return;
  const { state } = found;
  builds.delete(build);
  room.delete(state);
  free(state);
}

/**
 * Updates the index's memory use, and evicts indexes that no longer fit.
 * @param leastBytes  what it is known to take in the end.
 * @throws {LodestoneError} OUT_OF_MEMORY when this one is among them.
 */
function enforceLimit(key: BranchKey, state: BranchState, leastBytes = 0): BranchStats {
  const { stats } = state;
  room.set(state, key, Math.max(stats.memoryBytes, leastBytes));
  let isGone = false;
  if (room.isFull) dropTexts();
  for (let other = room.giveWay(); other !== undefined; other = room.giveWay()) {
    isGone ||= other === state;
    restoring.delete(other);
    for (const [branch, found] of branches) if (found.state === other) remove(branch);
    for (const [build, found] of builds) if (found.state === other) endBuild(build);
  }
  if (isGone) throw room.refusal(key);
  return stats;
}

/** Words give way first, those of the branch that has most of them. */
function dropTexts(): void {
  while (room.isFull) {
    const having = [...branches].filter(([, { state }]) => state.textBytes > 0);
    const [most] = having.sort(([, { state: a }], [, { state: b }]) => b.textBytes - a.textBytes);
    if (most === undefined) return;
    const [key, { state }] = most;
    state.dropTexts(room.textRefusal(key));
    room.set(state, key, state.stats.memoryBytes);
  }
}

/**
 * Takes the room for the whole snapshot before it is read, so what does not fit is not read.
 * @throws {LodestoneError} OUT_OF_MEMORY; CORRUPT.
 */
async function readSnapshotWithinRoom(
  path: string,
  key: BranchKey,
  incarnation: string,
  percent: Int32Array,
): Promise<RestoredBranch | null> {
  let reading: BranchState | undefined;
  try {
    return await readBranchSnapshot(path, key, incarnation, placement(path), folders, (state, leastBytes) => {
      if (reading === undefined) restoring.add(state);
      else if (!restoring.has(state)) throw room.refusal(key); // another branch has grown meanwhile
      reading = state;
      const { memoryBytes } = enforceLimit(key, state, leastBytes);
      Atomics.store(percent, 0, Math.min(99, Math.floor((100 * memoryBytes) / leastBytes)));
    });
  } finally {
    if (reading !== undefined) {
      restoring.delete(reading);
      room.delete(reading);
    }
  }
}

/** Waits until the changes are in all shards, and large columns where they belong. If it rejects, nothing is held of the branch. */
async function settle(key: BranchKey, held: HeldBranch): Promise<void> {
  try {
    await held.state.settled();
  } catch (error) {
    if (branches.get(key) === held) remove(key);
    throw error;
  }
  if (branches.get(key) !== held) throw room.refusal(key);
}

/** These yield while they read or write files, so they do not block the queue. */
const UNORDERED: ReadonlySet<Method> = new Set(["search", "searchTexts", "textsRead", "snapshot", "restore", "flush", "leaveSnapshots"]);

type Handlers = {
  [M in Method]: (argument: Parameters<EngineCalls[M]>[0]) => ReturnType<EngineCalls[M]> | Promise<ReturnType<EngineCalls[M]>>;
};

const handlers: Handlers = {
  async begin({ build, key, incarnation, version, tables, path }) {
    room.require(key, incarnation);
    builds.set(build, { key, state: await BranchState.create(incarnation, version, tables, placement(path)) });
  },

  async load({ build, batch }) {
    const { key, state } = builtBy(build);
    state.apply([batch]);
    await state.settled();
    enforceLimit(key, state);
  },

  install({ build, key, position }): BranchStats {
    const { state } = builtBy(build);
    builds.delete(build);
    state.position = position;
    replace(key, state);
    room.forget(key);
    return enforceLimit(key, state);
  },

  abandon({ build }) {
    endBuild(build);
  },

  stage({ key, batch }) {
    branches.get(key)?.staged.push(batch); // one that had to give way is told so by the commit
  },

  unstage({ key }) {
    const held = branches.get(key);
    if (held !== undefined) held.staged = [];
  },

  async commit({ key, schema, batches, position }: Commit): Promise<BranchStats> {
    const held = branches.get(key);
    if (held === undefined) throw room.refusal(key);
    const { state } = held;
    const all = [...held.staged, ...batches];
    held.staged = [];
    if (schema === undefined) {
      await state.hold.change(() => {
        // It may have had to give way while the change waited.
        if (branches.get(key) === held) state.apply(all);
      });
      if (branches.get(key) !== held) throw room.refusal(key);
      state.position = position;
      crashPoint("search-apply");
      await held.files.append(all, position);
    } else {
      endFiles(held);
      await state.hold.change(() => state.alter(schema.version, schema.tables, all));
      state.position = position;
    }
    await settle(key, held);
    held.isUnfinished = false;
    return enforceLimit(key, state);
  },

  async restore({ key, incarnation, path, percent }): Promise<RestoredState | null> {
    if (path === undefined) return null;
    room.require(key, incarnation);
    // What is held of it has the same files open.
    remove(key);
    await filesEnded;
    // The first time there is no folder; and what cannot be removed is no reason not to read the snapshot.
    await removeDrafts(path).catch(() => {});
    const restored = await readSnapshotWithinRoom(path, key, incarnation, percent);
    if (restored === null) return null;
    const { state, position, journal } = restored;
    const held = replace(key, state);
    held.isUnfinished = true;
    if (journal !== undefined) await held.files.resume(path, journal);
    room.forget(key);
    return { version: state.version, schema: state.schema, position, stats: enforceLimit(key, state), journalBytes: journal?.bytes };
  },

  async snapshot({ key, path, position }) {
    const held = branches.get(key);
    return held === undefined || held.state.lacksRecords ? null : held.files.save(path, key, held.state, position, folders);
  },

  async flush({ key }) {
    return branches.get(key)?.files.flush() ?? null;
  },

  leaveSnapshots() {
    ownsSnapshots = false;
    for (const held of branches.values()) endFiles(held);
  },

  drop({ key }) {
    const held = branches.get(key);
    if (held !== undefined) endFiles(held, true);
    remove(key);
    room.forget(key);
  },

  search: (job) => answer(job, (state) => state.search(job)),

  async searchTexts(job) {
    if (!job.mayWait && branches.get(job.key)?.state.readsTexts() !== undefined) return { kind: "reading" };
    return answer(job, (found) => found.searchTexts(job));
  },

  async textsRead({ key }) {
    await branches.get(key)?.state.readsTexts();
  },
};

async function answer<Found extends object>(
  { key, incarnation }: { readonly key: BranchKey; readonly incarnation: string },
  search: (state: BranchState) => Promise<Found | undefined>,
): Promise<({ readonly kind: "answers" } & Found) | NotAnswered> {
  const held = branches.get(key);
  if (held === undefined && room.isRefused(key)) return { kind: "full", message: room.refusal(key).message };
  if (held === undefined || held.state.incarnation !== incarnation || held.isUnfinished) return { kind: "behind" };
  const { state } = held;
  try {
    const found = await search(state);
    return found === undefined ? { kind: "behind" } : { kind: "answers", ...found };
  } catch (error) {
    // It had to give way, or was replaced, between two steps of the search.
    if (branches.get(key) !== held) return { kind: "behind" };
    if (error instanceof LodestoneError && error.code === "INVALID") {
      return { kind: "invalid", message: error.message, schemaVersion: state.version };
    }
    throw error;
  }
}

function builtBy(build: number): Build {
  const found = builds.get(build);
  // Another branch has grown meanwhile, and this one had to give way.
  if (found === undefined) throw new LodestoneError("OUT_OF_MEMORY", "There is no room for the index that was being built.");
  return found;
}

const port = parentPort!;
/** The last change of each branch: those of one are made one after the other. */
const changes = new Map<BranchKey, Promise<void>>();

port.on("message", (calls: readonly CallMessage[]) => {
  for (const call of calls) take(call);
});

function take({ number, method, argument }: CallMessage): void {
  const handle = handlers[method] as (argument: unknown) => unknown;
  if (UNORDERED.has(method)) return void reply(number, () => handle(argument));
  const { key: named, build = -1 } = argument as { readonly key?: BranchKey; readonly build?: number };
  const key = named ?? builds.get(build)?.key ?? "";
  const change = (changes.get(key) ?? Promise.resolve()).then(() => reply(number, () => handle(argument)));
  changes.set(key, change);
  void change.then(() => {
    if (changes.get(key) === change) changes.delete(key);
  });
}

function reply(number: number, work: () => unknown): void | Promise<void> {
  try {
    const result = work();
    if (result instanceof Promise)
      return result.then(
        (value) => send({ number, result: value }),
        (error: unknown) => sendError(number, error),
      );
    send({ number, result });
  } catch (error) {
    sendError(number, error);
  }
}

let replies: ReplyMessage[] = [];

/** Together with the replies to all calls that came with the same message and are done. */
function send(reply: ReplyMessage): void {
  if (replies.length === 0) process.nextTick(sendReplies);
  replies.push(reply);
}

function sendReplies(): void {
  const all = replies;
  replies = [];
  port.postMessage(all);
}

function sendError(number: number, error: unknown): void {
  // The vectors of a column were lost with their thread. This thread ends too, and the next one reads
  // everything again.
  if (isLost(error))
    setImmediate(() => {
      throw error;
    });
  send({ number, error: describeError(error) });
}
