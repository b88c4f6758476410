/**
 * Opens the search store over a record store, with one engine for the indexes and one follower per branch.
 */
import type { Worker } from "node:worker_threads";
import { LodestoneError } from "../errors.ts";
import { DatabaseAwayError } from "../records/database-away.ts";
import type { SharedSnapshot } from "../records/feed/feed-types.ts";
import type { Part } from "../records/feed/part.ts";
import type { BranchRef } from "../records/schema.ts";
import { BranchFollower, branchKey, type FollowedRecords } from "./branch-follower.ts";
import { IndexFullError } from "./index-full.ts";
import { LagMeter } from "./lag-meter.ts";
import type { OwnAnswers, OwnCallOptions, OwnRecords, OwnSearch } from "./parts/local-part.ts";
import { checkQueryVectors, checkSearch, type Query } from "./request-check.ts";
import type { SearchEngine, StartEngine } from "./search-engine.ts";
import type { BranchKey, SearchAnswer, SearchJob, SearchOutcome } from "./search-messages.ts";
import { SearchQueue } from "./search-queue.ts";
import type { SearchCallOptions, SearchStore, SearchStoreStatus, VectorSearchRequest, VectorSearchResponse } from "./search-store.ts";
import { Semaphore } from "./semaphore.ts";
import { SnapshotSchedule } from "./snapshot/snapshot-schedule.ts";
import { startSearchWorker, WorkerClient } from "./worker-client.ts";

export interface SearchStoreOptions {
  /** How often a quiet branch is checked, in case a notification was lost; default 5 s. */
  readonly pollMs?: number;
  /**
   * How long a search waits for a branch or schema that has not been read yet before it fails with
   * UNAVAILABLE; default 10 s.
   */
  readonly waitMs?: number;
  /** Limit of searches waiting for the engine. Beyond it they are refused with OVERLOADED; default 512. */
  readonly maxWaiting?: number;
  /**
   * Folder for snapshots. With them a start reads only the changes since the last snapshot; without them it
   * reads all records.
   */
  readonly snapshotDir?: string;
  /**
   * How often a changed branch is written to a snapshot, besides at close; default 5 minutes. Large ones,
   * which take long, are written less often.
   */
  readonly snapshotEveryMs?: number;
  /**
   * A snapshot is replaced when its journal exceeds this; default half of the index's memory, at least 16
   * MiB.
   */
  readonly journalBytes?: number;
  /** Columns with at least this many bytes of float32 are searched by several threads; default 64 MiB. */
  readonly shardedFromBytes?: number;
  /**
   * Memory limit of all indexes together: vectors and filter columns. Beyond it, the largest branch of the
   * database that uses most is not searched. Default: no limit.
   */
  readonly maxIndexBytes?: number;
  /** Receives faults that the store recovers from. */
  readonly onFault?: (error: unknown) => void;
  /** Which part to hold of the tables that can be split into parts; default: all. */
  readonly part?: Part;
  /** The engine that holds the vectors; default: a worker thread of this process. */
  readonly startEngine?: StartEngine;
  /** Starts the search worker. For tests that need to end it. @internal */
  readonly startWorker?: () => Worker;
}

const DEFAULT_POLL_MS = 5_000;
const DEFAULT_WAIT_MS = 10_000;
const DEFAULT_SNAPSHOT_MS = 300_000;
/** New branches announce themselves. Listing finds those whose announcement was lost. */
const LIST_EVERY_POLLS = 6;
/**
 * Between rounds the database is left to others for this many times the length of the round, within the
 * bounds below. A stream of small writes is then read in batches: on the embedded database a round costs as
 * much as several inserts, and searches may lag by milliseconds.
 */
const PAUSE_FACTOR = 2;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 20;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 5_000;
/**
 * While the database is known to be unreachable an attempt costs nothing, and its return should be noticed
 * soon.
 */
const LAST_AWAY_RETRY_MS = 500;
/**
 * On its own initiative the store reads at most this many branches in full, and follows at most this many, at
 * the same time. The record store has other clients to serve.
 */
const BUILDS_AT_ONCE = 2;
const ROUNDS_AT_ONCE = 16;
/**
 * A quiet branch is checked once in this many polls. The feed announces changes; this catches missed
 * announcements.
 */
const POLLS_PER_ROUND = 120;
const LIST_RETRY_LIMIT_MS = 1_000;

