/**
 * The vector half of a search where another store holds the vectors (parts, or another database): the worker that has
 * the words asks over a port, and this process's store answers by vector searches as anybody could ask them.
 */
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Answer, Ask } from "../../full-text/hybrid.ts";
import { describeError, type ErrorReply, rebuildError } from "../../threads/worker-calls.ts";
import { MAX_OFFSET, MAX_SIZE } from "../request-check.ts";
import type { VectorSearchRequest, VectorSearchResponse } from "../search-store.ts";
import type { SearchTable } from "../table-index.ts";
import type { ReadTables } from "./found-text.ts";
import type { TablePlan } from "./text-request.ts";
import type { VectorHalf } from "./vector-half.ts";

/** As many of the best as vector searches give. */
export const MOST_NEAREST = MAX_OFFSET + MAX_SIZE;
/** Of one search, by bonus. */
const MAX_WANTED = 100_000;

interface RemoteAsk {
  readonly k: number;
  readonly ids: readonly string[];
}

interface RemoteAnswer {
  /** The k best, best first. */
  readonly ids: readonly string[];
  readonly scores: Float64Array;
  readonly wanted: Float64Array;
}

type Reply = RemoteAnswer | { readonly error: ErrorReply };

/** The worker's side: asks one thing at a time. */
export function askOver(port: MessagePort, data: SearchTable): (ask: Ask) => Promise<Answer> {
  return async ({ k, rows }) => {
    const ids = Array.from(rows, (row) => data.idOf(row)!);
    const reply = await new Promise<Reply>((resolve, reject) => {
      port.once("message", resolve);
      port.once("close", () => reject(new LodestoneError("UNAVAILABLE", "The search was given up.")));
      port.postMessage({ k, ids } satisfies RemoteAsk);
    });
    if ("error" in reply) throw rebuildError(reply.error);
    // Records that are not here (yet) count as found, and are no results.
    const nearest = reply.ids.map((id) => data.rowOf(id) ?? data.capacity);
    return { rows: nearest, scores: reply.scores, wanted: reply.wanted };
  };
}

/** `search` adds column and vector; `filter` is the request's own. */
function answerOver(
  port: MessagePort,
  filter: unknown,
  search: (request: Required<Pick<VectorSearchRequest, "filter" | "size" | "offset">>) => Promise<VectorSearchResponse>,
): void {
  let wantedSoFar = 0;
  const answer = async ({ k, ids }: RemoteAsk): Promise<RemoteAnswer> => {
    wantedSoFar += ids.length;
    if (wantedSoFar > MAX_WANTED)
      throw new LodestoneError("TIMEOUT", "The search needs the vectors of too many records; ask with a filter, or without boosters.");
    const nearest: VectorSearchResponse["results"] = [];
    for (let size = Math.min(k, MAX_SIZE); nearest.length < k; size = Math.min(k - nearest.length, MAX_SIZE)) {
      const { results } = await search({ filter, size, offset: nearest.length });
      nearest.push(...results);
      if (results.length < size) break;
    }
    const scores = new Map<string, number>();
    for (let start = 0; start < ids.length; start += MAX_SIZE) {
      const some = ids.slice(start, start + MAX_SIZE);
      for (const { id, score } of (await search({ filter: { id: { $any: some } }, size: some.length, offset: 0 })).results)
        scores.set(id, score);
    }
    return {
      ids: nearest.map(({ id }) => id),
      scores: Float64Array.from(nearest, ({ score }) => score),
      wanted: Float64Array.from(ids, (id) => scores.get(id) ?? Number.NaN),
    };
  };
  port.on("message", (ask: RemoteAsk) => {
    void answer(ask)
      .catch((error: unknown) => ({ error: describeError(error) }))
      .then((reply: Reply) => port.postMessage(reply));
  });
}

/** A search of the vectors of a table of one branch. */
export type VectorSearch = (table: string, request: VectorSearchRequest) => Promise<VectorSearchResponse>;

/** Ranks need the scores of all vectors, which is too much to ask another server for. */
export function withoutRanks(readTables: ReadTables): ReadTables {
  return (info) => {
    const plans = readTables(info);
    if (plans.every(({ vector }) => vector?.fusion.method !== "rrf")) return plans;
    throw new LodestoneError(
      "INVALID",
      'fusion.method: "rrf" needs a server that holds all vectors in its memory, without --search-part and --search-url; use "standardized" or "linear".',
    );
  };
}

/** The vector half of a job, whose vectors another store searches until it is closed. */
export function openRemoteVectors(
  { table, filter }: TablePlan,
  half: VectorHalf,
  search: VectorSearch,
): { readonly half: VectorHalf & { readonly port: MessagePort }; close(): void } {
  const { port1, port2 } = new MessageChannel();
  const column = [...table.columns.values()].find(({ id }) => id === half.columnId)!.name;
  const common = { column, queryVector: half.query, similarityFunction: half.similarity, consistency: "strong" as const };
  answerOver(port1, filter, (request) => search(table.name, { ...common, ...request }));
  return { half: { ...half, port: port2 }, close: () => port1.close() };
}
