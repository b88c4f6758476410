/**
 * Positions of replicas, as text that only this folder reads: `<life>~<reading>~<read>~<position of the feed>`. Everything that the
 * feed's position sees is in. `read` counts the reads of the branch's changes by one FollowedBranch, `reading`: what was written before the
 * read of this number began is in, too.
 */
import type { FeedPosition } from "../records/feed/feed-types.ts";

export interface ReplicaPosition {
  /** The branch's incarnation. */
  readonly life: string;
  /** Of the server that read the changes, since it last began to follow the branch. */
  readonly reading: string;
  readonly read: number;
  readonly feed: FeedPosition;
}

const FORM = /^([0-9a-f-]{1,64})~([0-9a-f-]{1,64})~(\d{1,15})~([\d:,/]{1,20000})$/;

/** undefined for anything that formatReplicaPosition did not make. */
export function parseReplicaPosition(text: string): ReplicaPosition | undefined {
  const [, life, reading, read, feed] = FORM.exec(text) ?? [];
  return life === undefined ? undefined : { life, reading: reading!, read: Number(read), feed: feed! };
}

/** What changes from frame to frame; the rest is in the open frame. */
export const formatAt = ({ read, feed }: Pick<ReplicaPosition, "read" | "feed">): string => `${read}~${feed}`;
