/** A part of a table in this process, always current: searched without a request, and exactly. */

import { throwIfAborted } from "../../core/abort-signal.ts";
import { checkType } from "../../core/options.ts";
import type { SearchResult } from "../../core/search-input.ts";
import type { TextSearchResult } from "../../core/text-search.ts";
import { LocalReplica } from "./local-replica.ts";
import {
  epochNow,
  type ReplicaOptions,
  type ReplicaSearchOptions,
  type ReplicaSource,
  type ReplicaStatus,
  type ReplicaTextSearch,
} from "./replica-options.ts";
import { canBeShared, SharedReplica } from "./shared-replica.ts";

export class Replica {
  /** Bundlers rename classes. */
  static readonly name: string = "Replica";
  readonly #source: ReplicaSource;

  private constructor(source: ReplicaSource) {
    this.#source = source;
  }

  /**
   * Resolves when there is a state to search: the one that was kept, or the server's. While the server cannot be reached it waits, and
   * says so by `onStatus`; `signal` ends that.
   *
   * With a store that all tabs of an origin have (IndexedDB) one tab holds the replica and is connected; the others ask that one. When it
   * is closed another one goes on from what is kept.
   *
   * @throws {TypeError} for options that are none; {LodestoneError} INVALID when the server refuses; the signal's reason.
   */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const { url, table, columns, filter, store, signal } = options;
    checkType(typeof url === "string", "url", url, "the address of a branch");
    checkType(typeof table === "string", "table", table, "a name");
    checkType(Array.isArray(columns) && columns.length > 0, "columns", columns, "an array of names");
    throwIfAborted(signal);
    // What is kept is of one request: another one has another name.
    const name = JSON.stringify([url, table, columns, filter ?? null]);
    const source = canBeShared(store) ? new SharedReplica(options, name, store.sharedAs) : new LocalReplica(options, name);
    signal?.addEventListener("abort", () => void source.close());
    try {
      await source.ready();
    } catch (error) {
      await source.close();
      throwIfAborted(signal);
      throw error;
    }
    return new Replica(source);
  }

  get status(): ReplicaStatus {
    return this.#source.view.status;
  }

  /** Number of records. */
  get size(): number {
    return this.#source.view.size;
  }

  /** Where the state is; opaque. */
  get position(): string | undefined {
    return this.#source.view.position;
  }

  /** Milliseconds since it was known to be current. */
  get lagMs(): number {
    const { status, contactAt } = this.#source.view;
    return status.phase === "current" ? 0 : epochNow() - contactAt;
  }

  /** A record's values, without its vectors; undefined: there is none. */
  get(id: string): Promise<Record<string, unknown> | undefined> {
    return this.#source.get(id);
  }

  /** A record's vector. @param column  where the replica has several. */
  vector(id: string, column?: string): Promise<Float32Array | undefined> {
    return this.#source.vector(id, column);
  }

  /**
   * The k best records, exactly: as `search` of a VectorIndex, by a vector or, with `words`, by `{ text, … }`. Where tabs share the
   * replica, a `filter` or `stemmer` that is a function is refused.
   * @param options  `column` where the replica has several vector columns.
   */
  search(query: ArrayLike<number>, options?: ReplicaSearchOptions): Promise<SearchResult>;
  search(query: ReplicaTextSearch): Promise<TextSearchResult>;
  search(query: ArrayLike<number> | ReplicaTextSearch, options: ReplicaSearchOptions = {}): Promise<SearchResult | TextSearchResult> {
    return this.#source.search(query, options);
  }

  /**
   * Resolves when the state has everything that was written before the call; with `read`, what the write had whose answer has it in
   * its header `Lodestone-Read`.
   *
   * @throws {LodestoneError} UNAVAILABLE: the server cannot be asked; INVALID: it refuses.
   */
  current(read?: string): Promise<void> {
    return this.#source.current(read);
  }

  close(): Promise<void> {
    return this.#source.close();
  }
}
