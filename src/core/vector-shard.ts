/** One linear memory's worth of rows, addressed by number. Knows no ids; see VectorIndex for those. */
import type { Similarity } from "./similarity.ts";
import type { ThresholdExchange } from "./threshold-exchange.ts";
import type { Build } from "./wasm-module.ts";

export interface ShardSearch {
  /** At least 1. */
  k: number;
  similarity: Similarity;
  /** Bit r of the mask (word r >> 5, bit r & 31) selects row r. Rows past its end are not selected; without a mask all are. */
  mask?: Uint32Array | undefined;
  /**
   * "floats": read float32 only, without the codes; for measurements. "sketches": learn and make sketches of all rows first, whether
   * they pay or not; for tests. The same answer, later.
   */
  plan?: Plan | undefined;
  /** What the shards of one search, of one query, tell each other. */
  exchange?: ThresholdExchange | undefined;
}

export type Plan = "auto" | "floats" | "sketches";

/** What the last search read. */
export interface ScanCounts {
  /** Rows whose whole code was read, not its head or sketch alone. */
  fullRows: number;
  /** Rows that their codes did not rule out, scored from float32. */
  exactRows: number;
  /** Bytes of rows, in whatever form: codes, their metadata, float32. Counted each time they are read; where queries share a reading, once. */
  bytes: number;
}

export interface ShardHits {
  /** How many rows have a vector and are selected. */
  totalCount: number;
  /** Best first; equal scores in the order of isIdBefore. */
  rows: Uint32Array;
  scores: Float64Array;
}

export interface ShardOptions {
  /** 1 to 10,000. */
  dimension: number;
  /** Whether the id of row a sorts before that of row b; asked only when two scores are equal to the last bit. */
  isIdBefore: (rowA: number, rowB: number) => boolean;
  /** At most this much memory, in bytes; default and maximum 4 GiB. */
  maximumMemoryBytes?: number | undefined;
}

/** Vectors given to a shard are finite float32 of its dimension: callers check (vector-input.ts). */
export interface VectorShard {
  readonly build: Build;
  readonly dimension: number;
  /** Rows that have room without growing. */
  readonly capacity: number;
  /** Rows that have a vector. */
  readonly size: number;
  /** Bytes of memory held. */
  readonly memoryBytes: number;
  /** Makes room for rows 0..rows − 1. @throws {LodestoneError} OUT_OF_MEMORY at the limit; everything stored stays and answers. */
  reserve(rows: number): void;
  /** Stores a vector at a row, growing as needed. @throws as reserve; then nothing has changed. */
  set(row: number, vector: Float32Array): void;
  /** @returns whether there was a vector. */
  clear(row: number): boolean;
  has(row: number): boolean;
  /** A copy of the vector at `row`. */
  read(row: number): Float32Array | undefined;
  /** `queries` is one or more queries, n × dimension; one answer each. */
  search(queries: Float32Array, options: ShardSearch): ShardHits[];
  /** For measurements; no rows in builds and plans that read no codes. */
  readonly lastScan: ScanCounts;
  /** Drops the memory. The shard cannot be used afterwards. */
  free(): void;
}
