/** Searches for words: waits until a store holds them, and asks its engine. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { BranchRef } from "../../records/schema.ts";
import { checkWithCurrentSchema, isSame } from "../current-schema.ts";
import type { FollowedBranches } from "../followed-branches.ts";
import type { FollowedRecords } from "../followed-schema.ts";
import type { SearchEngine } from "../search-engine.ts";
import { branchKey, RESULT_BYTES, type TextSearchJob } from "../search-messages.ts";
import { refusalOf } from "../search-outcome.ts";
import type { SearchQueue } from "../search-queue.ts";
import type { SearchCallOptions } from "../search-store.ts";
import type { FoundText, ReadTables } from "./found-text.ts";
import { openRemoteVectors, type VectorSearch } from "./remote-vectors.ts";
import type { TextTableJob } from "./search-texts.ts";
import { searchedLanguage, type TablePlan, type TextPlan } from "./text-request.ts";

/** While records change, a search of halves that two stores hold is done again so often. */
const TRIES_AT_ONE_POSITION = 4;

/** The parts of a store that its searches use. */
export interface SearchedStore {
  readonly records: FollowedRecords;
  readonly engine: SearchEngine;
  readonly queue: SearchQueue;
  readonly branches: FollowedBranches;
  readonly waitMs: number;
}

export class TextSearches {
  readonly #store: SearchedStore;

  constructor(store: SearchedStore) {
    this.#store = store;
  }

  /**
   * @param searchVectors  where another store holds the vectors. It sees everything that was acknowledged before it is
   *   called, and so does this one before and after: if it is at the same position then, both halves were.
   */
  async search(
    ref: BranchRef,
    plan: TextPlan,
    readTables: ReadTables,
    { signal, budget }: SearchCallOptions,
    searchVectors?: VectorSearch,
  ): Promise<FoundText[]> {
    const { records, engine, queue, branches, waitMs } = this.#store;
    const deadline = performance.now() + waitMs;
    let mayWait = false;
    let moved = 0;
    for (let attempt = 0; ; attempt++) {
      signal?.throwIfAborted();
      branches.requireOpen();
      const { info, checked: tables } = await checkWithCurrentSchema(records, ref, readTables);
      const ids = tables.map(({ table }) => table.id);
      const followed = branches.follow(ref);
      let isHeld = followed.follower.holdsTexts(ids);
      // Everything acknowledged before now was committed before the round that begins now.
      const isStrong = (plan.consistency === "strong" && attempt === 0) || searchVectors !== undefined;
      if (!isHeld || isStrong) while (!(await branches.catchUp(followed, deadline)));
      isHeld = followed.follower.holdsTexts(ids);
      if (isHeld && followed.follower.state?.incarnation === info.incarnation) {
        const maxBytes = budget?.remaining ?? Number.POSITIVE_INFINITY;
        const half = tables[0]?.vector;
        const { changes } = followed.follower;
        const remote = searchVectors && half && openRemoteVectors(tables[0]!, half, searchVectors);
        const job: TextSearchJob = {
          ...plan.job,
          vector: remote ? remote.half : half,
          tables: tables.map((table) => tableJob(table, plan)),
          maxBytes,
          key: branchKey(ref),
          incarnation: info.incarnation,
          mayWait,
        };
        const outcome = await queue
          .runWords(budget?.caller ?? "", signal, () => engine.call("searchTexts", job, remote ? [remote.half.port] : []))
          .catch((error: unknown) => {
            const isFull = error instanceof LodestoneError && error.code === "OUT_OF_MEMORY";
            throw isFull ? followed.follower.refuseTexts(error) : branches.searchFailed(followed, error);
          })
          .finally(() => remote?.close());
        if (outcome.kind === "reading") {
          const read = engine.call("textsRead", { key: job.key }).then(() => true);
          await branches.before(deadline, followed, read);
          mayWait = true;
          continue;
        }
        if (outcome.kind === "answers") {
          let { position }: { position: string | undefined } = outcome;
          if (remote) {
            while (!(await branches.catchUp(followed, deadline)));
            if (followed.follower.changes !== changes) {
              if (++moved < TRIES_AT_ONE_POSITION) continue;
              position = undefined;
            }
          }
          let bytes = 0;
          for (const table of outcome.tables) for (const id of table.ids) bytes += id.length + RESULT_BYTES;
          budget?.charge(bytes);
          return outcome.tables.map((table, i) => ({ ...table, plan: tables[i]!, position }));
        }
        const refused = refusalOf(outcome, info.version);
        if (refused !== undefined && isSame(info, await records.currentBranch(ref))) throw refused;
      }
      await branches.catchUp(followed, deadline);
    }
  }
}

function tableJob({ table, targets, filter, boosters, place }: TablePlan, plan: TextPlan): TextTableJob {
  const columns = targets.map(({ column, weight }) => ({ columnId: column.id, weight, language: searchedLanguage(plan, column) }));
  return { tableId: table.id, targets: columns, filter, boosters, place };
}
