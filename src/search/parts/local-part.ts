/** The part that this process holds. */
import type { AnswerBudget } from "../../budget/memory-budget.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Part, SharedSnapshot } from "../../records/feed/feed-types.ts";
import { formatBranchRef } from "../../records/identifiers.ts";
import type { BranchRef } from "../../records/schema.ts";
import type { Query } from "../request-check.ts";
import type { FoundAnswers } from "../search-messages.ts";
import type { SearchStoreStatus } from "../search-store.ts";
import {
  formatPart,
  type PartCall,
  type PartCallOptions,
  type PartResult,
  type PartSearch,
  type PartSource,
  type PartStatus,
} from "./part-messages.ts";

/** Answers, and the branch, table and column that they come from. */
export interface OwnAnswers extends FoundAnswers {
  readonly incarnation: string;
  readonly tableId: number;
  readonly columnId: number;
}

export interface OwnSearch {
  readonly ref: BranchRef;
  readonly table: string;
  readonly request: PartSearch["request"];
  readonly queries: readonly Query[];
  readonly maxBytes: number;
}

export interface OwnCallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly waitMs: number;
  readonly caller: string;
}

/** The store that follows the records of the part. */
export interface OwnRecords {
  /** The first `offset + size` results, from the store's current position. */
  searchOwn(search: OwnSearch, options: OwnCallOptions): Promise<OwnAnswers>;
  /**
   * The same for several searches of one branch, from exactly the state that the snapshot sees. "passed": the
   * store is already beyond it.
   */
  searchAt(
    snapshot: SharedSnapshot,
    searches: readonly OwnSearch[],
    waitMs: number,
  ): Promise<readonly (OwnAnswers | "passed" | LodestoneError)[]>;
  schemaVersion(ref: BranchRef): Promise<number | undefined>;
  status(): SearchStoreStatus;
}

type Budget = Pick<AnswerBudget, "remaining" | "charge">;

export class LocalPart implements PartSource {
  readonly part: Part;
  readonly #records: OwnRecords;

  constructor(part: Part, records: OwnRecords) {
    this.part = part;
    this.#records = records;
  }

  get status(): PartStatus {
    const { ready, lagMs } = this.#records.status();
    return { part: this.part, ready, lagMs };
  }

  /** @param budget  charged with the answers; undefined: the caller charges them. */
  async search(call: PartCall, options: PartCallOptions, budget?: Budget): Promise<PartResult[]> {
    const { index, of } = call.part;
    if (index !== this.part.index || of !== this.part.of) {
      throw new LodestoneError("INVALID", `This server holds part ${formatPart(this.part)}, and was asked for ${formatPart(call.part)}.`);
    }
    const { snapshot } = call;
    if (snapshot === undefined) return Promise.all(call.searches.map((search) => this.#searchNow(search, options, budget)));
    const results = new Map<PartSearch, PartResult>();
    const ofBranch = async (searches: readonly PartSearch[]): Promise<void> => {
      const outcomes = await this.#searchAt(snapshot, searches, options.limitMs, budget);
      searches.forEach((search, i) => {
        results.set(search, outcomes[i]!);
      });
    };
    await Promise.all([...byBranch(call.searches).values()].map(ofBranch));
    return call.searches.map((search) => results.get(search)!);
  }

  async #searchNow(search: PartSearch, { signal, limitMs }: PartCallOptions, budget: Budget | undefined): Promise<PartResult> {
    try {
      return this.#charged(
        await this.#records.searchOwn(ownSearch(search, budget), { signal, waitMs: limitMs, caller: search.caller }),
        budget,
      );
    } catch (error) {
      return this.#refused(search.ref, error);
    }
  }

  async #searchAt(
    snapshot: SharedSnapshot,
    searches: readonly PartSearch[],
    waitMs: number,
    budget: Budget | undefined,
  ): Promise<readonly PartResult[]> {
    const { ref } = searches[0]!;
    try {
      const own = searches.map((search) => ownSearch(search, budget));
      const outcomes = await this.#records.searchAt(snapshot, own, waitMs);
      const resultOf = (outcome: (typeof outcomes)[number]): PartResult | Promise<PartResult> => {
        if (outcome === "passed") return { kind: "passed" };
        return outcome instanceof LodestoneError ? this.#refused(ref, outcome) : this.#charged(outcome, budget);
      };
      return await Promise.all(outcomes.map(resultOf));
    } catch (error) {
      const refused = await this.#refused(ref, error);
      return searches.map(() => refused);
    }
  }

  #charged(found: OwnAnswers, budget: Budget | undefined): PartResult {
    const { answers, bytes, incarnation, schemaVersion, tableId, columnId, part } = found;
    budget?.charge(bytes);
    return { kind: "answers", answers, incarnation, schemaVersion, tableId, columnId, part };
  }

  /** The refusal as a result. Rethrows what a replica might be able to answer. */
  async #refused(ref: BranchRef, error: unknown): Promise<PartResult> {
    if (!(error instanceof LodestoneError) || error.code === "UNAVAILABLE") throw error;
    const { code, message, retryAfterSeconds } = error;
    const schemaVersion = code === "NOT_FOUND" || code === "INVALID" ? await this.#records.schemaVersion(ref) : undefined;
    return { kind: "refused", code, message, schemaVersion, retryAfterSeconds };
  }
}

function byBranch(searches: readonly PartSearch[]): Map<string, PartSearch[]> {
  const groups = new Map<string, PartSearch[]>();
  for (const search of searches) {
    const key = formatBranchRef(search.ref);
    const group = groups.get(key) ?? [];
    group.push(search);
    groups.set(key, group);
  }
  return groups;
}

/** @throws {LodestoneError} INVALID when the numbers are not whole vectors. */
function ownSearch({ ref, table, request, queries, count, maxBytes }: PartSearch, budget: Budget | undefined): OwnSearch {
  const dimension = queries.length / count;
  if (!Number.isInteger(dimension)) throw new LodestoneError("INVALID", `${queries.length} numbers are not ${count} vectors.`);
  const vectors = Array.from({ length: count }, (_, i) => [...queries.subarray(i * dimension, (i + 1) * dimension)]);
  const names = vectors.map((vector, i) => ({ name: count === 1 ? "queryVector" : `queryVectors[${i}]`, vector }));
  return { ref, table, request, queries: names, maxBytes: Math.min(maxBytes, budget?.remaining ?? maxBytes) };
}
