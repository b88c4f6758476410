/**
 * What the search store keeps of a branch: tables with a vector column, and every table that their links lead
 * to (filters reach through links), each with all its columns. Plain data, so that it crosses to the worker as
 * it is.
 */
import { SYSTEM_COLUMN_TYPES, VERSION_COLUMNS } from "../filter/system-columns.ts";
import type { FilterTable, FilterTableColumn } from "../filter/tree.ts";
import type { Part } from "../records/feed/part.ts";
import type { BranchInfo, ColumnType, TableInfo } from "../records/schema.ts";

export interface FollowedColumn extends FilterTableColumn {
  /** The catalog's; a negative one for the system's columns, which are always there. */
  readonly id: number;
  readonly type: ColumnType;
  readonly vector?: { readonly dimension: number };
}

export interface FollowedTable extends FilterTable {
  readonly id: number;
  readonly columns: ReadonlyMap<string, FollowedColumn>;
  /** The part of its records that is held; undefined: all. */
  readonly part?: Part;
}

/** By name. */
export type FollowedSchema = ReadonlyMap<string, FollowedTable>;

/** Beside `id`, which is the row's. Their ids are negative, so that none is a column's of the catalog. */
export const FOLLOWED_SYSTEM_COLUMNS: readonly FollowedColumn[] = VERSION_COLUMNS.map((name, i) => ({
  id: -1 - i,
  name,
  type: SYSTEM_COLUMN_TYPES[name],
}));

/**
 * @param part  what a server holds that is one of several. A table that links lead to is held whole all the
 *   same: filters reach any of its records.
 */
export function followedSchema(branch: Pick<BranchInfo, "tables">, part?: Part): FollowedSchema {
  const followed = new Map<string, FollowedTable>();
  const add = (table: TableInfo | undefined): void => {
    if (table === undefined || followed.has(table.name)) return;
    const columns = new Map<string, FollowedColumn>();
    for (const { id, name, type, link, vector } of table.columns.values()) {
      columns.set(name, { id, name, type, ...(link && { link }), ...(vector && { vector }) });
    }
    followed.set(table.name, { id: table.id, name: table.name, columns });
    for (const column of columns.values()) if (column.link !== undefined) add(branch.tables.get(column.link.table));
  };
  for (const table of branch.tables.values()) {
    for (const column of table.columns.values()) if (column.type === "vector") add(table);
  }
  return part === undefined ? followed : inParts(followed, part);
}

/** The same tables, with the part that is held of each. */
export function inParts(schema: FollowedSchema, part: Part): FollowedSchema {
  const linked = new Set<string>();
  for (const { columns } of schema.values()) for (const { link } of columns.values()) if (link !== undefined) linked.add(link.table);
  const tables = [...schema.values()].map(({ part: _before, ...table }): FollowedTable => {
    return linked.has(table.name) ? table : { ...table, part };
  });
  return new Map(tables.map((table) => [table.name, table]));
}

/** By the name of the table, as the change feed takes it. */
export function partsOf(schema: FollowedSchema): ReadonlyMap<string, Part> {
  return new Map([...schema.values()].flatMap(({ name, part }) => (part === undefined ? [] : [[name, part]])));
}

/** Whether a table of both holds other records in one than in the other. */
export function differsInParts(current: FollowedSchema, next: FollowedSchema): boolean {
  const currentById = new Map([...current.values()].map((table) => [table.id, table]));
  return [...next.values()].some(({ id, part }) => {
    const before = currentById.get(id);
    return before !== undefined && (before.part?.index !== part?.index || before.part?.of !== part?.of);
  });
}

export interface MissingTable {
  readonly table: string;
  readonly columns?: string[];
  readonly part?: Part;
}

/** What has to be read before `next` can be answered from, where `current` is kept: new tables whole, else new columns. */
export function missingData(current: FollowedSchema, next: FollowedSchema): MissingTable[] {
  const currentById = new Map([...current.values()].map((table) => [table.id, table]));
  const missing: MissingTable[] = [];
  for (const table of next.values()) {
    const part = table.part === undefined ? {} : { part: table.part };
    const before = currentById.get(table.id);
    if (before === undefined) {
      missing.push({ table: table.name, ...part });
      continue;
    }
    const kept = new Set([...before.columns.values()].map((column) => column.id));
    const columns = [...table.columns.values()].filter((column) => !kept.has(column.id)).map((column) => column.name);
    if (columns.length > 0) missing.push({ table: table.name, columns, ...part });
  }
  return missing;
}
