/** The schema of a branch as `lodestone.branches.document` keeps it, and the maps that the rest works with. */
import { SYSTEM_COLUMNS, type SystemNaming } from "../../filter/system-columns.ts";
import { physicalNameOf } from "../identifiers.ts";
import type { BranchInfo, BranchSchema, ColumnInfo, ColumnSchema, TableInfo, TableSchema } from "../schema.ts";
import { systemColumnSchema, toColumnInfo } from "./column-types.ts";

export interface ColumnDocument extends ColumnSchema {
  readonly id: number;
}

export interface TableDocument {
  readonly id: number;
  readonly name: string;
  readonly columns: readonly ColumnDocument[];
}

/** Ids are given once and never again; tables and columns share the sequence. */
export interface BranchDocument {
  readonly nextId: number;
  readonly tables: readonly TableDocument[];
  /** Absent: dotted. */
  readonly systemNaming?: SystemNaming;
}

export const namingOf = (document: BranchDocument): SystemNaming => document.systemNaming ?? "dotted";

export const EMPTY_DOCUMENT: BranchDocument = { nextId: 1, tables: [] };

function toTableInfo(table: TableDocument): TableInfo {
  const columns = new Map<string, ColumnInfo>();
  for (const column of table.columns) columns.set(column.name, toColumnInfo(column));
  return { id: table.id, name: table.name, physicalName: physicalNameOf(table.name), columns };
}

export function toTableInfos(document: BranchDocument): ReadonlyMap<string, TableInfo> {
  const tables = new Map<string, TableInfo>();
  for (const table of document.tables) tables.set(table.name, toTableInfo(table));
  return tables;
}

/** As users gave it: neither ids nor physical names. */
export function toColumnSchema(column: ColumnInfo | ColumnDocument): ColumnSchema {
  const { name, type, link, vector, notNull, unique, defaultValue, comment, language } = column;
  return {
    name,
    type,
    ...(link === undefined ? {} : { link }),
    ...(vector === undefined ? {} : { vector }),
    ...(notNull ? { notNull } : {}),
    ...(unique ? { unique } : {}),
    ...(defaultValue === undefined ? {} : { defaultValue }),
    ...(comment === undefined ? {} : { comment }),
    ...(language === undefined ? {} : { language }),
  };
}

export function toTableSchema(table: TableInfo, naming: SystemNaming): TableSchema {
  return { name: table.name, columns: [...shownSystemColumns(naming), ...[...table.columns.values()].map(toColumnSchema)] };
}

export function toBranchSchema(branch: BranchInfo): BranchSchema {
  return { tables: [...branch.tables.values()].map((table) => toTableSchema(table, branch.systemNaming)) };
}

/**
 * Where system columns are underscored, schemas list them like any others: code that is generated from schemas
 * finds its fields there.
 */
export function shownSystemColumns(naming: SystemNaming): ColumnSchema[] {
  return naming === "dotted" ? [] : SYSTEM_COLUMNS.map(systemColumnSchema);
}
