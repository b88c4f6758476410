/** The vector half of a search for words and vectors: asks the column's index what the algorithm wants to know. */
import type { Fusion } from "../../full-text/fusion.ts";
import { type HybridAnswer, type HybridSearch, type Nearest, searchHybrid } from "../../full-text/hybrid.ts";
import type { ColumnIndex } from "../column-index.ts";
import type { SimilarityFunction } from "../search-store.ts";
import type { SearchTable } from "../table-index.ts";

export interface VectorHalf {
  readonly columnId: number;
  readonly query: Float32Array;
  readonly similarity: SimilarityFunction;
  readonly fusion: Fusion;
}

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
  const nearest = async (filter: Uint32Array, k: number): Promise<Nearest> => {
    const [answer] = await index.searchMany([half.query], { k, similarity: half.similarity, filter });
    const { totalCount, results } = answer!;
    return { total: totalCount, rows: results.map(({ id }) => data.rowOf(id)!), scores: Float64Array.from(results, ({ score }) => score) };
  };
  const steps = searchHybrid({ ...search, source, fusion: half.fusion });
  for (let step = steps.next(); ; ) {
    if (step.done === true) return step.value;
    if (step.value.length === 0) await rest();
    step = steps.next(await Promise.all(step.value.map(({ mask, k }) => nearest(mask, k))));
  }
}
