/** What the library exports; runs in browsers and Node. */
export type { ParallelVectorIndexOptions } from "./core/parallel-vector-index.ts";
export { ParallelVectorIndex } from "./core/parallel-vector-index.ts";
export { RowDirectory } from "./core/row-directory.ts";
export type { SearchFilter, SearchOptions, SearchResult } from "./core/search-input.ts";
export { SIMILARITIES, type Similarity } from "./core/similarity.ts";
export type { VectorIndexOptions } from "./core/vector-index.ts";
export { VectorIndex } from "./core/vector-index.ts";
export type { Build, InitOptions, WasmModule, WasmSource } from "./core/wasm-module.ts";
export { init, isRelaxedAvailable, RELAXED_SIMD_FLAG } from "./core/wasm-module.ts";
export { LodestoneError } from "./errors.ts";
