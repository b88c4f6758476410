/** `--batch`, of the commands that write records. */
import { InvalidArgumentError, Option } from "commander";
import { MAX_OPERATIONS } from "../records/request-limits.ts";

export function batchOption(): Option {
  return new Option("--batch <size>", "records in one transaction").argParser(parseBatch).default(500);
}

function parseBatch(text: string): number {
  const size = Number(text);
  if (Number.isInteger(size) && size >= 1 && size <= MAX_OPERATIONS) return size;
  throw new InvalidArgumentError(`Expected a whole number from 1 to ${MAX_OPERATIONS}.`);
}
