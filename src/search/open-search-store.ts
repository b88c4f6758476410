/**
 * Opens the search store over a record store, with one engine for the indexes and one follower per branch.
 */
import type { Worker } from "node:worker_threads";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { SharedSnapshot } from "../records/feed/feed-types.ts";
import type { BranchInfo, BranchRef } from "../records/schema.ts";
import { checkWithCurrentSchema, isSame } from "./current-schema.ts";
import { type Followed, FollowedBranches, type FollowOptions } from "./followed-branches.ts";
import type { FollowedRecords } from "./followed-schema.ts";
import type { OwnAnswers, OwnCallOptions, OwnRecords, OwnSearch } from "./parts/local-part.ts";
import { checkQueryVectors, checkSearch, type Query } from "./request-check.ts";
import type { SearchEngine, StartEngine } from "./search-engine.ts";
import { branchKey, type SearchJob, type SearchOutcome, type WorkerOptions } from "./search-messages.ts";
import { fromFirst, ownAnswers, toResponse } from "./search-outcome.ts";
import { SearchQueue } from "./search-queue.ts";
import type {
  BranchSearchStatus,
  QueryVector,
  SearchCallOptions,
  SearchStore,
  SearchStoreStatus,
  VectorSearchRequest,
  VectorSearchResponse,
} from "./search-store.ts";
import type { FoundText, ReadTables } from "./text/found-text.ts";
import { type VectorSearch, withoutRanks } from "./text/remote-vectors.ts";
import type { TextPlan } from "./text/text-request.ts";
import { TextSearches } from "./text/text-searches.ts";
import { startSearchWorker, WorkerClient } from "./worker-client.ts";

export interface SearchStoreOptions extends FollowOptions {
  /**
   * How long a search waits for a branch or schema that has not been read yet before it fails with
   * UNAVAILABLE; default 10 s.
   */
  readonly waitMs?: number;
  /** Limit of searches waiting for the engine. Beyond it they are refused with OVERLOADED; default 512. */
  readonly maxWaiting?: number;
  /** Columns with at least this many bytes of float32 are searched by several threads; default 64 MiB. */
  readonly shardedFromBytes?: number;
  /**
   * With snapshots, columns with at least this many bytes of float32 keep them in files beside these, and only their codes in
   * memory; default: none.
   */
  readonly onDiskFromBytes?: number;
  /**
   * Memory limit of all indexes together: vectors and filter columns. Beyond it, the largest branch of the
   * database that uses most is not searched. Default: no limit.
   */
  readonly maxIndexBytes?: number;
  /** The engine that holds the vectors; default: a worker thread of this process. */
  readonly startEngine?: StartEngine;
  /** Searches the vectors of all records where this store holds a part of them; default: this store. */
  readonly searchVectors?: Pick<SearchStore, "vectorSearch">;
  /** Starts the search worker. For tests that need to end it. @internal */
  readonly startWorker?: () => Worker;
}

const DEFAULT_WAIT_MS = 10_000;

function workerOptions({ shardedFromBytes, onDiskFromBytes, maxIndexBytes }: SearchStoreOptions): WorkerOptions {
  return { shardedFromBytes, onDiskFromBytes, maxIndexBytes };
}

/** Resolves at once. The branches are read in the background; `status().ready` turns true when all are. */
export async function openSearchStore(records: FollowedRecords, options: SearchStoreOptions = {}): Promise<SearchStore> {
  return new FollowingSearchStore(records, options);
}

export class FollowingSearchStore implements SearchStore, OwnRecords {
  readonly #records: FollowedRecords;
  readonly #options: SearchStoreOptions;
  readonly #engine: SearchEngine;
  readonly #queue: SearchQueue;
  readonly #branches: FollowedBranches;
  readonly #texts: TextSearches;
  readonly #waitMs: number;
  /** Holds the words where this store holds no records, or a part of them; from the first search for words on. */
  #wordStore: FollowingSearchStore | undefined;
  #isClosed = false;

