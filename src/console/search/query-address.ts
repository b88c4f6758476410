/** The query in the address: what differs from the one that a table begins with. */
import type { Params } from "../state/route.ts";
import type { TableSchema } from "../state/server-content.ts";
import type { QueryDraft } from "./query-form.tsx";

export function firstDraft(table: TableSchema): QueryDraft {
  const column = table.columns.find(({ type }) => type === "vector");
  // In few dimensions people see distance; in many dimensions models express meaning by direction.
  const isSmall = table.columns.some(({ vector }) => vector !== undefined && vector.dimension <= 8);
  return {
    column: column?.name ?? "",
    similarity: isSmall ? "l2" : "cosineSimilarity",
    size: "10",
    filterText: "",
    by: column === undefined ? "words" : "record",
    recordId: "",
    vectorText: "",
    words: "",
    fuzziness: "1",
    method: "standardized",
    vectorWeight: 0.5,
    k: "60",
  };
}

/** The member of the query for each name in the address. */
const NAMES = {
  words: "words",
  by: "by",
  like: "recordId",
  vector: "vectorText",
  column: "column",
  measure: "similarity",
  match: "fuzziness",
  combined: "method",
  weight: "vectorWeight",
  k: "k",
  filter: "filterText",
  results: "size",
} as const;

/** Browsers and programs that pass an address on cut longer ones. */
const MOST_CHARACTERS = 8_000;

export function paramsOf(draft: QueryDraft, first: QueryDraft): Params {
  return Object.fromEntries(
    Object.entries(NAMES).map(([name, member]) => {
      const text = String(draft[member]);
      const isSaid = text !== String(first[member]) && text.length <= MOST_CHARACTERS && isUsed(member, draft);
      return [name, isSaid ? text : undefined];
    }),
  );
}

/** A vector that was typed before one searched for a record is not part of the search. */
const isUsed = (member: keyof QueryDraft, { by }: QueryDraft): boolean =>
  member === "recordId" ? by === "record" : member === "vectorText" ? by === "vector" : true;

/** Of what the address says, what belongs to the query. */
export const queryParamsOf = (params: Params): Params =>
  Object.fromEntries(Object.keys(NAMES).flatMap((name) => (params[name] === undefined ? [] : [[name, params[name]] as const])));

export function draftOf(params: Params, first: QueryDraft): QueryDraft {
  const given = Object.entries(NAMES).flatMap(([name, member]) => (params[name] === undefined ? [] : [[member, params[name]] as const]));
  const draft = { ...first, ...Object.fromEntries(given) };
  return { ...draft, vectorWeight: Number(draft.vectorWeight) };
}
