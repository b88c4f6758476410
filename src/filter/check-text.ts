/** A text in a filter must be one that could be stored. */

import { inWords } from "../errors/value-in-words.ts";
import { fault, type Place } from "./fault.ts";
import { MAX_FILTER_TEXT_LENGTH } from "./filter-limits.ts";

const UNPAIRED_SURROGATE = /\p{Surrogate}/u;

/** Text that PostgreSQL can hold. */
export function checkText(value: unknown, place: Place): string {
  if (typeof value !== "string") throw fault(place, `expected a string, got ${inWords(value)}`);
  if (value.length > MAX_FILTER_TEXT_LENGTH) {
    throw fault(place, `the text has ${value.length} characters; at most ${MAX_FILTER_TEXT_LENGTH} are allowed`);
  }
  if (value.includes("\0")) throw fault(place, "the text contains a NUL character (\\u0000), which no stored text can have");
  if (UNPAIRED_SURROGATE.test(value)) throw fault(place, "the text contains half of a surrogate pair; it is not valid Unicode");
  return value;
}
