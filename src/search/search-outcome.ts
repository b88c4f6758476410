/** What a search is given back: the engine's outcome as an answer, or as a refusal that the database has yet to confirm. */
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { OwnAnswers } from "./parts/local-part.ts";
import { IndexFullError } from "./search-engine.ts";
import type { NotAnswered, SearchAnswer, SearchJob, SearchOutcome } from "./search-messages.ts";
import type { VectorSearchResponse } from "./search-store.ts";

/** undefined: the engine's schema is not that version, or is older, so the reported error may not be real. */
export function ownAnswers(job: SearchJob, outcome: SearchOutcome, version: number): OwnAnswers | LodestoneError | undefined {
  if (outcome.kind === "answers") {
    const { answers, bytes, schemaVersion, part } = outcome;
    // Member by member: each search passes here, and a spread costs as much as checking its vector.
    return { answers, bytes, schemaVersion, part, incarnation: job.incarnation, tableId: job.tableId, columnId: job.columnId };
  }
  return refusalOf(outcome, version);
}

export function refusalOf(outcome: NotAnswered, version: number): LodestoneError | undefined {
  if (outcome.kind === "full") return new IndexFullError(new LodestoneError("OUT_OF_MEMORY", outcome.message));
  return outcome.kind === "invalid" && outcome.schemaVersion >= version ? new LodestoneError("INVALID", outcome.message) : undefined;
}

/** The result offset is applied after merging the answers of all parts. */
export function fromFirst(job: SearchJob): SearchJob {
  return { ...job, offset: 0, size: job.offset + job.size };
}

export function toResponse({ totalCount, ids, scores }: SearchAnswer): VectorSearchResponse {
  return { totalCount, results: ids.map((id, i) => ({ id, score: scores[i]! })) };
}
