/**
 * `sort` of a request in all its forms: "name", {"name": "desc"}, {"column": "name", "direction": "desc"},
 * lists of these, {"*": "random"}; over columns, links (`team.name`), json paths and `xata.*`. The order is
 * total: equal records are ordered by id.
 *
 * In SQL, nulls are above everything, as in PostgreSQL: last ascending, first descending. A page can be continued from
 * the values of its last record (cursor.ts), which costs the same on every page.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted } from "../../../errors/value-in-words.ts";
import { isObject } from "../../../text/json-object.ts";
import { COLUMN_TRAITS } from "../../column-traits.ts";
import { quoteLiteral } from "../../identifiers.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { notExpected } from "../values/request-parts.ts";
import { type ColumnReference, columnSql, resolveColumn } from "./column-reference.ts";

export type SortDirection = "asc" | "desc";

export interface SortColumn extends ColumnReference {
  readonly direction: SortDirection;
}

export type SortKey = SortColumn | "random";

const MAX_SORT_KEYS = 16;

export function readSort(branch: BranchInfo, table: TableInfo, sort: unknown, place = "sort"): SortKey[] {
  return readSortItems(sort, place).map(({ name, direction, place: at }) =>
    direction === "random" ? "random" : { ...ordered(resolveColumn(branch, table, name, at), at), direction },
  );
}

/** The names and directions of a sort, before they are resolved. */
export function readSortItems(sort: unknown, place: string): { name: string; direction: SortDirection | "random"; place: string }[] {
  if (sort === undefined || sort === null) return [];
  const items: readonly unknown[] = Array.isArray(sort) ? sort : [sort];
  const read: { name: string; direction: SortDirection | "random"; place: string }[] = [];
  items.forEach((item, index) => {
    const at = Array.isArray(sort) ? `${place}[${index}]` : place;
    for (const [name, direction] of readItem(item, at)) {
      if (name === "*" && direction !== "random") throw badDirection(direction, at, '"random", the only direction of "*"');
      if (name !== "*" && direction !== "asc" && direction !== "desc") throw badDirection(direction, at, '"asc" or "desc"');
      read.push({ name, direction: direction as SortDirection | "random", place: at });
    }
  });
  if (read.length > MAX_SORT_KEYS) {
    throw new LodestoneError("INVALID", `${place} has ${read.length} keys; at most ${MAX_SORT_KEYS} are allowed.`);
  }
  return read;
}

function readItem(item: unknown, place: string): [string, unknown][] {
  if (typeof item === "string") return [[item, item === "*" ? "random" : "asc"]];
  if (isObject(item)) {
    const entries = Object.entries(item);
    const named = new Map<string, unknown>(entries);
    const column = named.get("column");
    // {"column": "name", "direction" or "order": "desc"}, unless a column is really called "column".
    if (typeof column === "string" && column !== "asc" && column !== "desc") {
      return [[column, named.get("direction") ?? named.get("order") ?? (column === "*" ? "random" : "asc")]];
    }
    if (entries.length > 0) return entries;
  }
  throw notExpected(place, item, 'a column name or an object such as {"name": "desc"}');
}

function badDirection(direction: unknown, place: string, expected: string): LodestoneError {
  return new LodestoneError("INVALID", `${place}: the direction is ${inWords(direction)}; expected ${expected}.`);
}

/** What a sort can order by. A whole json column, a list and a vector have no useful order. */
function ordered(reference: ColumnReference, place: string): ColumnReference {
  const { type, json, column } = reference;
  if (json.length > 0 || (type !== "json" && type !== "vector" && type !== "multiple")) return reference;
  throw new LodestoneError("INVALID", `${place}: column ${quoted(column)} is of type ${type}, which has no order; sort by another column.`);
}

export interface SortTerm {
  /** The value ordered by. */
  readonly sql: string;
  /** The type that a bound value is cast to for comparison. */
  readonly type: string;
  readonly nullable: boolean;
  readonly descending: boolean;
}

/** The record's terms in order, ending in its id. `random` is the expression for "random". */
export function sortTerms(branch: BranchInfo, keys: readonly SortKey[], alias: string, random: SortTerm): SortTerm[] {
  const terms: SortTerm[] = [];
  for (const key of keys) {
    if (key === "random") terms.push(random);
    else {
      terms.push({
        sql: columnSql(branch, key, alias),
        type: key.json.length > 0 ? "jsonb" : COLUMN_TRAITS[key.type].parameterType,
        nullable: key.nullable,
        descending: key.direction === "desc",
      });
    }
    // After the id nothing can be equal.
    if (key !== "random" && key.column === "id" && key.links.length === 0) return terms;
  }
  terms.push({ sql: `${alias}."id"`, type: "text", nullable: false, descending: false });
  return terms;
}

export function orderBy(terms: readonly SortTerm[]): string {
  return `ORDER BY ${terms.map((term) => orderTerm(term, false)).join(", ")}`;
}

/** `reversed` turns the whole order around, nulls included: for pages that are read backwards. */
export function orderTerm(term: SortTerm, reversed: boolean): string {
  return `${term.sql} ${term.descending !== reversed ? "DESC" : "ASC"}`;
}

/** A new order each time: for results that no cursor continues. */
export function randomOrder(alias: string): SortTerm {
  return { sql: `md5(${alias}."id" || random()::text)`, type: "text", nullable: false, descending: false };
}

/** A random order that stays the same as long as the seed does. */
export function seededOrder(alias: string, seed: string): SortTerm {
  return { sql: `md5(${quoteLiteral(seed)} || ${alias}."id") COLLATE "C"`, type: "text", nullable: false, descending: false };
}
