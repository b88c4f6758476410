/** Turns the user's input into the server's answer, and assigns a refusal to the field that it is about. */
import type { Similarity } from "lodestone";
import type { FusionMethod } from "../../full-text/fusion.ts";
import type { TextExplanation } from "../../search/text/search-texts.ts";
import { ApiError, call, messageOf, type Place, pause, recordPath, tablePath } from "../api/client.ts";
import type { Faults, QueryDraft } from "./query-form.tsx";

/** The point from which nearness is measured. */
interface QueryPoint {
  readonly vector: readonly number[];
  readonly name: string;
  /** undefined if it is not a record. */
  readonly id: string | undefined;
}

export interface Hit {
  readonly id: string;
  readonly score: number;
  /** What made the score, if words were searched for. */
  readonly explain?: TextExplanation;
  /** By column: texts, or parts of them, in which what matched is marked (see `markedPieces`). */
  readonly highlight?: Readonly<Record<string, readonly string[]>>;
}

/** How the scores of words and vector are made one. */
interface Fusion {
  readonly method: FusionMethod;
  readonly vectorWeight: number;
  /** Of rrf. */
  readonly k: number;
}

export interface SearchAnswer {
  readonly hits: readonly Hit[];
  readonly totalCount: number;
  /** undefined: only words were searched for. */
  readonly point: QueryPoint | undefined;
  /** "": no words were searched for. */
  readonly words: string;
  /** If both were. */
  readonly fusion: Fusion | undefined;
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

/**
 * @param onWait  told what the server says while it is still reading the table; it is asked again until the signal.
 * @throws {FieldFault} a refusal; the signal's reason.
 */
export async function runSearch(
  place: Place,
  table: string,
  draft: QueryDraft,
  onWait: (message: string) => void,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const filter = parseFilter(draft.filterText);
  const words = draft.words.trim();
  const size = numberOr(draft.size);
  const isNear = draft.by !== "words" && !(words !== "" && (draft.by === "record" ? draft.recordId : draft.vectorText).trim() === "");
  if (!isNear && words === "") throw new FieldFault("words", "Type the words to search for. Records with any of them are found.");
  const point = isNear ? await queryPoint(place, table, draft, signal) : undefined;
  const beganMs = performance.now();
  const { column, similarity } = draft;
  const vector = point && { column, queryVector: point.vector, similarityFunction: similarity };
  const fusion = { method: draft.method, vectorWeight: draft.vectorWeight, k: numberOr(draft.k) };
  const ask = async (): Promise<Pick<SearchAnswer, "hits" | "totalCount">> => {
    const path = tablePath(place, table);
    if (words === "") {
      const body = { ...vector, size, filter, consistency: "strong" };
      const { results, totalCount } = await call<{ results: Hit[]; totalCount: number }>("POST", `${path}/vectorSearch`, body, signal);
      return { hits: results, totalCount };
    }
    const query = { query: words, fuzziness: Number(draft.fuzziness), filter, page: { size }, explain: true };
    const body = vector === undefined ? query : { ...query, vector, fusion };
    const { records, totalCount } = await call<FoundTexts>("POST", `${path}/search`, body, signal);
    return { hits: records.map(({ id, xata }) => ({ id, ...xata })), totalCount };
  };
  const found = await inFields(draft.by, () => whenRead(ask, onWait, signal));
  const answer = { ...found, point, words, similarity, filter, ms: performance.now() - beganMs };
  return { ...answer, fusion: point === undefined || words === "" ? undefined : (fusion as Fusion) };
}

interface FoundTexts {
  readonly records: readonly { readonly id: string; readonly xata: Omit<Hit, "id"> }[];
  readonly totalCount: number;
}

/** What is no number is left to the server, which says so. */
const numberOr = (text: string): number | string => (text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text));

/** A table is read for searches when it is first searched; until that is done, the server answers 503. */
async function whenRead<T>(ask: () => Promise<T>, onWait: (message: string) => void, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === UNAVAILABLE)) throw error;
      onWait(error.message);
      await pause(error.retryAfterMs, signal);
    }
  }
}

const UNAVAILABLE = 503;

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
  if (/^(vector\.)?queryVector/.test(message)) return by === "record" ? "recordId" : "vectorText";
  if (message.startsWith("fusion.k")) return "k";
  return message.startsWith("query") ? "words" : "general";
}

/**
 * A text in which what matched is in `<em>` and all else encoded, as the server marks it.
 * @returns its pieces, of which every second one matched.
 */
export const markedPieces = (highlighted: string): readonly string[] =>
  highlighted.split(/<\/?em>/).map((piece) => piece.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => CHARACTERS[entity] as string));

const CHARACTERS: Readonly<Record<string, string>> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };
