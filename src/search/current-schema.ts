/** Checks a request against the schema of its branch. */
import type { BranchInfo, BranchRef } from "../records/schema.ts";
import type { FollowedRecords } from "./followed-schema.ts";

/** The catalog may not know yet what another server has just changed, so the database confirms each refusal. */
export async function checkWithCurrentSchema<Checked>(
  records: FollowedRecords,
  ref: BranchRef,
  check: (info: BranchInfo) => Checked,
): Promise<{ info: BranchInfo; checked: Checked }> {
  const info = await records.branch(ref);
  try {
    return { info, checked: check(info) };
  } catch (error) {
    const current = await records.currentBranch(ref);
    if (isSame(info, current)) throw error;
    return { info: current, checked: check(current) };
  }
}

export function isSame(one: BranchInfo, other: BranchInfo): boolean {
  return one.incarnation === other.incarnation && one.version === other.version;
}