  constructor(records: FollowedRecords, options: SearchStoreOptions) {
    this.#records = records;
    this.#options = options;
    const startWorker = options.startWorker ?? (() => startSearchWorker(workerOptions(options)));
    const startEngine = options.startEngine ?? ((events) => new WorkerClient(events, startWorker));
    this.#engine = startEngine({
      onLost: (error) => {
        options.onFault?.(error);
        this.#branches.reset();
      },
      onRestart: () => this.#branches.resume(),
    });
    this.#queue = new SearchQueue(options.maxWaiting, this.#engine.searchesAtOnce);
    this.#branches = new FollowedBranches(records, this.#engine, options);
    this.#waitMs = options.waitMs ?? DEFAULT_WAIT_MS;
    this.#texts = new TextSearches({
      records,
      engine: this.#engine,
      queue: this.#queue,
      branches: this.#branches,
      waitMs: this.#waitMs,
    });
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
    request: Omit<VectorSearchRequest, "queryVector"> & { queryVectors: readonly QueryVector[] },
    options?: SearchCallOptions,
  ): Promise<VectorSearchResponse[]> {
    const { answers } = await this.search(ref, table, request, checkQueryVectors(request.queryVectors), options);
    return answers.map(toResponse);
  }

  async textSearch(ref: BranchRef, plan: TextPlan, tables: ReadTables, options: SearchCallOptions = {}): Promise<FoundText[]> {
    const words = this.#words();
    if (words === undefined) return this.#texts.search(ref, plan, tables, options);
    const search = this.#options.searchVectors ?? this;
    const searchVectors: VectorSearch = (table, request) => search.vectorSearch(ref, table, request, options);
    return words.#texts.search(ref, plan, withoutRanks(tables), options, searchVectors);
  }

  status(): SearchStoreStatus {
    return { ...this.#branches.status(), waiting: this.#queue.waiting };
  }

  branchStatus(ref: BranchRef): BranchSearchStatus {
    return this.#branches.branchStatus(ref);
  }

  /** Number of tables with vectors that are held in full although the store holds a part. */
  get wholeTables(): number {
    return this.#branches.wholeTables;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#branches.close();
    this.#queue.close(new LodestoneError("UNAVAILABLE", "The search store is closed."));
    await this.#wordStore?.close();
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
        waitMs: this.#waitMs,
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
    const jobs = await Promise.all(
      searches.map(async (search) => {
        try {
          return fromFirst((await this.#check(search)).job);
        } catch (error) {
          if (error instanceof LodestoneError) return error;
          throw error;
        }
      }),
    );
    const followed = this.#branches.follow(ref);
    const { follower } = followed;
    if (follower.state?.incarnation !== info.incarnation) {
      await this.#branches.catchUp(followed, performance.now() + waitMs);
      return jobs.map(() => "passed");
    }
    // The searches bypass the queue: they go to the engine together, before the next change does.
    const moved = await follower.at(snapshot, () => jobs.map((job) => (job instanceof LodestoneError ? job : this.#ask(followed, job))));
    if (moved === "changed") this.#branches.retry(followed);
    if (typeof moved === "string") return jobs.map(() => "passed");
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

  #words(): FollowingSearchStore | undefined {
    if (this.#engine.holdsTexts !== false && this.#options.part === undefined) return undefined;
    this.#branches.requireOpen();
    if (this.#wordStore === undefined) {
      const { startEngine: _engine, part: _part, snapshotDir: _directory, searchVectors: _vectors, ...options } = this.#options;
      const records: FollowedRecords = {
        feed: this.#records.feed.forFollower("words", { vectorsPresentOnly: true }),
        branch: (ref) => this.#records.branch(ref),
        currentBranch: (ref) => this.#records.currentBranch(ref),
        allBranches: () => this.#records.allBranches(),
      };
      this.#wordStore = new FollowingSearchStore(records, { ...options, vectors: false });
    }
    return this.#wordStore;
  }

  /** @throws {LodestoneError} UNAVAILABLE when the vectors are not what was written: they are read again from the records. */
  #ask(followed: Followed, job: SearchJob): Promise<SearchOutcome> {
    return this.#engine.call("search", job).catch((error: unknown) => {
      throw this.#branches.searchFailed(followed, error);
    });
  }

  async #check({ ref, table, request, queries, maxBytes }: OwnSearch): Promise<{ info: BranchInfo; job: SearchJob }> {
    const { info, checked } = await checkWithCurrentSchema(this.#records, ref, (found) => checkSearch(found, table, request, queries));
    return { info, job: { key: branchKey(ref), ...checked, maxBytes } };
  }

  async #search(
    search: OwnSearch & { readonly request: Omit<VectorSearchRequest, "queryVector"> },
    adapt: (job: SearchJob) => SearchJob,
    { signal, waitMs, caller }: OwnCallOptions,
  ): Promise<OwnAnswers> {
    const deadline = performance.now() + waitMs;
    this.#branches.requireOpen();
    const { ref, request } = search;
    const { consistency } = request;
    if (consistency !== undefined && consistency !== "strong" && consistency !== "eventual") {
      throw new LodestoneError("INVALID", 'consistency: expected "strong" or "eventual".');
    }
    for (let attempt = 0; ; attempt++) {
      signal?.throwIfAborted();
      const { info, job: checked } = await this.#check(search);
      const job = adapt(checked);
      const followed = this.#branches.follow(ref);
      // Everything acknowledged before now was committed before the round that begins now.
      if (consistency === "strong" && attempt === 0) while (!(await this.#branches.catchUp(followed, deadline)));
      if (followed.follower.state?.incarnation === info.incarnation) {
        // A filter reads its columns as slowly as eight times as many codes.
        const bytes = followed.follower.stats.memoryBytes * job.count * (job.filter === undefined ? 1 : 8);
        const outcome = await this.#queue.run(caller, signal, () => this.#ask(followed, job), bytes);
        const found = ownAnswers(job, outcome, info.version);
        if (found instanceof LodestoneError && isSame(info, await this.#records.currentBranch(ref))) throw found;
        if (found !== undefined && !(found instanceof LodestoneError)) return found;
      }
      await this.#branches.catchUp(followed, deadline);
    }
  }
}