/** Resolves at once. The branches are read in the background; `status().ready` turns true when all are. */
export async function openSearchStore(records: FollowedRecords, options: SearchStoreOptions = {}): Promise<SearchStore> {
  return new FollowingSearchStore(records, options);
}

/** A branch and the state of following it. */
interface Followed {
  readonly follower: BranchFollower;
  readonly lag: LagMeter;
  /** It has caught up at least once. */
  isReady: boolean;
  /** The timer of the next round, and when it fires. */
  scheduled: { readonly timer: NodeJS.Timeout; readonly at: number } | undefined;
  retryMs: number;
  /** When the first of the rounds failed that have failed since the last good one. */
  failingSince: number | undefined;
  lastRoundAt: number;
  isInRound: boolean;
  /** Something has changed since the current round began. */
  isBehind: boolean;
  /** When the pause after the last round ends. */
  nextRoundAt: number;
  fault: string | undefined;
  /** The current fault is that the database is unreachable. */
  isAway: boolean;
  /** There is no memory for its index. */
  isFull: boolean;
}

export class FollowingSearchStore implements SearchStore, OwnRecords {
  readonly #records: FollowedRecords;
  readonly #options: SearchStoreOptions;
  readonly #engine: SearchEngine;
  readonly #queue: SearchQueue;
  readonly #snapshots: SnapshotSchedule | undefined;
  readonly #branches = new Map<BranchKey, Followed>();
  readonly #builds = new Semaphore(BUILDS_AT_ONCE);
  readonly #rounds = new Semaphore(ROUNDS_AT_ONCE);
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #stopListening: () => void;
  #isListed = false;
  #isClosed = false;
  #polls = 0;

