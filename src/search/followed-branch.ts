/** What the search store knows of a branch that it follows. */
import type { ChangeFeed, FeedPosition } from "../records/feed/feed-types.ts";
import type { BranchInfo, BranchRef } from "../records/schema.ts";
import type { FollowedSchema } from "./followed-schema.ts";
import type { BranchKey } from "./search-messages.ts";

/** The part of the record store's interface that the search store needs. */
export interface FollowedRecords {
  readonly feed: ChangeFeed;
  branch(ref: BranchRef): Promise<BranchInfo>;
  currentBranch(ref: BranchRef): Promise<BranchInfo>;
  allBranches(): Promise<readonly BranchRef[]>;
}

/** What the engine holds of a branch. */
export interface FollowedState {
  readonly incarnation: string;
  readonly version: number;
  readonly position: FeedPosition;
  readonly schema: FollowedSchema;
  /**
   * False for a restored snapshot until the changes since then are applied. It is not searched before that.
   */
  readonly isWhole: boolean;
}

export function branchKey(ref: BranchRef): BranchKey {
  return `${ref.database}:${ref.branch}`;
}
