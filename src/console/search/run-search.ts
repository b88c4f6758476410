/** From what was typed to the server's answer, and from its refusal to the field that it is about. */
import type { Similarity } from "lodestone";
import { ApiError, call, messageOf } from "../api/client.ts";
import { type Place, recordPath, tablePath } from "../api/paths.ts";
import type { Faults, QueryDraft } from "./query-form.tsx";

export interface Hit {
  readonly id: string;
  readonly score: number;
}

export interface SearchAnswer {
  readonly hits: readonly Hit[];
  readonly totalCount: number;
  readonly queryVector: readonly number[];
  readonly queryName: string;
  /** undefined: the query is no record. */
  readonly queryId: string | undefined;
  readonly similarity: Similarity;
  readonly filter: unknown;
  /** Of the whole request, as the page saw it. */
  readonly ms: number;
}

export class FieldFault extends Error {
  readonly field: keyof Faults;

  constructor(field: keyof Faults, message: string) {
    super(message);
    this.field = field;
  }
}

/** @throws {FieldFault} */
export async function runSearch(place: Place, table: string, draft: QueryDraft, signal: AbortSignal): Promise<SearchAnswer> {
  const filter = parseFilter(draft.filterText);
  const size = Number(draft.size);
  const isRecord = draft.by === "record";
  const queryVector = isRecord ? await vectorOfRecord(place, table, draft, signal) : parseVector(draft.vectorText);
  const beganMs = performance.now();
  const { column, similarity } = draft;
  const body = { column, queryVector, similarityFunction: similarity, size: Number.isNaN(size) ? draft.size : size, consistency: "strong" };
  try {
    const answer = await call<{ results: Hit[]; totalCount: number }>(
      "POST",
      `${tablePath(place, table)}/vectorSearch`,
      filter === undefined ? body : { ...body, filter },
      signal,
    );
    return {
      hits: answer.results,
      totalCount: answer.totalCount,
      queryVector,
      queryName: isRecord ? draft.recordId : "the vector",
      queryId: isRecord ? draft.recordId : undefined,
      similarity,
      filter,
      ms: performance.now() - beganMs,
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new FieldFault(fieldOf(error.message, isRecord), error.message);
  }
}

async function vectorOfRecord(
  place: Place,
  table: string,
  { recordId, column }: QueryDraft,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const id = recordId.trim();
  if (id === "") throw new FieldFault("recordId", "Which record? Type its id, or click one on the map.");
  try {
    const record = await call<Record<string, unknown>>(
      "GET",
      `${recordPath(place, table, id)}?columns=${encodeURIComponent(column)}`,
      undefined,
      signal,
    );
    const vector = record[column];
    if (!Array.isArray(vector)) throw new FieldFault("recordId", `The record has no vector in ${column}.`);
    return vector as number[];
  } catch (error) {
    if (error instanceof ApiError) throw new FieldFault("recordId", error.message);
    throw error;
  }
}

function parseVector(text: string): readonly number[] {
  const words = text
    .replace(/[[\]]/g, " ")
    .split(/[\s,;]+/)
    .filter((word) => word !== "");
  const numbers = words.map(Number);
  const wrong = numbers.findIndex((value) => !Number.isFinite(value));
  if (wrong !== -1)
    throw new FieldFault("vectorText", `Element ${wrong} is ${JSON.stringify((words[wrong] as string).slice(0, 40))}; expected a number.`);
  return numbers;
}

function parseFilter(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new FieldFault("filterText", `This is not JSON: ${messageOf(error)}`);
  }
}

/** The server begins a message with the member that it is about. */
function fieldOf(message: string, isRecord: boolean): keyof Faults {
  if (message.startsWith("filter")) return "filterText";
  if (message.startsWith("size")) return "size";
  if (message.startsWith("queryVector")) return isRecord ? "recordId" : "vectorText";
  return "general";
}
