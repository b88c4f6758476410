/** What a replica is asked for, and what it says of itself. */
import type { AbortSignalLike } from "../../core/abort-signal.ts";
import type { SearchOptions, SearchResult } from "../../core/search-input.ts";
import type { TextSearch, TextSearchResult } from "../../core/text-search.ts";
import type { FetchLike } from "./fetch-like.ts";
import type { ReplicaStore } from "./replica-store.ts";

export type ReplicaPhase = "opening" | "loading" | "behind" | "current" | "offline" | "failed" | "closed";

export interface ReplicaStatus {
  readonly phase: ReplicaPhase;
  /** While it is loading: bytes that have come, and of how many, if the server knows. */
  readonly bytes?: number;
  readonly totalBytes?: number | undefined;
  /** Why it is offline or has failed. */
  readonly reason?: string;
}

/** What a later state has that is new. */
export interface ReplicaChange {
  /** Ids that came or changed. */
  readonly upserted: readonly string[];
  readonly deleted: readonly string[];
}

export interface ReplicaOptions {
  /** The branch: `https://search.example.org/db/shop:main`. */
  url: string;
  table: string;
  /** Columns to hold, vector columns among them. */
  columns: readonly string[];
  /** The records to hold, in the grammar of the API; not through links. */
  filter?: object | undefined;
  /** An API key that may read, or a function that gives one. */
  key?: string | (() => string | Promise<string>) | undefined;
  /** Keeps the replica for the next start: `new IndexedDbReplicaStore()`, `new FolderReplicaStore(path)`. */
  store?: ReplicaStore | undefined;
  /** Words of all string and multiple columns can be searched; with a stemmer, words of the same stem match, too. */
  words?: boolean | { readonly stemmer?: TextSearch["stemmer"] } | undefined;
  /** Workers for each vector column; default 1 in a page, else 0: in this thread. */
  shards?: number | undefined;
  /** Closes the replica. */
  signal?: AbortSignalLike | undefined;
  /** Called at every change of the status. */
  onStatus?: ((status: ReplicaStatus) => void) | undefined;
  /** Called when the state is a later one. */
  onChange?: ((change: ReplicaChange) => void) | undefined;
  /** Default: that of the runtime. */
  fetch?: FetchLike | undefined;
}

/** Of a search: as of a VectorIndex, and the column where the replica has several. */
export type ReplicaSearchOptions = SearchOptions & { column?: string };

/** Of a search for words, or for words and a vector: as of a VectorIndex with TextColumns. */
export type ReplicaTextSearch = TextSearch & { column?: string };

/** What can be seen of a replica without asking it. */
export interface ReplicaView {
  readonly status: ReplicaStatus;
  /** Number of records. */
  readonly size: number;
  /** undefined: there is no state yet. */
  readonly position: string | undefined;
  /** When it was last known to be current, in milliseconds since the epoch. */
  readonly contactAt: number;
}

/** What answers for a replica: this thread, or the tab that leads. */
export interface ReplicaSource {
  readonly view: ReplicaView;
  /** Resolves when there is a state to search. @throws {LodestoneError} INVALID: the server refuses. */
  ready(): Promise<void>;
  get(id: string): Promise<Record<string, unknown> | undefined>;
  vector(id: string, column?: string): Promise<Float32Array | undefined>;
  search(query: ArrayLike<number> | ReplicaTextSearch, options: ReplicaSearchOptions): Promise<SearchResult | TextSearchResult>;
  current(read?: string): Promise<void>;
  close(): Promise<void>;
}

/** Milliseconds since the epoch that never go back within a page, and are the same in all tabs, but for a change of the clock. */
export const epochNow = (): number => performance.timeOrigin + performance.now();
