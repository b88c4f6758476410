/** Records that are only ever written together: in one response they must show one state. */
import type { Fault, Seen } from "./history.ts";

export type Agreement = { readonly saw: Seen | null } | { readonly fault: Fault };

/**
 * @param members  what one response (one statement, one transaction, one search) shows of each member of the
 *   group; null if it shows none.
 * @param where  the request, for the message.
 */
export function agree(key: string, members: readonly (Seen | null)[], where: string): Agreement {
  const first = members[0] ?? null;
  const same = members.every((member) => member?.value === first?.value && member?.version === first?.version);
  if (same) return { saw: first };
  return {
    fault: { kind: "torn", key, message: `${where} shows ${JSON.stringify(members)}; the group's records are only written together` },
  };
}
