/** An index with generated rows, and beside it the same rows for the oracle. */
import { VectorIndex } from "../../src/index.ts";
import { source } from "./data-kinds.ts";

export interface GrowingIndex {
  readonly index: VectorIndex;
  readonly model: Map<string, Float32Array>;
  /** Where the rows come from, and queries like them. */
  readonly data: ReturnType<typeof source>;
  /** Writes the next vector to both. */
  readonly put: (id: string) => void;
}

/** @returns with rows id0, id1, … */
export async function growingIndex(kind: string, dimension: number, count: number, seed: number): Promise<GrowingIndex> {
  const data = source(kind, dimension, seed);
  const index = await VectorIndex.create({ dimension });
  const model = new Map<string, Float32Array>();
  const put = (id: string): void => {
    const vector = data.next();
    index.upsert(id, vector);
    model.set(id, vector);
  };
  for (let i = 0; i < count; i++) put(`id${i}`);
  return { index, model, data, put };
}
