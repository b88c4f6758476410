/**
 * The thread that holds vectors and words, and answers searches. Messages that change a branch are processed one at
 * a time, in order of arrival. A vector search takes all that it reads between two of them, and so sees one position;
 * for searches of several steps see text/search-texts.ts and text/hold.ts.
 */
import { randomUUID } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { crashPoint } from "../files/fault-points.ts";
import type { FeedBatch, FeedPosition } from "../records/feed/feed-types.ts";
import { describeError } from "../threads/worker-calls.ts";
import { BranchState } from "./branch-state.ts";
import { isLost } from "./column-index.ts";
import { IndexRoom } from "./index-room.ts";
import {
  type BranchKey,
  type BranchStats,
  type CallMessage,
  type Commit,
  type EngineCalls,
  type Method,
  MIN_SNAPSHOT_ROWS,
  type NotAnswered,
  type ReplyMessage,
  type RestoredState,
  type WorkerOptions,
} from "./search-messages.ts";
import { BranchJournal, journalPath, removeDrafts, removeOtherFiles } from "./snapshot/branch-journal.ts";
import { type RestoredBranch, readBranchSnapshot, SnapshotDraft, writeBranchSnapshot } from "./snapshot/branch-snapshot.ts";

const branches = new Map<BranchKey, BranchState>();
const { shardedFromBytes, maxIndexBytes = Number.POSITIVE_INFINITY } = (workerData ?? {}) as WorkerOptions;

interface Build {
  readonly key: BranchKey;
  readonly state: BranchState;
  readonly draft: SnapshotDraft | undefined;
}

const builds = new Map<number, Build>();
const room = new IndexRoom<BranchState>(maxIndexBytes);
/** Batches read for a coming commit. */
const staged = new Map<BranchKey, FeedBatch[]>();

/** States that are being read from a snapshot. One that has to give way leaves the set, and its reading ends. */
const restoring = new Set<BranchState>();

/** Branches restored from a snapshot that no commit has brought to one position yet. */
const unfinished = new Set<BranchKey>();

/** The journals of a branch: one behind its snapshot, and one behind the snapshot being written. */
const journals = new Map<BranchKey, Set<BranchJournal>>();

/** Drafts that contain the whole branch, with a journal behind them, but are not its snapshot yet. */
const drafts = new Map<BranchKey, { readonly draft: SnapshotDraft; readonly journal: BranchJournal }>();

/** Resolves when the journals that were ended are closed. */
let journalsEnded: Promise<unknown> = Promise.resolve();

/** False once the files of snapshots are another server's. */
let ownsSnapshots = true;

/**
 * Changes applied from now on do not continue the snapshots. What is on disk stays: a snapshot with its journal leads
 * to the position at which the journal ends, and the feed keeps all changes since.
 */
function endJournals(key: BranchKey): void {
  const drafted = drafts.get(key);
  const ended = [...(journals.get(key) ?? [])].map((journal) => (journal === drafted?.journal ? journal.remove() : journal.close()));
  journalsEnded = Promise.allSettled([journalsEnded, ...ended, drafted?.draft.abandon()]);
  journals.delete(key);
  drafts.delete(key);
}

/** Smaller branches get no draft: reading the records is as fast as reading a file. */
async function keepDraft(key: BranchKey, { state, draft }: Build, position: FeedPosition): Promise<void> {
  if (draft === undefined) return;
  const journal =
    state.stats.vectors + state.stats.texts < MIN_SNAPSHOT_ROWS
      ? undefined
      : await draft.createJournal(position).catch((): undefined => undefined); // a full disk, say
  if (journal === undefined) return draft.abandon();
  if (branches.get(key) !== state || !ownsSnapshots) {
    await Promise.all([draft.abandon(), journal.remove()]);
    return;
  }
  journals.set(key, new Set([journal]));
  drafts.set(key, { draft, journal });
}

function replace(key: BranchKey, state: BranchState): void {
  remove(key);
  branches.set(key, state);
  room.set(state, key, state.stats.memoryBytes);
  state.onGrowth = () => {
    try {
      if (branches.get(key) === state) count(key, state);
    } catch {
      // It had to give way: the next change and the next search say so.
    }
  };
}

function remove(key: BranchKey): void {
  endJournals(key);
  unfinished.delete(key);
  staged.delete(key);
  const state = branches.get(key);
  if (state === undefined) return;
  branches.delete(key);
  room.delete(state);
  state.free();
}

