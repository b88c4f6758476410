/** `demo:main/colors`: how the commands name a table, or with `demo:main` a branch. */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";
import { NAME } from "../records/identifiers.ts";
import type { BranchRef } from "../records/schema.ts";

export interface Target {
  readonly ref: BranchRef;
  /** undefined: the whole branch. */
  readonly table: string | undefined;
}

export function parseTarget(text: string): Target {
  const [branch = "", table, ...more] = text.split("/");
  const [database = "", name = "", ...rest] = branch.split(":");
  const names = table === undefined ? [database, name] : [database, name, table];
  if (more.length > 0 || rest.length > 0 || !names.every((part) => NAME.test(part))) {
    throw new LodestoneError("INVALID", `Expected {database}:{branch}/{table}, as in demo:main/colors; got ${quoted(text)}.`);
  }
  return { ref: { database, branch: name }, table };
}

export function parseTableTarget(text: string): { readonly ref: BranchRef; readonly table: string } {
  const { ref, table } = parseTarget(text);
  if (table === undefined) {
    throw new LodestoneError("INVALID", `Name a table too: ${text}/{table}.`);
  }
  return { ref, table };
}
