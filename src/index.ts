/** What the library exports; runs in browsers, Node and edge runtimes. */
export type { AbortSignalLike } from "./core/abort-signal.ts";
export type { ByteSource, ByteStream } from "./core/byte-stream.ts";
export type { LoadParallelIndexOptions, ParallelSearchOptions, ParallelVectorIndexOptions } from "./core/parallel-vector-index.ts";
export { ParallelVectorIndex } from "./core/parallel-vector-index.ts";
export type {
  CheckedValues,
  ColumnFilter,
  ColumnName,
  ColumnTyping,
  FilterOf,
  RowColumns,
  RowOf,
  RowValues,
  ValuesOf,
} from "./core/row-columns.ts";
export { RowDirectory } from "./core/row-directory.ts";
export type { SearchFilter, SearchHit, SearchOptions, SearchResult } from "./core/search-input.ts";
export { SIMILARITIES, type Similarity } from "./core/similarity.ts";
export type { TextExplanation, TextSearch, TextSearchHit, TextSearchResult } from "./core/text-search.ts";
export type { TransferOptions, TransferProgress } from "./core/transfer.ts";
export { openVectorFile, type VectorDirectory, type VectorFile, type VectorFolder } from "./core/vector-file.ts";
export type { LoadIndexOptions, VectorIndexOptions } from "./core/vector-index.ts";
export { VectorIndex } from "./core/vector-index.ts";
export type { Plan, ScanCounts } from "./core/vector-shard.ts";
export { VectorStore } from "./core/vector-store.ts";
export type { Build, InitOptions, WasmModule, WasmSource } from "./core/wasm-module.ts";
export { init, isRelaxedAvailable, provideModule, RELAXED_SIMD_FLAG } from "./core/wasm-module.ts";
export { LodestoneError } from "./errors/library-error.ts";
export type { LibraryErrorCode } from "./errors/lodestone-error.ts";
export type { Fusion, FusionMethod } from "./full-text/fusion.ts";
export type { HalfScore } from "./full-text/hybrid.ts";
export type { TextContribution } from "./full-text/text-scores.ts";
export { Columns } from "./library/columns.ts";
export { IndexedDbStore } from "./library/indexed-db-store.ts";
export { type MarginalRelevanceOptions, maximalMarginalRelevance } from "./library/maximal-marginal-relevance.ts";
export { OpfsStore } from "./library/opfs-store.ts";
export type { FetchLike } from "./library/replica/fetch-like.ts";
export { FolderReplicaStore } from "./library/replica/folder-replica-store.ts";
export { IndexedDbReplicaStore } from "./library/replica/indexed-db-replica-store.ts";
export { Replica } from "./library/replica/replica.ts";
export type {
  ReplicaChange,
  ReplicaOptions,
  ReplicaPhase,
  ReplicaSearchOptions,
  ReplicaStatus,
  ReplicaTextSearch,
} from "./library/replica/replica-options.ts";
export type { ReplicaStore } from "./library/replica/replica-store.ts";
export type { Loader, Saveable } from "./library/snapshot-store.ts";
export type { ColumnType } from "./library/stored-value.ts";
export { TextColumns } from "./library/text-columns.ts";
export type { ColumnInput, ColumnOutput, ColumnTypes, TypedFilter } from "./library/typed-columns.ts";
