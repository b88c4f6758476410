/** The vector half of a search for words and vectors: asks the column's index what the algorithm wants to know. */
import type { Fusion } from "../../full-text/fusion.ts";
import { type Answer, type Ask, type HybridAnswer, type HybridSearch, searchHybrid } from "../../full-text/hybrid.ts";
import type { ColumnIndex } from "../column-index.ts";
import type { SimilarityFunction } from "../search-store.ts";
import type { SearchTable } from "../table-index.ts";

export interface VectorHalf {
  readonly columnId: number;
  readonly query: Float32Array;
  readonly similarity: SimilarityFunction;
  readonly fusion: Fusion;
}

const NO_SCORES = new Float64Array(0);

/** @param rest  called between two steps. */
export async function searchBothHalves(
  data: SearchTable,
  index: ColumnIndex,
  half: VectorHalf,
  search: Omit<HybridSearch, "source" | "fusion">,
  rest: () => Promise<void>,
): Promise<HybridAnswer> {
  const source = {
    capacity: data.capacity,
    isBefore: (a: number, b: number) => data.rows.isBefore(a, b),
    idHashes: () => data.idHashes(),
    vectorRows: () => data.vectorRows(index),
  };
  const { mask } = search;
  const answer = async ({ k, rows }: Ask): Promise<Answer> => {
    // Together: the threads of the column have both from the start.
    const [[nearest], wanted] = await Promise.all([
      k === 0 ? [] : index.searchMany([half.query], { k, similarity: half.similarity, filter: mask }),
      rows.length === 0 ? NO_SCORES : index.scoreRows(half.query, rows, half.similarity),
    ]);
    const results = nearest?.results ?? [];
    return { rows: results.map(({ id }) => data.rowOf(id)!), scores: Float64Array.from(results, ({ score }) => score), wanted };
  };
  const steps = searchHybrid({ ...search, source, fusion: half.fusion });
  for (let step = steps.next(); ; await rest()) {
    if (step.done === true) return step.value;
    step = steps.next(await answer(step.value));
  }
}