function endBuild(build: number): void {
  const found = builds.get(build);
  if (found === undefined) return;
  const { state, draft } = found;
  void draft?.abandon();
  builds.delete(build);
  room.delete(state);
  state.free();
}

/**
 * Updates the index's memory use, and drops indexes that no longer fit.
 * @param leastBytes  what it is known to take in the end.
 * @throws {LodestoneError} OUT_OF_MEMORY when this one is among them.
 */
function count(key: BranchKey, state: BranchState, leastBytes = 0): BranchStats {
  const { stats } = state;
  room.set(state, key, Math.max(stats.memoryBytes, leastBytes));
  let isGone = false;
  if (room.isFull) dropTexts();
  for (let other = room.giveWay(); other !== undefined; other = room.giveWay()) {
    isGone ||= other === state;
    restoring.delete(other);
    for (const [branch, found] of branches) if (found === other) remove(branch);
    for (const [build, found] of builds) if (found.state === other) endBuild(build);
  }
  if (isGone) throw room.refusal(key);
  return stats;
}

/** Words give way first, those of the branch that has most of them. */
function dropTexts(): void {
  while (room.isFull) {
    const having = [...branches].filter(([, state]) => state.textBytes > 0).sort(([, a], [, b]) => b.textBytes - a.textBytes);
    const [most] = having;
    if (most === undefined) return;
    const [key, state] = most;
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
    return await readBranchSnapshot(path, key, incarnation, shardedFromBytes, (state, leastBytes) => {
      if (reading === undefined) restoring.add(state);
      else if (!restoring.has(state)) throw room.refusal(key); // another branch has grown meanwhile
      reading = state;
      const { memoryBytes } = count(key, state, leastBytes);
      Atomics.store(percent, 0, Math.min(99, Math.floor((100 * memoryBytes) / leastBytes)));
    });
  } finally {
    if (reading !== undefined) {
      restoring.delete(reading);
      room.delete(reading);
    }
  }
}

/** These yield while they read or write files, so they do not block the queue. */
const UNORDERED: ReadonlySet<Method> = new Set(["search", "searchTexts", "textsRead", "snapshot", "restore", "flush", "leaveSnapshots"]);

type Handlers = {
  [M in Method]: (argument: Parameters<EngineCalls[M]>[0]) => ReturnType<EngineCalls[M]> | Promise<ReturnType<EngineCalls[M]>>;
};

