/**
 * "After this record" as a condition: the keyset method (Winand, use-the-index-luke.com, "no offset"). The
 * order is total (sort-sql.ts), so a page neither loses nor repeats a record while others come and go, and its
 * cost does not depend on how deep it is.
 */

import type { Parameters } from "../sql-parts/bound-parameters.ts";
import type { SortTerm } from "../sql-parts/sort-sql.ts";
import type { Position } from "./cursor.ts";

/** The records after `position` in the order of `terms`; before it when `reversed`. Nulls are above every value. */
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
