/** Records of a table "items" with a vector and a colour, and beside them what the oracle needs to answer searches of them. */
import { deepStrictEqual } from "node:assert/strict";
import type { BranchRef } from "../../src/records/schema.ts";
import type { SearchStore, SimilarityFunction } from "../../src/search/search-store.ts";
import { referenceSearch } from "../reference.ts";
import type { MemoryRecord, MemoryRecords } from "./memory-records.ts";

export class KeptItems {
  readonly kept = new Map<string, MemoryRecord>();
  readonly #ref: BranchRef;
  readonly #records: MemoryRecords;
  readonly #vectorOf: (i: number) => number[] | null;

  /** @param vectorOf  null: that item has none. */
  constructor(ref: BranchRef, records: MemoryRecords, vectorOf: (i: number) => number[] | null) {
    this.#ref = ref;
    this.#records = records;
    this.#vectorOf = vectorOf;
  }

  #item(i: number): MemoryRecord {
    return { id: `i${i}`, v: this.#vectorOf(i), color: ["red", "blue", null][i % 3] };
  }

  /** Writes items from…to − 1, and deletes some, in one transaction. */
  write(from: number, to: number, deleted: string[] = []): void {
    const rows = Array.from({ length: to - from }, (_, i) => this.#item(from + i));
    this.#records.write(this.#ref, "items", rows, deleted);
    for (const row of rows) this.kept.set(row.id, row);
    for (const id of deleted) this.kept.delete(id);
  }

  /** A strong search, compared with the oracle in every bit. */
  async check(
    store: SearchStore,
    query: number[],
    similarityFunction: SimilarityFunction,
    { color, size }: { readonly color?: string; readonly size: number },
  ): Promise<void> {
    const vectors = [...this.kept.values()]
      .filter((row) => row.v !== null && (color === undefined || row.color === color))
      .map((row) => [row.id, row.v as number[]] as const);
    const filter = color === undefined ? undefined : { color };
    const request = { column: "v", queryVector: query, size, similarityFunction, filter, consistency: "strong" } as const;
    const answer = await store.vectorSearch(this.#ref, "items", request);
    deepStrictEqual(answer, referenceSearch(vectors, query, { k: size, similarity: similarityFunction }));
  }
}
