/**
 * The messages between a ParallelVectorIndex and its workers. Each request gets one reply with its number, in
 * order.
 */
import type { ErrorReply } from "../threads/worker-calls.ts";
import type { Similarity } from "./similarity.ts";
import type { VectorFolder } from "./vector-file.ts";
import type { ShardSearch, ShardUsage } from "./vector-shard.ts";
import type { Build, WasmModule } from "./wasm-module.ts";

export type ShardRequest =
  | {
      type: "open";
      dimension: number;
      module: WasmModule | undefined;
      maximumMemoryBytes: number | undefined;
      /** Where the shard keeps its vectors, under this name; undefined: in memory. */
      vectors: { folder: VectorFolder; name: string } | undefined;
    }
  /**
   * `rows` are the worker's own row numbers; `matrix` is f32[rows.length × dimension]. Rows are reserved
   * before any is set. `isDeferred`: their codes are made once nothing is asked of the worker (deferred-coding.ts).
   */
  | { type: "set"; rows: Uint32Array; ids: string[]; matrix: Float32Array; isDeferred: boolean }
  | { type: "clear"; rows: Uint32Array }
  /** Vectors of rows, f32[rows.length × dimension]; zeros for a row without a vector. */
  | { type: "read"; rows: Uint32Array }
  | { type: "search"; queries: Float32Array; search: Omit<ShardSearch, "exchange">; shard: number; exchange: SharedArrayBuffer | undefined }
  /** Of one query, see score-rows.ts. */
  | { type: "score"; query: Float32Array; rows: Uint32Array; similarity: Similarity }
  /** Pieces of the shard's image; undefined after the last. */
  | { type: "save"; isFirst: boolean }
  | { type: "endSave"; isKept: boolean }
  /** Takes in a piece of an image. */
  | { type: "load"; piece: Uint8Array }
  /** The rows that have a vector, ascending. */
  | { type: "rows" }
  /** The ids of rows that came with an image. */
  | { type: "name"; rows: Uint32Array; ids: string[] }
  | { type: "usage" };

/** One worker's answer: ids and scores, best first. */
export interface ShardAnswer {
  totalCount: number;
  /** The worker's own row numbers. */
  rows: Uint32Array;
  ids: string[];
  scores: Float64Array;
}

export interface ShardResults {
  open: { build: Build; isOutside: boolean };
  set: undefined;
  clear: undefined;
  read: Float32Array;
  search: ShardAnswer[];
  score: Float64Array;
  save: Uint8Array | undefined;
  endSave: undefined;
  /** Whether that was the last piece. */
  load: boolean;
  rows: Uint32Array;
  name: undefined;
  usage: ShardUsage;
}

export interface ShardReply {
  number: number;
  value?: unknown;
  error?: ErrorReply;
}
