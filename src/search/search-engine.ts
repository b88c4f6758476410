/**
 * What holds the vectors and filter columns of the followed branches, and searches them. The search store
 * (open-search-store.ts) reads the records and the change feed and has turns, deadlines and strong reads; an
 * engine is told what to hold (`EngineCalls`). The worker thread with its indexes is one.
 *
 * For each branch: `begin`, `load`…, `install` (or `abandon`) build it aside; `stage`… and `commit` change it,
 * all at once with regard to searches; `restore` takes up what an earlier process left, if the engine keeps
 * anything; `search` answers from one position, after all commits whose promises have resolved.
 */
import { LodestoneError } from "../errors.ts";
import type { BranchKey, EngineCalls, Method } from "./search-messages.ts";

export interface SearchEngine {
  /**
   * What is committed is kept beyond this process, position included: `restore` gives it without a file, and a
   * commit is the only thing that moves the position, so that nothing is written while nothing changes. Default
   * false.
   */
  readonly keepsState?: boolean;
  /** How many searches it works on at once; default: one, and one that waits at its door. */
  readonly searchesAtOnce?: number;
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
  /** What the engine held is lost: every branch will be restored or built again, and `call` is UNAVAILABLE until `onRestart`. */
  onLost(error: Error): void;
  /** An empty engine has taken its place. */
  onRestart(): void;
}

export type StartEngine = (events: EngineEvents) => SearchEngine;

/**
 * What the engine holds of a branch is not what this process left or found there: another server has changed
 * it. It is to be restored, and the round begun again.
 */
export class EngineChangedError extends LodestoneError {
  constructor(key: BranchKey) {
    super("UNAVAILABLE", `Another server has changed what is held of branch ${key}; try again in a moment.`, { retryAfterSeconds: 1 });
  }
}
