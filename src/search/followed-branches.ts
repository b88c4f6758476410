/**
 * All branches of the record store, each with its follower. Decides when each of them gets a round: soon after
 * a change was announced, from time to time in case an announcement was lost, and again after a failure.
 */
import { type FaultListeners, FaultState } from "../errors/fault-state.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { DatabaseAwayError } from "../records/database-away.ts";
import type { Part } from "../records/feed/feed-types.ts";
import type { BranchRef } from "../records/schema.ts";
import { Semaphore } from "../threads/semaphore.ts";
import { BranchFaults } from "./branch-faults.ts";
import { BranchFollower, damagedIndex } from "./branch-follower.ts";
import { isDamaged } from "./column-index.ts";
import type { FollowedRecords } from "./followed-schema.ts";
import { branchStatusOf, statusOf } from "./followed-status.ts";
import { LagMeter } from "./lag-meter.ts";
import { IndexFullError, type SearchEngine } from "./search-engine.ts";
import { type BranchKey, branchKey } from "./search-messages.ts";
import type { BranchSearchStatus, SearchStoreStatus } from "./search-store.ts";
import { SnapshotSchedule } from "./snapshot/snapshot-schedule.ts";

export interface FollowOptions extends FaultListeners {
  /** How often a quiet branch is checked, in case a notification was lost; default 5 s. */
  readonly pollMs?: number;
  /**
   * Folder for snapshots. With them a start reads only the changes since the last snapshot; without them it
   * reads all records.
   */
  readonly snapshotDir?: string;
  /** Aborted when the folder has become another server's: from then on there are no snapshots. */
  readonly snapshotsLost?: AbortSignal;
  /**
   * How often a changed branch is written to a snapshot, besides at close; default 5 minutes. Large ones,
   * which take long, are written less often.
   */
  readonly snapshotEveryMs?: number;
  /** How long a close waits for the last snapshots; default 3 seconds. */
  readonly snapshotCloseMs?: number;
  /**
   * A snapshot is replaced when its journal exceeds this; default half of the index's memory, at least 16
   * MiB.
   */
  readonly journalBytes?: number;
  /** Which part to hold of the tables that can be split into parts; default: all. */
  readonly part?: Part;
  /** False: vectors are another store's; default true. */
  readonly vectors?: boolean;
}

const DEFAULT_POLL_MS = 5_000;
const DEFAULT_SNAPSHOT_MS = 300_000;
const DEFAULT_CLOSE_MS = 3_000;
/** See SavedBranchOptions. */
const QUIET_MS = 30_000;
/** New branches announce themselves. Listing finds those whose announcement was lost. */
const LIST_EVERY_POLLS = 6;
/**
 * Between rounds the database is left to others for this many times the length of the round, within the
 * bounds below. A stream of small writes is then read in batches: on the embedded database a round costs as
 * much as several inserts, and searches may lag by milliseconds.
 */
const PAUSE_FACTOR = 4;
const MIN_PAUSE_MS = 10;
const MAX_PAUSE_MS = 25;
const FIRST_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 5_000;
/**
 * While the database is known to be unreachable an attempt costs nothing, and its return should be noticed
 * soon.
 */
const MAX_AWAY_BACKOFF_MS = 500;
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
const MAX_LIST_BACKOFF_MS = 1_000;

/** A branch and the state of following it. */
export interface Followed {
  readonly follower: BranchFollower;
  readonly lag: LagMeter;
  /** It has caught up at least once. */
  isReady: boolean;
  /**
   * The store is not ready without it: it was there when the store began, or has been ready before. A branch that is
   * created later makes nobody else wait.
   */
  isAwaited: boolean;
  /** The timer of the next round, and when it fires. */
  scheduled: { readonly timer: NodeJS.Timeout; readonly at: number } | undefined;
  backoffMs: number;
  /** When the first of the rounds failed that have failed since the last good one. */
  failingSince: number | undefined;
  lastRoundAt: number;
  isInRound: boolean;
  /** Something has changed since the current round began. */
  isBehind: boolean;
  /** When the pause after the last round ends. */
  nextRoundAt: number;
  /** Set if the current fault is that a database is unreachable. */
  away: DatabaseAwayError | undefined;
  /** There is no memory for its index. */
  isFull: boolean;
}

export class FollowedBranches {
  readonly #records: FollowedRecords;
  readonly #engine: SearchEngine;
  readonly #options: FollowOptions;
  #snapshots: SnapshotSchedule | undefined;
  readonly #branches = new Map<BranchKey, Followed>();
  readonly #builds = new Semaphore(BUILDS_AT_ONCE);
  readonly #rounds = new Semaphore(ROUNDS_AT_ONCE);
  readonly #stopListening: () => void;
  readonly #faults: BranchFaults;
  readonly #listing: FaultState;
  #isListed = false;
  #isClosed = false;
  #polls = 0;