const handlers: Handlers = {
  async begin({ build, key, incarnation, version, tables, draft }) {
    room.require(key, incarnation);
    const state = await BranchState.create(incarnation, version, tables, shardedFromBytes);
    builds.set(build, { key, state, draft: draft && new SnapshotDraft(draft.path, key, state, draft.position) });
  },

  async load({ build, batch }) {
    const { key, state, draft } = builtBy(build);
    state.apply([batch]);
    await state.settled();
    count(key, state);
    await draft?.add(batch);
  },

  async install({ build, key, position }): Promise<BranchStats> {
    const built = builtBy(build);
    const { state } = built;
    builds.delete(build);
    state.position = position;
    replace(key, state);
    room.forget(key);
    await keepDraft(key, built, position);
    return count(key, state);
  },

  abandon({ build }) {
    endBuild(build);
  },

  stage({ key, batch }) {
    const batches = staged.get(key) ?? [];
    batches.push(batch);
    staged.set(key, batches);
  },

  unstage({ key }) {
    staged.delete(key);
  },

  async commit({ key, schema, batches, position }: Commit): Promise<BranchStats> {
    const all = [...(staged.get(key) ?? []), ...batches];
    staged.delete(key);
    const state = branches.get(key);
    if (state === undefined) throw room.refusal(key);
    if (schema === undefined) {
      await state.hold.change(() => {
        // It may have had to give way while the change waited.
        if (branches.get(key) === state) state.apply(all);
      });
      if (branches.get(key) !== state) throw room.refusal(key);
      state.position = position;
      crashPoint("search-apply");
      for (const journal of journals.get(key) ?? []) await journal.append(all, position);
    } else {
      endJournals(key);
      await state.hold.change(() => state.alter(schema.version, schema.tables, all));
      state.position = position;
    }
    unfinished.delete(key);
    return count(key, state);
  },

  async restore({ key, incarnation, path, percent }): Promise<RestoredState | null> {
    if (path === undefined) return null;
    room.require(key, incarnation);
    await journalsEnded;
    // The first time there is no folder; and what cannot be removed is no reason not to read the snapshot.
    await removeDrafts(path).catch(() => {});
    const restored = await readSnapshotWithinRoom(path, key, incarnation, percent);
    if (restored === null) return null;
    const { state, position } = restored;
    replace(key, state);
    unfinished.add(key);
    if (restored.journal !== undefined) {
      const journal = await BranchJournal.resume(restored.journal);
      // The branch's state may have been replaced meanwhile.
      if (branches.get(key) === state && ownsSnapshots) journals.set(key, new Set([journal]));
      else await journal.close();
    }
    room.forget(key);
    return { version: state.version, schema: state.schema, position, stats: count(key, state) };
  },

  async snapshot({ key, path, position }) {
    const state = branches.get(key);
    if (state === undefined || state.lacksRecords || !ownsSnapshots) return null;
    const drafted = drafts.get(key);
    if (drafted !== undefined) {
      const saved = await drafted.draft.finish(drafted.journal);
      if (drafts.get(key) !== drafted) return null;
      drafts.delete(key);
      if (saved !== null) return saved;
      endJournals(key);
    }
    const id = randomUUID().slice(0, 8);
    const journal = await BranchJournal.create(journalPath(path, id), position);
    if (branches.get(key) !== state || !ownsSnapshots) {
      await journal.remove();
      return null;
    }
    const before = [...(journals.get(key) ?? [])];
    const current = new Set([...before, journal]);
    journals.set(key, current);
    const isCurrent = (): boolean => branches.get(key) === state && journals.get(key) === current;
    const bytes = await writeBranchSnapshot(path, key, state, position, id, isCurrent).catch(async (error: unknown) => {
      current.delete(journal);
      await journal.remove();
      throw error;
    });
    if (bytes === null) {
      current.delete(journal);
      await journal.remove();
      return null;
    }
    if (!isCurrent()) return null;
    for (const old of before) {
      current.delete(old);
      await old.remove();
    }
    await removeOtherFiles(path, journal);
    return { position, bytes };
  },

  async flush({ key }) {
    const journal = [...(journals.get(key) ?? [])][0];
    if (journal === undefined || drafts.has(key)) return null;
    try {
      return await journal.sync();
    } catch (error) {
      // A full disk, say. What was written before is good; the next snapshot will have a new journal.
      journals.get(key)?.delete(journal);
      await journal.close();
      throw error;
    }
  },

  leaveSnapshots() {
    ownsSnapshots = false;
    for (const key of journals.keys()) endJournals(key);
    for (const { draft } of builds.values()) void draft?.abandon();
  },

  drop({ key }) {
    for (const journal of journals.get(key) ?? []) void journal.remove();
    remove(key);
    room.forget(key);
  },

  search: (job) => answer(job, (state) => state.search(job)),

  async searchTexts(job) {
    const state = branches.get(job.key);
    if (!job.mayWait && state?.readsTexts() !== undefined) return { kind: "reading" };
    return answer(job, (found) => found.searchTexts(job));
  },

  async textsRead({ key }) {
    await branches.get(key)?.readsTexts();
  },
};

async function answer<Found extends object>(
  { key, incarnation }: { readonly key: BranchKey; readonly incarnation: string },
  search: (state: BranchState) => Promise<Found | undefined>,
): Promise<({ readonly kind: "answers" } & Found) | NotAnswered> {
  const state = branches.get(key);
  if (state === undefined && room.isRefused(key)) return { kind: "full", message: room.refusal(key).message };
  if (state === undefined || state.incarnation !== incarnation || unfinished.has(key)) return { kind: "behind" };
  try {
    const found = await search(state);
    return found === undefined ? { kind: "behind" } : { kind: "answers", ...found };
  } catch (error) {
    // It had to give way, or was replaced, between two steps of the search.
    if (branches.get(key) !== state) return { kind: "behind" };
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

port.on("message", ({ number, method, argument }: CallMessage) => {
  const handle = handlers[method] as (argument: unknown) => unknown;
  if (UNORDERED.has(method)) return void reply(number, () => handle(argument));
  const { key: named, build = -1 } = argument as { readonly key?: BranchKey; readonly build?: number };
  const key = named ?? builds.get(build)?.key ?? "";
  const change = (changes.get(key) ?? Promise.resolve()).then(() => reply(number, () => handle(argument)));
  changes.set(key, change);
  void change.then(() => {
    if (changes.get(key) === change) changes.delete(key);
  });
});

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

function send(message: ReplyMessage): void {
  port.postMessage(message);
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
