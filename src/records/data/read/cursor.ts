/**
 * Cursors: where a page began and ended, and which query it was a page of. So a request with only a cursor
 * continues with the same filter, sort, columns and size. Cursors are opaque to clients: `1.` and the deflated
 * JSON in base64url (deflate's checksum detects damaged cursors). Nothing in one is trusted: filter, sort and
 * columns are read as if the client had sent them, and values are bound.
 */
import { deflateSync, inflateSync } from "node:zlib";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords } from "../../../errors/value-in-words.ts";
import { isWholeNumber } from "../../../text/whole-number.ts";
import { MAX_PAGE_SIZE } from "../../request-limits.ts";
import type { JsonValue, Selection } from "../../requests.ts";
import type { SortTerm } from "../sql-parts/sort.ts";
import type { Parameters } from "../sql-parts/statement-parts.ts";

/** Values of a record's sort terms as PostgreSQL's text; null is SQL's null. */
export type Position = readonly (string | null)[];

export interface Cursor {
  /** The table's id, since a cursor has no meaning for another table. */
  readonly table: number;
  readonly filter: JsonValue;
  readonly sort: JsonValue;
  readonly columns: Selection;
  readonly size: number;
  /** Seed of the order of `"*": "random"`: the same for all pages. */
  readonly seed: string;
  /** The first record of the page; null: the page begins where the result ends. */
  readonly first: Position | null;
  /** The last record of the page; null: the page ends where the result begins. */
  readonly last: Position | null;
}

const VERSION = "1.";
const MAX_CURSOR_BYTES = 4 * 2 ** 20;

export function encodeCursor(cursor: Cursor): string {
  const { table, filter, sort, columns, size, seed, first, last } = cursor;
  const json = JSON.stringify([table, filter, sort, columns, size, seed, first, last]);
  return VERSION + deflateSync(json, { level: 1 }).toString("base64url");
}

/** @param place How messages call it: `page.after`. */
export function decodeCursor(text: unknown, place: string): Cursor {
  const bad = (): LodestoneError =>
    new LodestoneError(
      "INVALID",
      `${place} is ${inWords(text)}, which is not a cursor; send the meta.page.cursor of an earlier answer unchanged.`,
    );
  if (typeof text !== "string" || !text.startsWith(VERSION) || !/^[\w-]+$/.test(text.slice(VERSION.length))) throw bad();
  let parsed: unknown;
  try {
    const bytes = inflateSync(Buffer.from(text.slice(VERSION.length), "base64url"), { maxOutputLength: MAX_CURSOR_BYTES });
    parsed = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw bad();
  }
  if (!Array.isArray(parsed) || parsed.length !== 8) throw bad();
  const [table, filter, sort, columns, size, seed, first, last] = parsed as unknown[];
  if (
    typeof table !== "number" ||
    !isWholeNumber(size, 1, MAX_PAGE_SIZE) ||
    typeof seed !== "string" ||
    !/^[\w-]{0,32}$/.test(seed) ||
    !Array.isArray(columns)
  )
    throw bad();
  if (!isPosition(first) || !isPosition(last)) throw bad();
  return { table, filter: filter as JsonValue, sort: sort as JsonValue, columns: columns as Selection, size, seed, first, last };
}

function isPosition(value: unknown): value is Position | null {
  return (
    value === null ||
    (Array.isArray(value) && value.every((item) => item === null || (typeof item === "string" && !item.includes("\u0000"))))
  );
}

/**
 * The records after `position` in the order of `terms`; before it when `reversed`. Nulls are above every value. The
 * keyset method (Winand, use-the-index-luke.com, "no offset"): the order is total (sort.ts), so a page neither loses
 * nor repeats a record while others come and go, and its cost does not depend on how deep it is.
 */
export function behind(terms: readonly SortTerm[], position: Position, reversed: boolean, parameters: Parameters): string {
  const values = position.map((value, index) => (value === null ? null : `${parameters.add(value)}::${terms[index]!.type}`));
  const descending = terms[0]!.descending;
  if (terms.every((term, index) => !term.nullable && term.descending === descending && values[index] !== null)) {
    // An index over the terms can serve one comparison of rows.
    return `(${terms.map((term) => term.sql).join(", ")}) ${descending !== reversed ? "<" : ">"} (${values.join(", ")})`;
  }
  let condition = "FALSE";
  for (let i = terms.length - 1; i >= 0; i--) {
    const { sql } = terms[i]!;
    const beyond = strictlyBehind(terms[i]!, values[i]!, reversed);
    const same = values[i] === null ? `${sql} IS NULL` : `${sql} = ${values[i]}`;
    condition = condition === "FALSE" ? beyond : `(${beyond} OR (${same} AND ${condition}))`;
  }
  const [first] = terms as [SortTerm];
  const downwards = first.descending !== reversed;
  if (values[0] === null || (first.nullable && !downwards)) return condition;
  // Logically redundant, but an index cannot serve an OR.
  return `${first.sql} ${downwards ? "<=" : ">="} ${values[0]} AND ${condition}`;
}

function strictlyBehind(term: SortTerm, value: string | null, reversed: boolean): string {
  const downwards = term.descending !== reversed;
  // Going up, nothing comes after the nulls; going down, everything does.
  if (value === null) return downwards ? `${term.sql} IS NOT NULL` : "FALSE";
  const comparison = `${term.sql} ${downwards ? "<" : ">"} ${value}`;
  return term.nullable && !downwards ? `(${comparison} OR ${term.sql} IS NULL)` : comparison;
}
