/** What operators and callers are told of the branches that are followed. */

import type { Followed } from "./followed-branches.ts";
import { SearchDatabaseAwayError } from "./search-engine.ts";
import type { BranchSearchStatus, SearchStoreStatus } from "./search-store.ts";

const inWords = (key: string, more: string | undefined): string => (more === undefined ? key : `${key} (${more})`);

/** Data that cannot be read may have changed. */
const lagOf = ({ lag, failingSince }: Pick<Followed, "lag" | "failingSince">): number =>
  Math.max(lag.currentMs, failingSince === undefined ? 0 : performance.now() - failingSince);

/** @param faultOf  why the branch's changes cannot be read at the moment. @param pending  what the store waits for besides branches. */
export function statusOf(
  branches: Iterable<Followed>,
  faultOf: (followed: Followed) => string | undefined,
  pending: string[],
): Omit<SearchStoreStatus, "waiting" | "ready"> {
  let lagMs = 0;
  let lagP99Ms = 0;
  let rows = 0;
  let memoryBytes = 0;
  let fileBytes = 0;
  let fault: string | undefined;
  let isSearchDatabaseAway = false;
  for (const followed of branches) {
    const { follower, isReady, isAwaited, lag, away, isFull } = followed;
    const branchFault = faultOf(followed);
    // Its searches are answered with the reason. No other server could do better.
    if (isFull) continue;
    if ((isAwaited && !isReady) || follower.isReadAgain) pending.push(inWords(follower.key, branchFault ?? follower.progress));
    lagMs = Math.max(lagMs, lagOf(followed));
    fault ??= branchFault;
    isSearchDatabaseAway ||= away instanceof SearchDatabaseAwayError;
    lagP99Ms = Math.max(lagP99Ms, lag.quantileMs(0.99));
    rows += follower.stats.vectors;
    memoryBytes += follower.stats.memoryBytes;
    fileBytes += follower.stats.fileBytes;
  }
  return { pending, lagMs, lagP99Ms, fault, isSearchDatabaseAway, rows, memoryBytes, fileBytes };
}

export function branchStatusOf(followed: Followed): BranchSearchStatus {
  const { follower, isReady } = followed;
  const { vectors, memoryBytes, fileBytes } = follower.stats;
  return { ready: isReady && !follower.isBuilding, lagMs: lagOf(followed), vectors, memoryBytes, fileBytes };
}
