/** `--encoding`, for commands that read text files of others. */
import { Option } from "commander";
import { ENCODINGS } from "./import/text-encoding.ts";

export function encodingOption(): Option {
  return new Option(
    "--encoding <name>",
    "the encoding of csv, JSON Lines and sql files (default: UTF-8, or UTF-16 if the file begins with its mark; dumps say theirs)",
  ).choices(ENCODINGS);
}
