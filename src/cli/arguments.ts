/** Arguments that several commands take. */
import { InvalidArgumentError, Option } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";
import { NAME } from "../records/identifiers.ts";
import { MAX_OPERATIONS } from "../records/request-limits.ts";
import type { BranchRef } from "../records/schema.ts";
import { ENCODINGS } from "./import/text-encoding.ts";

/** Of the commands that write records. */
export function batchOption(): Option {
  return new Option("--batch <size>", "records in one transaction").argParser(parseBatch).default(1000);
}

function parseBatch(text: string): number {
  const size = Number(text);
  if (Number.isInteger(size) && size >= 1 && size <= MAX_OPERATIONS) return size;
  throw new InvalidArgumentError(`Expected a whole number from 1 to ${MAX_OPERATIONS}.`);
}

export function encodingOption(): Option {
  return new Option(
    "--encoding <name>",
    "the encoding of csv, JSON Lines and sql files (default: UTF-8, or UTF-16 if the file begins with its mark; dumps say theirs)",
  ).choices(ENCODINGS);
}

/** `demo:main/colors` names a table, and `demo:main` a branch. */
interface Target {
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