  constructor(records: FollowedRecords, engine: SearchEngine, options: FollowOptions) {
    this.#records = records;
    this.#engine = engine;
    this.#options = options;
    this.#faults = new BranchFaults("Following the records", options);
    this.#listing = new FaultState("Listing the branches and their snapshots", options);
    if (options.snapshotDir !== undefined) {
      this.#snapshots = new SnapshotSchedule(options.snapshotDir, () => this.#followers(), {
        ...options,
        everyMs: options.snapshotEveryMs ?? DEFAULT_SNAPSHOT_MS,
        closeMs: options.snapshotCloseMs ?? DEFAULT_CLOSE_MS,
      });
      options.snapshotsLost?.addEventListener("abort", () => this.#leaveSnapshots(), { once: true });
    }
    this.#stopListening = records.feed.onChange((ref) => this.#changed(ref));
    void this.#list();
    this.#after(options.pollMs ?? DEFAULT_POLL_MS, () => this.#poll());
  }

  /** The branch, which is followed from now on. */
  follow(ref: BranchRef): Followed {
    const key = branchKey(ref);
    const known = this.#branches.get(key);
    if (known !== undefined) return known;
    const followed: Followed = {
      follower: new BranchFollower({ database: ref.database, branch: ref.branch }, this.#records, this.#engine, {
        part: this.#options.part,
        vectors: this.#options.vectors,
        snapshotPath: this.#snapshots?.pathOf(key),
        journalBytes: this.#options.journalBytes,
        quietMs: Math.min(this.#options.snapshotEveryMs ?? DEFAULT_SNAPSHOT_MS, QUIET_MS),
        onFault: (error) => this.#options.onFault?.(error),
      }),
      lag: new LagMeter(),
      isReady: false,
      isAwaited: !this.#isListed,
      scheduled: undefined,
      backoffMs: FIRST_BACKOFF_MS,
      failingSince: undefined,
      lastRoundAt: Number.NEGATIVE_INFINITY,
      isInRound: false,
      isBehind: false,
      nextRoundAt: 0,
      away: undefined,
      isFull: false,
    };
    this.#branches.set(key, followed);
    this.#schedule(followed, 0);
    return followed;
  }

  status(): Omit<SearchStoreStatus, "waiting"> {
    const status = statusOf(this.#branches.values(), (followed) => this.faultOf(followed), this.#isListed ? [] : ["the list of branches"]);
    return { ...status, ready: status.pending.length === 0 && !this.#isClosed };
  }

  branchStatus(ref: BranchRef): BranchSearchStatus {
    const status = branchStatusOf(this.follow(ref));
    return { ...status, ready: status.ready && !this.#isClosed };
  }

  /** Number of tables with vectors that are held in full although the store holds a part. */
  get wholeTables(): number {
    let count = 0;
    for (const { follower } of this.#branches.values()) count += follower.wholeTables;
    return count;
  }

  /** Why its changes cannot be read at the moment; undefined: they can. */
  faultOf({ follower }: Followed): string | undefined {
    return this.#faults.reasonOf(follower.key);
  }

  /** A round of the branch, asked for by somebody else, has failed or is due: one follows at once, and tells why it fails. */
  retry(followed: Followed): void {
    if (!followed.isInRound && this.faultOf(followed) === undefined) this.#schedule(followed, 0);
  }

  /** @throws {LodestoneError} UNAVAILABLE once it is closed. */
  requireOpen(): void {
    if (this.#isClosed) throw new LodestoneError("UNAVAILABLE", "The search store is closed.");
  }

  /** Runs one more round. false: it failed. @throws {LodestoneError} UNAVAILABLE past the deadline. */
  async catchUp(followed: Followed, deadline: number): Promise<boolean> {
    const round = followed.follower.sync().then(
      () => true,
      async (error: unknown) => {
        // If the data cannot be had, fail at once.
        if (error instanceof DatabaseAwayError || error instanceof IndexFullError) throw error;
        this.retry(followed);
        // Pause, otherwise the next attempt would follow at once.
        await new Promise((resolve) => setTimeout(resolve, FIRST_BACKOFF_MS));
        return false;
      },
    );
    return this.before(deadline, followed, round);
  }

  /** @throws {LodestoneError} UNAVAILABLE past the deadline. */
  async before(deadline: number, followed: Followed, work: Promise<boolean>): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), Math.max(deadline - performance.now(), 0));
    });
    work.catch(() => {}); // in case it fails after the deadline
    const outcome = await Promise.race([work, late]).finally(() => clearTimeout(timer));
    // A round may finish before the timer of a deadline that has passed. Nobody retries for ever.
    if (outcome !== "late" && performance.now() < deadline) return outcome;
    const fault = this.faultOf(followed);
    const why = fault === undefined ? "" : ` (${fault})`;
    throw new LodestoneError(
      "UNAVAILABLE",
      `The search store is still reading branch ${followed.follower.key}${why}; try again in a moment.`,
      {
        retryAfterSeconds: 1,
      },
    );
  }

  /**
   * Takes the error of a search. If what is held of the branch has turned out to be damaged, a round follows at once and
   * reads the records again.
   * @returns what the caller is told.
   */
  searchFailed(followed: Followed, error: unknown): unknown {
    if (!isDamaged(error)) return error;
    const { follower } = followed;
    const told = damagedIndex(follower.key, error);
    if (follower.state === undefined) return told;
    this.#options.onFault?.(told);
    follower.damaged();
    followed.isAwaited ||= followed.isReady;
    followed.isReady = false;
    this.#schedule(followed, 0);
    return told;
  }

  /** The engine has lost its data: every branch is read again from now on, once there is another engine. */
  reset(): void {
    for (const followed of this.#branches.values()) {
      followed.follower.reset();
      followed.isAwaited ||= followed.isReady;
      followed.isReady = false;
    }
  }

  /** There is an engine again. */
  resume(): void {
    for (const followed of this.#branches.values()) this.#schedule(followed, 0);
  }

  /** Saves what is not on disk yet; see SnapshotSchedule.close. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopListening();
    await this.#snapshots?.close();
  }

  #leaveSnapshots(): void {
    this.#snapshots?.leave();
    this.#snapshots = undefined;
    for (const { follower } of this.#branches.values()) follower.leaveSnapshot();
    // An engine that is starting again writes nothing by itself.
    this.#engine.call("leaveSnapshots", {}).catch(() => {});
  }

  #changed(ref: BranchRef): void {
    if (this.#isClosed) return;
    const followed = this.follow(ref);
    followed.lag.changed();
    // A change that arrives during a round may or may not be in it, so another round follows after the pause.
    if (followed.isInRound) followed.isBehind = true;
    // A branch that failed for another reason than an unreachable database keeps to its retry schedule.
    else if (this.faultOf(followed) === undefined || followed.away !== undefined)
      this.#schedule(followed, Math.max(0, followed.nextRoundAt - performance.now()));
  }

  /** Can bring a scheduled round forward, but not delay it. */
  #schedule(followed: Followed, delayMs: number): void {
    const at = performance.now() + delayMs;
    const { scheduled } = followed;
    if (this.#isClosed || (scheduled !== undefined && scheduled.at <= at)) return;
    clearTimeout(scheduled?.timer);
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
      this.#faults.works(follower.key);
      followed.away = undefined;
      followed.failingSince = undefined;
      followed.backoffMs = FIRST_BACKOFF_MS;
      if (follower.isGone && this.#branches.get(follower.key) === followed) this.#branches.delete(follower.key);
    } catch (error) {
      lag.fail();
      if (this.#isClosed) return;
      followed.failingSince ??= followed.lastRoundAt;
      followed.away = error instanceof DatabaseAwayError ? error : undefined;
      followed.isFull = error instanceof IndexFullError;
      this.#faults.failed(follower.key, error);
      followed.nextRoundAt = performance.now() + FIRST_BACKOFF_MS;
      // Random jitter, so that branches and servers do not retry in step.
      const backoffMs = followed.away !== undefined ? Math.min(followed.backoffMs, MAX_AWAY_BACKOFF_MS) : followed.backoffMs;
      this.#schedule(followed, backoffMs * (1 - Math.random() / 2));
      followed.backoffMs = Math.min(2 * followed.backoffMs, MAX_BACKOFF_MS);
    } finally {
      followed.isInRound = false;
    }
  }

  async #list(backoffMs = FIRST_BACKOFF_MS): Promise<void> {
    try {
      for (const ref of await this.#records.allBranches()) {
        if (this.#isClosed) return;
        this.follow(ref);
      }
      this.#isListed = true;
      await this.#snapshots?.removeOrphans();
      this.#listing.works();
    } catch (error) {
      if (this.#isClosed) return;
      this.#listing.failed(error);
      this.#after(backoffMs * (1 - Math.random() / 2), () => void this.#list(Math.min(2 * backoffMs, MAX_LIST_BACKOFF_MS)));
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

  /** Like setTimeout, but does nothing once the store is closed. */
  #after(delayMs: number, work: () => void): NodeJS.Timeout {
    return setTimeout(() => {
      if (!this.#isClosed) work();
    }, delayMs).unref();
  }
}
