/** What is on the server: databases, their branches, and the schema of the current branch. */
import { computed, signal } from "@preact/signals";
import type { ColumnSchema, TableSchema } from "../../records/schema.ts";
import { ApiError, branchPath, call, messageOf, type Place } from "../api/client.ts";
import { goInstead, route } from "./route.ts";

export type { ColumnSchema, TableSchema };

export interface DatabaseEntry {
  readonly name: string;
  readonly branches: readonly string[];
}

export const databases = signal<readonly DatabaseEntry[] | undefined>(undefined);
export const tables = signal<readonly TableSchema[] | undefined>(undefined);
/** Why one of them could not be read. */
export const catalogFault = signal("");

export const currentTable = computed(() => tables.value?.find(({ name }) => name === route.value.table));

const { compare } = new Intl.Collator("en", { numeric: true });
/** As people count: branch-2 before branch-10. */
const byName = (a: { readonly name: string }, b: { readonly name: string }): number => compare(a.name, b.name);
/** main before others. */
const mainFirst = (a: { readonly name: string }, b: { readonly name: string }): number =>
  Number(b.name === "main") - Number(a.name === "main") || byName(a, b);

export async function loadDatabases(): Promise<void> {
  const { databases: found } = await call<{ databases: { name: string }[] }>("GET", "/dbs");
  databases.value = await Promise.all(
    found.toSorted(byName).map(async ({ name }) => {
      const { branches } = await call<{ branches: { name: string }[] }>("GET", `/dbs/${encodeURIComponent(name)}`);
      return { name, branches: branches.toSorted(mainFirst).map((branch) => branch.name) };
    }),
  );
}

export async function fetchTables(place: Place): Promise<readonly TableSchema[]> {
  return (await call<{ schema: { tables: TableSchema[] } }>("GET", branchPath(place))).schema.tables.toSorted(byName);
}

/**
 * The number of a table's records.
 *
 * @param path  of the table.
 * @param filter  undefined: all are counted.
 */
export async function countOf(path: string, filter?: unknown): Promise<number> {
  const count = filter === undefined ? "*" : { filter };
  return (await call<{ aggs: { rows: number } }>("POST", `${path}/aggregate`, { aggs: { rows: { count } } })).aggs.rows;
}

let asked = 0;
let shownPlace = "";

/** Reads the tables of a branch; an answer that is overtaken by a later request is dropped. */
export async function loadTables(place: Place): Promise<void> {
  const ticket = ++asked;
  // Tables of the previous branch are dropped. If the same branch is read again, its tables stay in view, with what was typed there.
  if (shownPlace !== branchPath(place)) tables.value = undefined;
  shownPlace = branchPath(place);
  try {
    const found = await fetchTables(place);
    if (ticket !== asked) return;
    if (JSON.stringify(found) !== JSON.stringify(tables.value)) tables.value = found;
    catalogFault.value = "";
  } catch (error) {
    if (ticket !== asked) return;
    // A server that is away, or not ready yet, has lost no table: what is in view stays, with what was typed there.
    if (error instanceof ApiError && (error.status === 0 || error.status >= 500) && tables.value !== undefined) return;
    tables.value = undefined;
    catalogFault.value = messageOf(error);
  }
}

/** Chooses a table of the branch when the address names none. One that does not exist is never replaced by another. */
export function settleTable(): void {
  const { view, place, table } = route.value;
  const found = tables.value;
  if (view === "home" || view === "new" || place === undefined || found === undefined || found.length === 0 || table !== undefined) return;
  const withVectors = found.find(({ columns }) => columns.some(({ type }) => type === "vector"));
  goInstead(view, place, (withVectors ?? (found[0] as TableSchema)).name);
}

export const firstBranch = (database: DatabaseEntry | undefined): string | undefined => database?.branches[0];

/** The first branch of the first database. */
export function firstPlace(): Place | undefined {
  const database = databases.value?.[0];
  const branch = firstBranch(database);
  return database === undefined || branch === undefined ? undefined : { database: database.name, branch };
}
