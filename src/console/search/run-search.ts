/** Turns the user's input into the server's answer, and assigns a refusal to the field that it is about. */
import type { Similarity } from "lodestone";
import { ApiError, call, messageOf, type Place, recordPath, tablePath } from "../api/client.ts";
import type { Faults, QueryDraft } from "./query-form.tsx";

/** The point from which nearness is measured. */
interface QueryPoint {
  readonly vector: readonly number[];
  readonly name: string;
  /** undefined if it is not a record. */
  readonly id: string | undefined;
}

export interface SearchAnswer {
  /** With the contribution of each search, if there were two. */
  readonly hits: readonly (Ranked | Fused)[];
  readonly totalCount: number;
  /** undefined: only words were searched for. */
  readonly point: QueryPoint | undefined;
  /** "": no words were searched for. */
  readonly words: string;
  readonly similarity: Similarity;
  readonly filter: unknown;
  /** Duration of the whole request, as the page measured it. */
  readonly ms: number;
}

export class FieldFault extends Error {
  readonly field: keyof Faults;

  constructor(field: keyof Faults, message: string) {
    super(message);
    this.field = field;
  }
}

/** At least this many records of each ranking are fused. */
const FUSED_DEPTH = 100;
/** The maximum that a search for words returns. */
const MAX_WORD_HITS = 200;

interface Found {
  readonly hits: readonly Ranked[];
  readonly totalCount: number;
}

/** @throws {FieldFault} */
export async function runSearch(place: Place, table: string, draft: QueryDraft, signal: AbortSignal): Promise<SearchAnswer> {
  const filter = parseFilter(draft.filterText);
  const words = draft.words.trim();
  const size = Number.isNaN(Number(draft.size)) ? draft.size : Number(draft.size);
  if (draft.by === "words" && words === "") throw new FieldFault("words", "Which words? A record is found by any of them.");
  const point = draft.by === "words" ? undefined : await queryPoint(place, table, draft, signal);
  const beganMs = performance.now();
  const asking = { path: tablePath(place, table), filter, signal };
  const isFused = point !== undefined && words !== "";
  const depth = isFused && typeof size === "number" ? Math.max(FUSED_DEPTH, size) : size;
  const [nearest, found] = await Promise.all([
    point === undefined ? undefined : findNearest(asking, draft, point.vector, depth),
    words === "" ? undefined : findWords(asking, words, isFused ? MAX_WORD_HITS : size),
  ]);
  if (isFused && (typeof size !== "number" || !Number.isInteger(size) || size < 1))
    throw new FieldFault("size", `size is ${draft.size}; expected a whole number from 1.`);
  const hits = isFused ? fuse(nearest?.hits ?? [], found?.hits ?? [], size as number) : ((nearest ?? found)?.hits ?? []);
  const { similarity } = draft;
  return { hits, totalCount: (nearest ?? found)?.totalCount ?? 0, point, words, similarity, filter, ms: performance.now() - beganMs };
}

interface Asking {
  readonly path: string;
  readonly filter: unknown;
  readonly signal: AbortSignal;
}

async function findNearest(
  { path, filter, signal }: Asking,
  draft: QueryDraft,
  queryVector: readonly number[],
  size: unknown,
): Promise<Found> {
  const { column, similarity, by } = draft;
  const body = { column, queryVector, similarityFunction: similarity, size, filter, consistency: "strong" };
  const { results, totalCount } = await inFields(by, () =>
    call<{ results: Ranked[]; totalCount: number }>("POST", `${path}/vectorSearch`, body, signal),
  );
  return { hits: results, totalCount };
}

async function findWords({ path, filter, signal }: Asking, query: string, size: unknown): Promise<Found> {
  const body = { query, filter, page: { size }, highlight: { enabled: false } };
  const { records, totalCount } = await inFields("words", () =>
    call<{ records: { id: string; xata: { score: number } }[]; totalCount: number }>("POST", `${path}/search`, body, signal),
  );
  return { hits: records.map(({ id, xata }) => ({ id, score: xata.score })), totalCount };
}

async function queryPoint(place: Place, table: string, draft: QueryDraft, signal: AbortSignal): Promise<QueryPoint> {
  if (draft.by === "vector") return { vector: parseVector(draft.vectorText), name: "the vector", id: undefined };
  const id = draft.recordId.trim();
  if (id === "") throw new FieldFault("recordId", "Which record? Type its id, or click one on the map.");
  try {
    return { vector: await vectorOfRecord(place, table, id, draft.column, signal), name: id, id };
  } catch (error) {
    if (signal.aborted) throw error;
    throw new FieldFault("recordId", messageOf(error));
  }
}

/** @throws {ApiError} */
export async function vectorOfRecord(
  place: Place,
  table: string,
  id: string,
  column: string,
  signal?: AbortSignal,
): Promise<readonly number[]> {
  const path = `${recordPath(place, table, id)}?columns=${encodeURIComponent(column)}`;
  const vector = (await call<Record<string, unknown>>("GET", path, undefined, signal))[column];
  if (!Array.isArray(vector)) throw new Error(`The record has no vector in ${column}.`);
  return vector as number[];
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

async function inFields<T>(by: QueryDraft["by"], request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new FieldFault(fieldOf(error.message, by), error.message);
  }
}

/** The server begins a message with the member it is about. */
function fieldOf(message: string, by: QueryDraft["by"]): keyof Faults {
  if (message.startsWith("filter")) return "filterText";
  if (message.startsWith("size") || message.startsWith("page")) return "size";
  if (message.startsWith("queryVector")) return by === "record" ? "recordId" : "vectorText";
  return by === "words" ? "words" : "general";
}

/** Of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009). */
const RANK_OFFSET = 60;

export interface Ranked {
  readonly id: string;
  readonly score: number;
}

/** A record's place in one of the lists. */
export interface Part {
  /** From 1. */
  readonly rank: number;
  /** The list's own score. */
  readonly score: number;
  /** Its share of the fused score. */
  readonly contribution: number;
}

export interface Fused extends Ranked {
  /** undefined if that list did not contain the record. */
  readonly nearness: Part | undefined;
  readonly words: Part | undefined;
}

/**
 * Combines two rankings into one: a record gets 1 / (60 + its rank) from each list that contains it. So scores of different
 * kinds need not be comparable, and the contribution of each list is visible.
 *
 * @returns best first; equal ones by id.
 */
function fuse(byNearness: readonly Ranked[], byWords: readonly Ranked[], size: number): readonly Fused[] {
  const nearness = partsOf(byNearness);
  const words = partsOf(byWords);
  return [...new Set([...nearness.keys(), ...words.keys()])]
    .map((id) => {
      const parts = { nearness: nearness.get(id), words: words.get(id) };
      return { id, score: (parts.nearness?.contribution ?? 0) + (parts.words?.contribution ?? 0), ...parts };
    })
    .toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    .slice(0, size);
}

function partsOf(ranked: readonly Ranked[]): ReadonlyMap<string, Part> {
  return new Map(ranked.map(({ id, score }, i) => [id, { rank: i + 1, score, contribution: 1 / (RANK_OFFSET + i + 1) }]));
}
