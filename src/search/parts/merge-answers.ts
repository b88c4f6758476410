/** Merges the answers of all parts to one query into the answer that one server would give. */
import { compareText } from "../../text/code-point-order.ts";
import type { SearchAnswer } from "../search-messages.ts";
import type { VectorSearchResponse } from "../search-store.ts";
import type { PartResult } from "./part-messages.ts";

type Answered = Extract<PartResult, { kind: "answers" }>;

/**
 * All results, in the order of the parts, if each is an answer of its part and they belong together: same
 * incarnation of the branch, same schema, same column. undefined: some servers have not yet seen a schema
 * change.
 */
export function together(results: readonly PartResult[]): readonly Answered[] | undefined {
  const answered = results.filter((result) => result.kind === "answers");
  const [first] = answered;
  if (first === undefined || answered.length < results.length) return undefined;
  const isSame = answered.every(
    ({ incarnation, schemaVersion, tableId, columnId, part }, index) =>
      incarnation === first.incarnation &&
      schemaVersion === first.schemaVersion &&
      tableId === first.tableId &&
      columnId === first.columnId &&
      part?.index === index &&
      part.of === results.length,
  );
  return isSame ? answered : undefined;
}

/** Each record is in one part, and each part's results are in order: best first, equal scores by id. */
export function mergeAnswers(parts: readonly SearchAnswer[], offset: number, size: number): VectorSearchResponse {
  const next = parts.map(() => 0);
  const results: { id: string; score: number }[] = [];
  for (let rank = 0; rank < offset + size; rank++) {
    let best: number | undefined;
    for (let part = 0; part < parts.length; part++) {
      if (next[part]! >= parts[part]!.ids.length) continue;
      if (best === undefined || isBefore(parts[part]!, next[part]!, parts[best]!, next[best]!)) best = part;
    }
    if (best === undefined) break;
    const at = next[best]!++;
    if (rank >= offset) results.push({ id: parts[best]!.ids[at]!, score: parts[best]!.scores[at]! });
  }
  return { totalCount: parts.reduce((sum, { totalCount }) => sum + totalCount, 0), results };
}

function isBefore(a: SearchAnswer, atA: number, b: SearchAnswer, atB: number): boolean {
  const difference = a.scores[atA]! - b.scores[atB]!;
  return difference > 0 || (difference === 0 && compareText(a.ids[atA]!, b.ids[atB]!) < 0);
}
