/**
 * The search store of a server that holds one part of the vectors. It asks all parts and merges their
 * answers.
 *
 * Its answer is identical, in every bit, to that of one server that holds everything. If that is not possible
 * it answers 503, never with an incomplete answer. It searches alone the tables that every server holds in
 * full (see followed-schema.ts).
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Part, SnapshotSharing } from "../../records/feed/feed-types.ts";
import type { BranchInfo, BranchRef } from "../../records/schema.ts";
import { type FollowedRecords, followedSchema } from "../followed-schema.ts";
import { FollowingSearchStore, type SearchStoreOptions } from "../open-search-store.ts";
import { checkQueryVectors, checkSearch, type Query } from "../request-check.ts";
import { RESULT_BYTES } from "../search-messages.ts";
import { toResponse } from "../search-outcome.ts";
import type {
  BranchSearchStatus,
  QueryVector,
  SearchCallOptions,
  SearchStore,
  SearchStoreStatus,
  VectorSearchRequest,
  VectorSearchResponse,
} from "../search-store.ts";
import type { FoundText, ReadTables } from "../text/found-text.ts";
import type { TextPlan } from "../text/text-request.ts";
import { LocalPart } from "./local-part.ts";
import { mergeAnswers, together } from "./merge-answers.ts";
import type { PartResult, PartSearch } from "./part-messages.ts";
import { PartReplicas } from "./part-replicas.ts";
import { PeerClient } from "./peer-client.ts";
import { StrongRounds } from "./strong-rounds.ts";

export interface PartsOptions extends SearchStoreOptions {
  /** The part that this server holds. */
  readonly part: Part;
  /** For each part, the URLs of the servers that hold it. This server may be among them. */
  readonly peers: readonly (readonly string[])[];
  /** The shared secret by which the servers recognize each other. */
  readonly secret: string;
}

export type PartedRecords = FollowedRecords & { readonly feed: SnapshotSharing };

const DEFAULT_WAIT_MS = 10_000;
/** Pause between attempts while some servers have not yet seen a schema change. */
const RETRY_MS = 20;
const PROBE_EVERY_MS = 3_000;

type Request = Omit<VectorSearchRequest, "queryVector">;

export class PartsSearchStore implements SearchStore {
  /** The local part, which other servers query. */
  readonly local: LocalPart;
  readonly #records: PartedRecords;
  readonly #options: PartsOptions;
  readonly #own: FollowingSearchStore;
  readonly #parts: readonly PartReplicas[];
  readonly #strong: StrongRounds;
  readonly #prober: NodeJS.Timeout;

