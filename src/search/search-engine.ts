/**
 * What holds the vectors and filter columns of the followed branches, and searches them. The search store (open-search-store.ts) reads the records and the
 * change feed and has turns, deadlines and strong reads; an engine is told what to hold (`EngineCalls`). The worker thread with its indexes is one.
 *
 * For each branch: `begin`, `load`…, `install` (or `abandon`) build it aside; `stage`… and `commit` change it, all at once with regard to searches;
 * `restore` takes up what an earlier process left, if the engine keeps anything; `search` answers from one position, after all commits whose promises
 * have resolved.
 */
import type { EngineCalls, Method } from "./search-messages.ts";

export interface SearchEngine {
  /**
   * @param transfer  buffers of the argument that are the engine's from now on.
   * @throws {LodestoneError} UNAVAILABLE while the engine cannot be reached; whatever the call itself rejects with.
   */
  call<M extends Method>(
    method: M,
    argument: Parameters<EngineCalls[M]>[0],
    transfer?: readonly ArrayBuffer[],
  ): Promise<ReturnType<EngineCalls[M]>>;
  close(): Promise<void>;
}

export interface EngineEvents {
  /** What the engine held is lost: every branch will be restored or built anew, and `call` is UNAVAILABLE until `onRestart`. */
  onLost(error: Error): void;
  /** An empty engine has taken its place. */
  onRestart(): void;
}

export type StartEngine = (events: EngineEvents) => SearchEngine;
