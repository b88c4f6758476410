/** The vector half of a search for words and vectors: asks who has the vectors what the algorithm wants to know. */
import type { MessagePort } from "node:worker_threads";
import type { Fusion } from "../../full-text/fusion.ts";
import { type Answer, type Ask, type HybridAnswer, type HybridSearch, searchHybrid } from "../../full-text/hybrid.ts";
import type { ColumnIndex } from "../column-index.ts";
import type { SimilarityFunction } from "../search-store.ts";
import type { SearchTable } from "../table-index.ts";
import { askOver, MOST_NEAREST } from "./remote-vectors.ts";

export interface VectorHalf {
  readonly columnId: number;
  readonly query: Float32Array;
  readonly similarity: SimilarityFunction;
  readonly fusion: Fusion;
  /** Another store holds the vectors and is asked over it. */
  readonly port?: MessagePort;
}

const NO_SCORES = new Float64Array(0);

/**
 * @param column  the name of the vectors' column.
 * @param rest  called between two steps.
 * @returns undefined: its vectors are not there (yet, or any more).
 */
export async function searchBothHalves(
  data: SearchTable,
  column: string,
  half: VectorHalf,
  search: Omit<HybridSearch, "source" | "fusion">,
  rest: () => Promise<void>,
): Promise<HybridAnswer | undefined> {
  const index = data.indexes.get(column);
  if (half.port === undefined && index?.dimension !== half.query.length) return undefined;
  const source = {
    capacity: data.capacity,
    isBefore: (a: number, b: number) => data.rows.isBefore(a, b),
    idHashes: () => data.idHashes(),
    vectorRows: () => data.vectorRows(column),
    ...(half.port !== undefined && { mostNearest: MOST_NEAREST }),
  };
  const answer = half.port === undefined ? askIndex(index!, data, half, search.mask) : askOver(half.port, data);
  const steps = searchHybrid({ ...search, source, fusion: half.fusion });
  for (let step = steps.next(); ; await rest()) {
    if (step.done === true) return step.value;
    step = steps.next(await answer(step.value));
  }
}

function askIndex(index: ColumnIndex, data: SearchTable, half: VectorHalf, mask: Uint32Array): (ask: Ask) => Promise<Answer> {
  return async ({ k, rows }) => {
    // Together: the threads of the column have both from the start.
    const [[nearest], wanted] = await Promise.all([
      k === 0 ? [] : index.searchMany([half.query], { k, similarity: half.similarity, filter: mask }),
      rows.length === 0 ? NO_SCORES : index.scoreRows(half.query, rows, half.similarity),
    ]);
    const results = nearest?.results ?? [];
    return { rows: results.map(({ id }) => data.rowOf(id)!), scores: Float64Array.from(results, ({ score }) => score), wanted };
  };
}