  constructor(records: PartedRecords, options: PartsOptions) {
    this.#records = records;
    this.#options = options;
    this.#own = new FollowingSearchStore(records, { ...options, searchVectors: this });
    this.local = new LocalPart(options.part, this.#own);
    const { index: ownIndex, of } = options.part;
    this.#parts = options.peers.map((urls, index) => {
      const peers = urls.map((url) => new PeerClient(url, options.secret));
      return new PartReplicas({ index, of }, index === ownIndex ? this.local : undefined, peers, (error) => options.onFault?.(error));
    });
    this.#strong = new StrongRounds(records.feed, this.#parts);
    this.#prober = setInterval(() => void this.#probe(), PROBE_EVERY_MS);
    this.#prober.unref();
  }

  async vectorSearch(
    ref: BranchRef,
    table: string,
    request: VectorSearchRequest,
    options: SearchCallOptions = {},
  ): Promise<VectorSearchResponse> {
    const { queryVector, ...rest } = request;
    return (await this.#search(ref, table, rest, [{ name: "queryVector", vector: queryVector }], options))[0]!;
  }

  async vectorSearchMany(
    ref: BranchRef,
    table: string,
    request: Request & { queryVectors: readonly QueryVector[] },
    options: SearchCallOptions = {},
  ): Promise<VectorSearchResponse[]> {
    const { queryVectors, ...rest } = request;
    return this.#search(ref, table, rest, checkQueryVectors(queryVectors), options);
  }

  textSearch(ref: BranchRef, plan: TextPlan, tables: ReadTables, options?: SearchCallOptions): Promise<FoundText[]> {
    return this.#own.textSearch(ref, plan, tables, options);
  }

  status(): SearchStoreStatus {
    const missing = this.#parts.filter((part) => part.isMissing).map(({ part }) => part.index);
    return {
      ...this.#own.status(),
      parts: { ...this.#options.part, missing, wholeTables: this.#own.wholeTables, retries: this.#strong.retries },
    };
  }

  branchStatus(ref: BranchRef): BranchSearchStatus {
    return this.#own.branchStatus(ref);
  }

  async close(): Promise<void> {
    clearInterval(this.#prober);
    await this.#own.close();
    for (const part of this.#parts) part.close();
  }

  async #search(
    ref: BranchRef,
    table: string,
    request: Request,
    queries: readonly Query[],
    options: SearchCallOptions,
  ): Promise<VectorSearchResponse[]> {
    const { signal, budget } = options;
    const deadline = performance.now() + (this.#options.waitMs ?? DEFAULT_WAIT_MS);
    for (;;) {
      signal?.throwIfAborted();
      const info = await this.#records.branch(ref);
      const job = checkSearch(info, table, request, queries);
      if (!this.#isInParts(info, table)) {
        const { answers, part } = await this.#own.search(ref, table, request, queries, options);
        // The store may still be at the older schema, in which it holds only a part of the table.
        if (part === undefined) return answers.map(toResponse);
        await this.#pause(deadline);
        continue;
      }
      const { consistency, ...asked } = request;
      const search: PartSearch = {
        ref: { database: ref.database, branch: ref.branch },
        table,
        request: asked,
        queries: job.queries,
        count: job.count,
        maxBytes: budget?.remaining ?? Number.MAX_SAFE_INTEGER,
        caller: budget?.caller ?? "",
      };
      const results =
        consistency === "strong" ? await this.#strong.search(search, deadline, signal) : await this.#searchNow(search, deadline, signal);
      const answered = together(results);
      if (answered !== undefined) {
        return withBudget(budget, answered, () =>
          queries.map((_, i) =>
            mergeAnswers(
              answered.map(({ answers }) => answers[i]!),
              job.offset,
              job.size,
            ),
          ),
        );
      }
      refuse(results, info);
      await this.#pause(deadline);
    }
  }

  async #pause(deadline: number): Promise<void> {
    if (performance.now() + RETRY_MS >= deadline) {
      throw new LodestoneError("UNAVAILABLE", "The parts of the vectors do not have the same schema yet; try again in a moment.", {
        retryAfterSeconds: 1,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }

  async #searchNow(search: PartSearch, deadline: number, signal: AbortSignal | undefined): Promise<PartResult[]> {
    const limitMs = Math.max(1, deadline - performance.now());
    // When one part has failed, the calls to the others are cancelled.
    const given = new AbortController();
    // Not AbortSignal.any: the caller's signal outlives the search, and would remember each of them.
    const onAbort = (): void => given.abort(signal!.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const all = this.#parts.map((part) => part.search({ searches: [search] }, { signal: given.signal, limitMs }));
      return (await Promise.all(all)).map(([result]) => result!);
    } finally {
      signal?.removeEventListener("abort", onAbort);
      given.abort();
    }
  }

  #isInParts(info: BranchInfo, table: string): boolean {
    return followedSchema(info, { part: this.#options.part }).get(table)?.part !== undefined;
  }

  async #probe(): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.probe()));
  }
}

/**
 * Throws the first refusal that counts. A refusal based on an older schema than the one the request was
 * checked against does not count.
 *
 * @throws {LodestoneError} with the code and message of the part.
 */
function refuse(results: readonly PartResult[], info: BranchInfo): void {
  for (const result of results) {
    if (result.kind !== "refused" || (result.schemaVersion !== undefined && result.schemaVersion < info.version)) continue;
    const { code, message, retryAfterSeconds } = result;
    throw new LodestoneError(code, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
  }
}

/**
 * Merges under the request's budget. During the merge all parts' answers are held, which is more than the
 * final answer.
 */
function withBudget(
  budget: SearchCallOptions["budget"],
  results: readonly Extract<PartResult, { kind: "answers" }>[],
  merge: () => VectorSearchResponse[],
): VectorSearchResponse[] {
  if (budget === undefined) return merge();
  const giveBack = budget.mark();
  budget.hold(results.reduce((sum, { answers }) => sum + answers.reduce((bytes, { ids }) => bytes + bytesOf(ids), 0), 0));
  const merged = merge();
  giveBack();
  budget.charge(merged.reduce((sum, { results: page }) => sum + bytesOf(page.map(({ id }) => id)), 0));
  return merged;
}

function bytesOf(ids: readonly string[]): number {
  return ids.reduce((sum, id) => sum + id.length + RESULT_BYTES, 0);
}
