/** The rows of one linear memory, addressed by number. It knows no ids; VectorIndex does. */
import type { Similarity } from "./similarity.ts";
import type { ThresholdExchange } from "./threshold-exchange.ts";
import type { VectorStore } from "./vector-store.ts";
import type { Build } from "./wasm-module.ts";

export interface ShardSearch {
  /** At least 1. */
  k: number;
  similarity: Similarity;
  /**
   * Bit r of the mask (word r >> 5, bit r & 31) selects row r. Rows past its end are not selected. Without a
   * mask all rows are selected.
   */
  mask?: Uint32Array | undefined;
  /**
   * "floats": reads float32 only, without the codes; for measurements. "sketches": first learns and makes
   * sketches of all rows, whether they pay or not; for tests. The answer is the same, but slower.
   */
  plan?: Plan | undefined;
  /** Where the shards of one search, of one query, share their scores. */
  exchange?: ThresholdExchange | undefined;
}

export type Plan = "auto" | "floats" | "sketches";

/** What the last search read. */
export interface ScanCounts {
  /** Rows whose whole code was read, not just its head or sketch. */
  fullRows: number;
  /** Rows that their codes did not rule out and that were scored from float32. */
  exactRows: number;
  /**
   * Bytes of rows read, in any form: codes, their metadata, float32. Repeated reads count each time. A read
   * shared by several queries counts once.
   */
  bytes: number;
  /** Rows read from the file of the vectors, those between two wanted ones included; 0 when vectors are in memory. */
  fetchedRows: number;
  /** Their bytes. */
  fetchedBytes: number;
}

/** What a shard holds, as the members of VectorShard. */
export interface ShardUsage {
  memoryBytes: number;
  fileBytes: number;
}

export interface ShardHits {
  /** Number of selected rows that have a vector. */
  totalCount: number;
  /** Best first; equal scores in the order of isIdBefore. */
  rows: Uint32Array;
  scores: Float64Array;
}

export interface ShardOptions {
  /** 1 to 10,000. */
  dimension: number;
  /**
   * Whether the id of row a sorts before that of row b. Called only when two scores are equal to the last
   * bit.
   */
  isIdBefore: (rowA: number, rowB: number) => boolean;
  /** Memory limit in bytes; default and maximum 4 GiB. */
  maximumMemoryBytes?: number | undefined;
  /**
   * Where the float32 vectors are kept; default: in memory. Without effect on dimensions below 48, whose rows have no
   * codes, and on the scalar build.
   */
  vectors?: Pick<VectorStore, "open"> | undefined;
}

/**
 * Vectors passed to a shard must be finite float32 of its dimension. Callers check that (vector-input.ts).
 */
export interface VectorShard {
  readonly build: Build;
  readonly dimension: number;
  /** Rows that fit without growing. */
  readonly capacity: number;
  /** Rows that have a vector. */
  readonly size: number;
  /** Bytes of memory held. */
  readonly memoryBytes: number;
  /** Bytes of the file of the vectors; 0 when they are in memory. */
  readonly fileBytes: number;
  /** Whether the vectors are in a file. Only such shards have images. */
  readonly isOutside: boolean;
  /**
   * Makes room for rows 0..rows − 1. @throws {LodestoneError} OUT_OF_MEMORY at the limit; stored rows stay
   * searchable.
   */
  reserve(rows: number): void;
  /**
   * Stores a vector at a row, growing as needed.
   * @param isDeferred  many come: `code` is called when none does any more. One that is not in memory does not wait.
   * @throws as reserve; nothing has changed then.
   */
  set(row: number, vector: Float32Array, isDeferred?: boolean): void;
  /** Makes codes of some of the rows that were set without, in about 10 ms. @returns whether others wait. */
  code(): boolean;
  /** @returns whether there was a vector. */
  clear(row: number): boolean;
  has(row: number): boolean;
  /** A copy of the vector at `row`. */
  read(row: number): Float32Array | undefined;
  /** `queries` is one or more queries, n × dimension. There is one answer for each. */
  search(queries: Float32Array, options: ShardSearch): ShardHits[];
  /**
   * The shard without its vectors, in pieces (shard-image.ts). What an image refers to stays in the file until a later
   * one is kept. Nothing may be written before its end.
   */
  save(): Iterable<Uint8Array<ArrayBuffer>>;
  /** Call it after `save`: whether its image takes the place of all earlier ones. */
  endSave(isKept: boolean): void;
  /**
   * Loads an image into an empty shard: `next` takes its pieces in order, and is done with the last.
   * @throws {LodestoneError} from `next`: CORRUPT, OUT_OF_MEMORY.
   */
  load(): Generator<undefined, void, Uint8Array>;
  /** For measurements. Counts no rows in builds and plans that read no codes. */
  readonly lastScan: ScanCounts;
  /** Frees the memory. The shard cannot be used afterwards. */
  free(): void;
}
