/** What the library exports; runs in browsers and Node. */
export { RowDirectory } from "./core/row-directory.ts";
export type { Similarity } from "./core/similarity.ts";
export type { SearchFilter, SearchOptions, SearchResult, VectorIndexOptions } from "./core/vector-index.ts";
export { VectorIndex } from "./core/vector-index.ts";
export type { Build, InitOptions, WasmSource } from "./core/wasm-module.ts";
export { init, RELAXED_SIMD_FLAG } from "./core/wasm-module.ts";
export { LodestoneError } from "./errors.ts";
