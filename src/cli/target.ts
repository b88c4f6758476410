/** `demo:main/colors`: how the commands name a table, or with `demo:main` a branch. */
import { LodestoneError } from "../errors.ts";
import type { BranchRef } from "../records/schema.ts";

export interface Target {
  readonly ref: BranchRef;
  /** undefined: the whole branch. */
  readonly table: string | undefined;
}

export function parseTarget(text: string): Target {
  const match = /^([\w~-]{1,255}):([\w~-]{1,255})(?:\/([\w~-]{1,255}))?$/.exec(text);
  if (match === null) {
    throw new LodestoneError("INVALID", `Expected {database}:{branch}/{table}, as in demo:main/colors; got ${JSON.stringify(text)}.`);
  }
  return { ref: { database: match[1] as string, branch: match[2] as string }, table: match[3] };
}

export function parseTableTarget(text: string): { readonly ref: BranchRef; readonly table: string } {
  const { ref, table } = parseTarget(text);
  if (table === undefined) {
    throw new LodestoneError("INVALID", `Name a table too: ${text}/{table}.`);
  }
  return { ref, table };
}
