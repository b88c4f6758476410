/**
 * The order of a sort in SQL. Nulls are above everything, as in PostgreSQL: last ascending, first descending.
 * The id, ascending, is the last term, so the order is total. A page can be continued from the values of its
 * last record (keyset), which costs the same on every page.
 */

import { COLUMN_TRAITS } from "../../column-traits.ts";
import { quoteLiteral } from "../../identifiers.ts";
import type { BranchInfo } from "../../schema.ts";
import { columnSql } from "./column-reference.ts";
import type { SortKey } from "./sort.ts";

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
