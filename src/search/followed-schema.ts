/**
 * What the search store follows of a branch: the tables with a vector column, those that have been searched for
 * words, and all tables that their links lead to (filters reach through links), each with all columns. Plain data,
 * so it can be sent to the worker as it is.
 */
import { SYSTEM_COLUMN_TYPES, VERSION_COLUMNS } from "../filter/system-columns.ts";
import type { FilterTable, FilterTableColumn } from "../filter/tree.ts";
import type { ChangeFeed, FeedPosition, Part } from "../records/feed/feed-types.ts";
import type { BranchInfo, BranchRef, ColumnType, TableInfo } from "../records/schema.ts";

export interface FollowedColumn extends FilterTableColumn {
  /** The catalog's id. System columns, which always exist, have negative ids. */
  readonly id: number;
  readonly type: ColumnType;
  readonly vector?: { readonly dimension: number };
}

export interface FollowedTable extends FilterTable {
  readonly id: number;
  readonly columns: ReadonlyMap<string, FollowedColumn>;
  /** The part of its records that is held; undefined: all. */
  readonly part?: Part;
  /** Its words are searched. */
  readonly texts?: true;
}

/** By table name. */
export type FollowedSchema = ReadonlyMap<string, FollowedTable>;

/**
 * System columns besides `id`, which is the row's own. Their ids are negative, so they never clash with ids
 * of the catalog.
 */
export const FOLLOWED_SYSTEM_COLUMNS: readonly FollowedColumn[] = VERSION_COLUMNS.map((name, i) => ({
  id: -1 - i,
  name,
  type: SYSTEM_COLUMN_TYPES[name],
}));

export interface FollowedScope {
  /**
   * The part that this server holds, if it is one of several. Tables that links lead to are always held in full,
   * because filters reach any of their records.
   */
  readonly part?: Part | undefined;
  /** Ids of the tables whose words are searched. */
  readonly texts?: ReadonlySet<number>;
  /** False: vectors are another store's; this one knows which records have them. */
  readonly vectors?: boolean;
}

export function followedSchema(branch: Pick<BranchInfo, "tables">, { part, texts, vectors = true }: FollowedScope = {}): FollowedSchema {
  const followed = new Map<string, FollowedTable>();
  const add = (table: TableInfo | undefined): void => {
    if (table === undefined || followed.has(table.name)) return;
    const columns = new Map<string, FollowedColumn>();
    for (const { id, name, type, link, vector } of table.columns.values()) {
      columns.set(name, { id, name, type, ...(link && { link }), ...(vector && vectors && { vector }) });
    }
    followed.set(table.name, { id: table.id, name: table.name, columns, ...(texts?.has(table.id) === true && { texts: true }) });
    for (const column of columns.values()) if (column.link !== undefined) add(branch.tables.get(column.link.table));
  };
  for (const table of branch.tables.values()) {
    if (texts?.has(table.id) === true) add(table);
    for (const column of table.columns.values()) if (column.type === "vector" && vectors) add(table);
  }
  return part === undefined ? followed : inParts(followed, part);
}

/** The same tables, each with the part that is held of it. */
export function inParts(schema: FollowedSchema, part: Part): FollowedSchema {
  const linked = new Set<string>();
  for (const { columns } of schema.values()) for (const { link } of columns.values()) if (link !== undefined) linked.add(link.table);
  const tables = [...schema.values()].map(({ part: _before, ...table }): FollowedTable => {
    return linked.has(table.name) ? table : { ...table, part };
  });
  return new Map(tables.map((table) => [table.name, table]));
}

/** By table name, in the form that the change feed takes. */
export function partsOf(schema: FollowedSchema): ReadonlyMap<string, Part> {
  return new Map([...schema.values()].flatMap(({ name, part }) => (part === undefined ? [] : [[name, part]])));
}

/** Whether any table that is in both is held with a different part. */
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

/** What has to be read to get from `current` to `next`: new tables in full, otherwise new columns. */
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

/** The part of the record store's interface that the search store needs. */
export interface FollowedRecords {
  readonly feed: ChangeFeed;
  branch(ref: BranchRef): Promise<BranchInfo>;
  currentBranch(ref: BranchRef): Promise<BranchInfo>;
  allBranches(): Promise<readonly BranchRef[]>;
}

/** What the engine holds of a branch. */
export interface FollowedState {
  readonly incarnation: string;
  readonly version: number;
  readonly position: FeedPosition;
  readonly schema: FollowedSchema;
  /**
   * False for a restored snapshot until the changes since then are applied. It is not searched before that.
   */
  readonly isWhole: boolean;
}