  constructor(records: FollowedRecords, options: SearchStoreOptions) {
    this.#records = records;
    this.#options = options;
    const startWorker =
      options.startWorker ??
      (() => startSearchWorker({ shardedFromBytes: options.shardedFromBytes, maxIndexBytes: options.maxIndexBytes }));
    const startEngine = options.startEngine ?? ((events) => new WorkerClient(events, startWorker));
    this.#engine = startEngine({
      onLost: (error) => this.#engineLost(error),
      onRestart: () => {
        for (const followed of this.#branches.values()) this.#schedule(followed, 0);
      },
    });
    this.#queue = new SearchQueue(options.maxWaiting, this.#engine.searchesAtOnce);
    if (options.snapshotDir !== undefined) {
      this.#snapshots = new SnapshotSchedule(options.snapshotDir, () => this.#followers(), {
        everyMs: options.snapshotEveryMs ?? DEFAULT_SNAPSHOT_MS,
        onFault: (error) => options.onFault?.(error),
      });
    }
    this.#stopListening = records.feed.onChange((ref) => this.#changed(ref));
    void this.#list();
    this.#after(options.pollMs ?? DEFAULT_POLL_MS, () => this.#poll());
  }

  async vectorSearch(
    ref: BranchRef,
    table: string,
    request: VectorSearchRequest,
    options?: SearchCallOptions,
  ): Promise<VectorSearchResponse> {
    const { answers } = await this.search(ref, table, request, [{ name: "queryVector", vector: request.queryVector }], options);
    return toResponse(answers[0]!);
  }

  async vectorSearchMany(
    ref: BranchRef,
    table: string,
    request: Omit<VectorSearchRequest, "queryVector"> & { queryVectors: readonly (readonly number[])[] },
    options?: SearchCallOptions,
  ): Promise<VectorSearchResponse[]> {
    const { answers } = await this.search(ref, table, request, checkQueryVectors(request.queryVectors), options);
    return answers.map(toResponse);
  }

  status(): SearchStoreStatus {
    const pending: string[] = this.#isListed ? [] : ["the list of branches"];
    let lagMs = 0;
    let lagP99Ms = 0;
    let rows = 0;
    let memoryBytes = 0;
    let fault: string | undefined;
    for (const { follower, isReady, lag, fault: branchFault, failingSince, isFull } of this.#branches.values()) {
      // Its searches are answered with the reason. No other server could do better.
      if (isFull) continue;
      if (!isReady || follower.isBuilding) pending.push(branchFault === undefined ? follower.key : `${follower.key} (${branchFault})`);
      // Data that cannot be read may have changed.
      lagMs = Math.max(lagMs, lag.currentMs, failingSince === undefined ? 0 : performance.now() - failingSince);
      fault ??= branchFault;
      lagP99Ms = Math.max(lagP99Ms, lag.quantileMs(0.99));
      rows += follower.stats.vectors;
      memoryBytes += follower.stats.memoryBytes;
    }
    const ready = pending.length === 0 && !this.#isClosed;
    return { ready, pending, lagMs, lagP99Ms, fault, waiting: this.#queue.waiting, rows, memoryBytes };
  }

  /** Number of tables with vectors that are held in full although the store holds a part. */
  get wholeTables(): number {
    let count = 0;
    for (const { follower } of this.#branches.values()) count += follower.wholeTables;
    return count;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopListening();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    await this.#snapshots?.close();
    this.#queue.close(new LodestoneError("UNAVAILABLE", "The search store is closed."));
    await this.#engine.close();
  }

  /** Like `vectorSearch`, and also returns the branch, table and column of the answers. */
  async search(
    ref: BranchRef,
    table: string,
    request: Omit<VectorSearchRequest, "queryVector">,
    queries: readonly Query[],
    { signal, budget }: SearchCallOptions = {},
  ): Promise<OwnAnswers> {
    const found = await this.#search(
      { ref, table, request, queries, maxBytes: budget?.remaining ?? Number.POSITIVE_INFINITY },
      (job) => job,
      {
        signal,
        waitMs: this.#options.waitMs ?? DEFAULT_WAIT_MS,
        caller: budget?.caller ?? "",
      },
    );
    budget?.charge(found.bytes);
    return found;
  }

  searchOwn(search: OwnSearch, options: OwnCallOptions): Promise<OwnAnswers> {
    return this.#search(search, fromFirst, options);
  }

  async searchAt(
    snapshot: SharedSnapshot,
    searches: readonly OwnSearch[],
    waitMs: number,
  ): Promise<readonly (OwnAnswers | "passed" | LodestoneError)[]> {
    const { ref } = searches[0]!;
    const info = await this.#records.branch(ref);
    const jobs = searches.map(({ table, request, queries, maxBytes }) => {
      try {
        return fromFirst({ key: branchKey(ref), ...checkSearch(info, table, request, queries), maxBytes });
      } catch (error) {
        if (error instanceof LodestoneError) return error;
        throw error;
      }
    });
    const followed = this.#follow(ref);
    const { follower } = followed;
    if (follower.state?.incarnation !== info.incarnation) {
      await this.#catchUp(followed, performance.now() + waitMs);
      return jobs.map(() => "passed");
    }
    // The searches bypass the queue: they go to the engine together, before the next change does.
    const moved = await follower.at(snapshot, () =>
      jobs.map((job) => (job instanceof LodestoneError ? job : this.#engine.call("search", job))),
    );
    if (moved === undefined) return jobs.map(() => "passed");
    const settled = await Promise.allSettled(moved.result);
    return settled.map((outcome, i) => {
      if (outcome.status === "fulfilled") {
        const { value } = outcome;
        return value instanceof LodestoneError ? value : (ownAnswers(jobs[i] as SearchJob, value, info.version) ?? "passed");
      }
      // A fault of the engine, not of the search: a replica may be able to answer.
      if (!(outcome.reason instanceof LodestoneError) || outcome.reason.code === "UNAVAILABLE") throw outcome.reason;
      return outcome.reason;
    });
  }

  async schemaVersion(ref: BranchRef): Promise<number | undefined> {
    return (await this.#records.branch(ref).catch(() => undefined))?.version;
  }

  async #search(
    { ref, table, request, queries, maxBytes }: OwnSearch & { readonly request: Omit<VectorSearchRequest, "queryVector"> },
    adapt: (job: SearchJob) => SearchJob,
    { signal, waitMs, caller }: OwnCallOptions,
  ): Promise<OwnAnswers> {
    const deadline = performance.now() + waitMs;
    if (this.#isClosed) throw new LodestoneError("UNAVAILABLE", "The search store is closed.");
    const { consistency } = request;
    if (consistency !== undefined && consistency !== "strong" && consistency !== "eventual") {
      throw new LodestoneError("INVALID", 'consistency: expected "strong" or "eventual".');
    }
    for (let attempt = 0; ; attempt++) {
      signal?.throwIfAborted();
      const info = await this.#records.branch(ref);
      const job = adapt({ key: branchKey(ref), ...checkSearch(info, table, request, queries), maxBytes });
      const followed = this.#follow(ref);
      // Everything acknowledged before now was committed before the round that begins now.
      if (consistency === "strong" && attempt === 0) while (!(await this.#catchUp(followed, deadline)));
      if (followed.follower.state?.incarnation === info.incarnation) {
        const outcome = await this.#queue.run(() => this.#engine.call("search", job), signal, caller);
        const found = ownAnswers(job, outcome, info.version);
        if (found instanceof LodestoneError) throw found;
        if (found !== undefined) return found;
      }
      await this.#catchUp(followed, deadline);
    }
  }

  /** Runs one more round. false: it failed. @throws {LodestoneError} UNAVAILABLE past the deadline. */
  async #catchUp({ follower, fault }: Followed, deadline: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), Math.max(deadline - performance.now(), 0));
    });
    const round = follower.sync().then(
      () => true,
      async (error: unknown) => {
        // If the data cannot be had, fail at once.
        if (error instanceof DatabaseAwayError || error instanceof IndexFullError) throw error;
        // Pause, otherwise the next attempt would follow at once.
        await new Promise((resolve) => setTimeout(resolve, FIRST_RETRY_MS));
        return false;
      },
    );
    round.catch(() => {}); // in case it fails after the deadline
    const outcome = await Promise.race([round, late]).finally(() => clearTimeout(timer));
    // A round may finish before the timer of a deadline that has passed. Nobody retries for ever.
    if (outcome !== "late" && performance.now() < deadline) return outcome;
    const why = fault === undefined ? "" : ` (${fault})`;
    throw new LodestoneError("UNAVAILABLE", `The search store is still reading branch ${follower.key}${why}; try again in a moment.`, {
      retryAfterSeconds: 1,
    });
  }

  #follow(ref: BranchRef): Followed {
    const key = branchKey(ref);
    const known = this.#branches.get(key);
    if (known !== undefined) return known;
    const followed: Followed = {
      follower: new BranchFollower({ database: ref.database, branch: ref.branch }, this.#records, this.#engine, {
        part: this.#options.part,
        snapshotPath: this.#snapshots?.pathOf(key),
        journalBytes: this.#options.journalBytes,
        onFault: (error) => this.#options.onFault?.(error),
      }),
      lag: new LagMeter(),
      isReady: false,
      scheduled: undefined,
      retryMs: FIRST_RETRY_MS,
      failingSince: undefined,
      lastRoundAt: Number.NEGATIVE_INFINITY,
      isInRound: false,
      isBehind: false,
      nextRoundAt: 0,
      fault: undefined,
      isAway: false,
      isFull: false,
    };
    this.#branches.set(key, followed);
    this.#schedule(followed, 0);
    return followed;
  }

  #changed(ref: BranchRef): void {
    if (this.#isClosed) return;
    const followed = this.#follow(ref);
    followed.lag.changed();
    // A change that arrives during a round may or may not be in it, so another round follows after the pause.
    if (followed.isInRound) followed.isBehind = true;
    // A branch that failed for another reason than an unreachable database keeps to its retry schedule.
    else if (followed.fault === undefined || followed.isAway)
      this.#schedule(followed, Math.max(0, followed.nextRoundAt - performance.now()));
  }

  /** Can bring a scheduled round forward, but not delay it. */
  #schedule(followed: Followed, delayMs: number): void {
    const at = performance.now() + delayMs;
    const { scheduled } = followed;
    if (this.#isClosed || (scheduled !== undefined && scheduled.at <= at)) return;
    if (scheduled !== undefined) this.#forget(scheduled.timer);
    const timer = this.#after(delayMs, () => {
      followed.scheduled = undefined;
      void this.#round(followed);
    });
    followed.scheduled = { timer, at };
  }

  async #round(followed: Followed): Promise<void> {
    const { follower, lag } = followed;
    const turns = follower.state === undefined ? this.#builds : this.#rounds;
    try {
      await turns.run(() => {
        lag.begin();
        followed.lastRoundAt = performance.now();
        followed.isInRound = true;
        followed.isBehind = false;
        return follower.sync();
      });
      lag.end();
      const now = performance.now();
      const pauseMs = Math.min(Math.max(PAUSE_FACTOR * (now - followed.lastRoundAt), MIN_PAUSE_MS), MAX_PAUSE_MS);
      followed.nextRoundAt = now + pauseMs;
      if (followed.isBehind) this.#schedule(followed, pauseMs);
      followed.isReady = true;
      followed.isFull = false;
      followed.fault = undefined;
      followed.failingSince = undefined;
      followed.retryMs = FIRST_RETRY_MS;
      if (follower.isGone && this.#branches.get(follower.key) === followed) this.#branches.delete(follower.key);
    } catch (error) {
      lag.fail();
      if (this.#isClosed) return;
      followed.failingSince ??= followed.lastRoundAt;
      followed.isAway = error instanceof DatabaseAwayError;
      followed.isFull = error instanceof IndexFullError;
      this.#tell(followed, error);
      followed.nextRoundAt = performance.now() + FIRST_RETRY_MS;
      // Random jitter, so that branches and servers do not retry in step.
      const retryMs = followed.isAway ? Math.min(followed.retryMs, LAST_AWAY_RETRY_MS) : followed.retryMs;
      this.#schedule(followed, retryMs * (1 - Math.random() / 2));
      followed.retryMs = Math.min(2 * followed.retryMs, LAST_RETRY_MS);
    } finally {
      followed.isInRound = false;
    }
  }

  /** Several branches often fail for the same reason. It is reported once. */
  #tell(followed: Followed, error: unknown): void {
    const fault = error instanceof Error ? error.message : String(error);
    const isKnown = [...this.#branches.values()].some((other) => other.fault === fault);
    followed.fault = fault;
    if (!isKnown) this.#options.onFault?.(error);
  }

  async #list(retryMs = FIRST_RETRY_MS): Promise<void> {
    try {
      for (const ref of await this.#records.allBranches()) {
        if (this.#isClosed) return;
        this.#follow(ref);
      }
      this.#isListed = true;
      await this.#snapshots?.removeStrangers();
    } catch (error) {
      if (this.#isClosed) return;
      if (retryMs === FIRST_RETRY_MS) this.#options.onFault?.(error);
      this.#after(retryMs * (1 - Math.random() / 2), () => void this.#list(Math.min(2 * retryMs, LIST_RETRY_LIMIT_MS)));
    }
  }

  *#followers(): Generator<BranchFollower> {
    for (const { follower } of this.#branches.values()) yield follower;
  }

  #poll(): void {
    if (++this.#polls % LIST_EVERY_POLLS === 0) void this.#list();
    const pollMs = this.#options.pollMs ?? DEFAULT_POLL_MS;
    const quiet = [...this.#branches.values()].filter(({ lastRoundAt }) => performance.now() - lastRoundAt >= pollMs);
    quiet.sort((a, b) => a.lastRoundAt - b.lastRoundAt);
    for (const followed of quiet.slice(0, Math.ceil(this.#branches.size / POLLS_PER_ROUND))) this.#schedule(followed, 0);
    this.#after(pollMs, () => this.#poll());
  }

  #engineLost(error: Error): void {
    this.#options.onFault?.(error);
    for (const followed of this.#branches.values()) {
      followed.follower.reset();
      followed.isReady = false;
    }
  }

  /** Like setTimeout, but does nothing once the store is closed. */
  #after(delayMs: number, work: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!this.#isClosed) work();
    }, delayMs);
    timer.unref();
    this.#timers.add(timer);
    return timer;
  }

  #forget(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }
}

/** undefined: the engine's schema is not that version, or is older, so the reported error may not be real. */
function ownAnswers(job: SearchJob, outcome: SearchOutcome, version: number): OwnAnswers | LodestoneError | undefined {
  if (outcome.kind === "answers") return { ...outcome, incarnation: job.incarnation, tableId: job.tableId, columnId: job.columnId };
  if (outcome.kind === "full") return new IndexFullError(new LodestoneError("OUT_OF_MEMORY", outcome.message));
  return outcome.kind === "invalid" && outcome.schemaVersion >= version ? new LodestoneError("INVALID", outcome.message) : undefined;
}

/** The result offset is applied after merging the answers of all parts. */
function fromFirst(job: SearchJob): SearchJob {
  return { ...job, offset: 0, size: job.offset + job.size };
}

export function toResponse({ totalCount, ids, scores }: SearchAnswer): VectorSearchResponse {
  return { totalCount, results: ids.map((id, i) => ({ id, score: scores[i]! })) };
}
