/**
 * The row of a branch in the search database: its tables, and the position of the change feed that they are
 * at.
 */
import { createHash } from "node:crypto";
import type pg from "pg";
import type { BranchKey } from "../search-messages.ts";
import { SCHEMA, type Statements } from "./search-database.ts";

export interface BranchRow {
  readonly generation: string;
  readonly revision: string;
  readonly incarnation: string;
  readonly version: string;
  readonly position: string;
  readonly tables: string;
  readonly counts: string;
}

const BRANCH_COLUMNS =
  "generation::text, revision::text, incarnation, version::text, position, tables::text AS tables, counts::text AS counts";

export async function readBranch(statements: Statements, key: BranchKey, lock = ""): Promise<BranchRow | undefined> {
  const [row] = await statements.query<BranchRow & pg.QueryResultRow>(
    `SELECT ${BRANCH_COLUMNS} FROM ${SCHEMA}.branches WHERE key = $1 ${lock}`,
    [key],
  );
  return row;
}

/**
 * The number of the branch's locks. Two branches may share a number; they then sometimes wait for each other.
 */
export function lockOf(key: BranchKey): number {
  return createHash("sha256").update(key).digest().readInt32BE();
}

/** Adds the changes to the counts of vectors, by column id. */
export function addCounts(counts: Map<number, number>, changed: ReadonlyMap<number, number>): void {
  for (const [id, count] of changed) counts.set(id, (counts.get(id) ?? 0) + count);
}

export function countsToJson(counts: ReadonlyMap<number, number>): string {
  return JSON.stringify(Object.fromEntries(counts));
}

export function countsFromJson(text: string): Map<number, number> {
  return new Map(Object.entries(JSON.parse(text) as Record<string, number>).map(([id, count]) => [Number(id), count]));
}
