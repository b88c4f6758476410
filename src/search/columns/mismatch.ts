import type { FeedColumn } from "../../records/feed/feed-types.ts";

/** The feed delivered a column in another kind than the schema says: a fault of the program, not of a request. */
export function mismatch(expected: string, from: FeedColumn): TypeError {
  return new TypeError(`The change feed delivered a column of kind ${from.kind} where the schema has ${expected}.`);
}
